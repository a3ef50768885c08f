//! `dlopen`, without `RTLD_DEEPBIND`. With it a library, as PHP loads its modules, takes `malloc` and `free` from the C
//! library though the program has others, and what one of them allocates comes to the other.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of the next `dlopen`; 0 as long as nobody has found it. Relaxed: all find the same.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// As that of the C library, which learns from the return address who calls it: so it is jumped to. A program that is
/// linked statically has no next one, but its C library has the function by another name. Null if there is none.
///
/// # Safety
/// That of the C library's: the path is a string, or null, and what the library runs as it is loaded is safe.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void {
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
        kept = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
        find = sym find,
    )
}

/// Returns the address of the next `dlopen`, or 0.
extern "C" fn find() -> usize {
    // SAFETY: the name ends with a zero byte.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) }.addr();
    NEXT.store(next, Ordering::Relaxed);
    next
}
