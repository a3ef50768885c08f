//! `dlopen`, without `RTLD_DEEPBIND`. With it a library, as PHP loads its modules, takes `malloc` and `free` from the C
//! library though the program has others, and what one of them allocates comes to the other.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of the next `dlopen`; 0 as long as nobody has found it. Relaxed: all find the same.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The bits of a mode that the next one is given.
const KEPT: c_int = !libc::RTLD_DEEPBIND;

/// As that of the C library, which learns from the return address who calls it: so it is jumped to. A program that is
/// linked statically has no next one, but its C library has the function by another name. Null if there is none.
///
/// # Safety
/// That of the C library's: the path is a string, or null, and what the library runs as it is loaded is safe.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".weak ___dlopen",
        "and esi, {kept}",
        "mov rax, qword ptr [rip + {next}]",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, qword ptr [rip + ___dlopen@GOTPCREL]",
        "test rax, rax",
        "jnz 2f",
        "ret",
        "2:",
        "jmp rax",
        kept = const KEPT,
        next = sym NEXT,
        find = sym find,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".weak ___dlopen",
        "and w1, w1, {kept}",
        "adrp x16, {next}",
        "ldr x16, [x16, :lo12:{next}]",
        "cbnz x16, 2f",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz x16, 2f",
        "adrp x16, :got:___dlopen",
        "ldr x16, [x16, :got_lo12:___dlopen]",
        "cbnz x16, 2f",
        "mov x0, xzr",
        "ret",
        "2:",
        "br x16",
        kept = const KEPT,
        next = sym NEXT,
        find = sym find,
    );
    #[cfg(target_arch = "riscv64")]
    naked_asm!(
        ".weak ___dlopen",
        "andi a1, a1, {kept}",
        "lla t1, {next}",
        "ld t1, 0(t1)",
        "bnez t1, 2f",
        "addi sp, sp, -32",
        "sd ra, 24(sp)",
        "sd a0, 16(sp)",
        "sd a1, 8(sp)",
        "call {find}",
        "mv t1, a0",
        "ld a1, 8(sp)",
        "ld a0, 16(sp)",
        "ld ra, 24(sp)",
        "addi sp, sp, 32",
        "bnez t1, 2f",
        "lga t1, ___dlopen",
        "bnez t1, 2f",
        "li a0, 0",
        "ret",
        "2:",
        "jr t1",
        kept = const KEPT,
        next = sym NEXT,
        find = sym find,
    );
}

/// Returns the address of the next `dlopen`, or 0.
extern "C" fn find() -> usize {
    // SAFETY: the name ends with a zero byte.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) }.addr();
    NEXT.store(next, Ordering::Relaxed);
    next
}
