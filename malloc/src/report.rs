//! What the heap was used for, at the end of the program.

use core::ffi::{CStr, c_char, c_int};
use core::fmt::Write;

use crate::environment::variable;
use crate::fail::Line;
use crate::memory::HEAP;

unsafe extern "C" {
    static program_invocation_short_name: *const c_char;
}

/// Called as the program exits.
#[used]
// SAFETY: the loader calls what this section holds, functions that need no arguments, and this is one.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Appends a line to the file that `NBBS_MALLOC_REPORT` names: the program, its number, [`nbbs_heap::Stats`]; with the
/// feature `poison`, how many slots were written to while they were free, if any were; with `NBBS_MALLOC_AUDIT`, whether
/// the bookkeeping is in order, which takes that no other thread uses the heap just then.
extern "C" fn at_exit() {
    let Some(path) = variable(c"NBBS_MALLOC_REPORT") else { return };
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let file: c_int = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    if file < 0 {
        return;
    }
    let mut line = Line::new();
    // SAFETY: the C library sets the name before a program begins, and it ends with a zero byte.
    let name = unsafe { CStr::from_ptr(program_invocation_short_name) };
    // SAFETY: it only answers.
    let number = unsafe { libc::getpid() };
    _ = write!(line, "{}[{number}]: ", name.to_str().unwrap_or("?"));
    _ = write!(line, "{}", HEAP.stats());
    match HEAP.damaged() {
        0 => {}
        slots => _ = write!(line, "; {slots} SLOTS WRITTEN TO AFTER THEIR FREE"),
    }
    if variable(c"NBBS_MALLOC_AUDIT").is_some() {
        _ = match HEAP.audit() {
            Ok(()) => write!(line, "; in order"),
            Err(error) => write!(line, "; NOT IN ORDER: {error}"),
        };
    }
    _ = writeln!(line);
    line.send(file);
    // SAFETY: the file was just opened.
    unsafe { libc::close(file) };
}
