//! The word of the calling thread: the thread's number plus one, or 0.
//!
//! On x86-64, AArch64 and RISC-V it is found in assembly, by the initial-exec model: a thread-local of a library in Rust
//! is found by a call of the loader, which may itself call `malloc` (glibc from 2.39 on).

pub use word::{get, set};

#[cfg(with_assembly)]
mod word {
    use core::arch::{asm, global_asm};

    global_asm!(
        r#".pushsection .tbss.nbbs_malloc_thread, "awT", %nobits"#,
        ".globl nbbs_malloc_thread",
        ".hidden nbbs_malloc_thread",
        ".type nbbs_malloc_thread, %object",
        ".size nbbs_malloc_thread, 8",
        ".p2align 3",
        "nbbs_malloc_thread:",
        ".zero 8",
        ".popsection",
    );

    /// Returns the address of the word. Not `pure`: a stack may go on in another thread between two calls.
    #[inline]
    fn address() -> *mut usize {
        let at;
        // SAFETY: it computes an address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(
                "mov {at}, qword ptr fs:[0]",
                "add {at}, qword ptr [rip + nbbs_malloc_thread@GOTTPOFF]",
                at = out(reg) at,
                options(nomem, nostack),
            );
        }
        // SAFETY: it computes an address.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(
                "mrs {thread}, tpidr_el0",
                "adrp {at}, :gottprel:nbbs_malloc_thread",
                "ldr {at}, [{at}, :gottprel_lo12:nbbs_malloc_thread]",
                "add {at}, {at}, {thread}",
                thread = out(reg) _,
                at = out(reg) at,
                options(nomem, nostack, preserves_flags),
            );
        }
        // SAFETY: it computes an address.
        #[cfg(target_arch = "riscv64")]
        unsafe {
            asm!(
                "la.tls.ie {at}, nbbs_malloc_thread",
                "add {at}, {at}, tp",
                at = out(reg) at,
                options(nomem, nostack, preserves_flags),
            );
        }
        at
    }

    #[inline]
    pub fn get() -> usize {
        // SAFETY: it is the thread's own word, which is all zero at first.
        unsafe { address().read_volatile() }
    }

    pub fn set(value: usize) {
        // SAFETY: it is the thread's own word, of which nobody has a reference.
        unsafe { address().write_volatile(value) }
    }
}

#[cfg(not(with_assembly))]
mod word {
    use core::cell::Cell;

    std::thread_local! {
        static OWN: Cell<usize> = const { Cell::new(0) };
    }

    #[inline]
    pub fn get() -> usize {
        OWN.get()
    }

    pub fn set(value: usize) {
        OWN.set(value);
    }
}
