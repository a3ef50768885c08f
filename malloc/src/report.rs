//! What the heap was used for, at the end of the program.

use core::ffi::{CStr, c_char, c_int};
use core::fmt::Write;

use crate::environment;
use crate::line::{Line, Text, say};
use crate::system::{errno, uncancelled};
use crate::thread::HEAP;

unsafe extern "C" {
    static program_invocation_short_name: *const c_char;
}

/// Called as the program exits.
#[used]
// SAFETY: the loader calls each function in this section once, and none of them needs arguments.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Appends a line to the file that `NBBS_MALLOC_REPORT` names: the program, its number, [`nbbs_heap::Stats`]; with the
/// feature `poison`, how many slots were written to while they were free, if any were; with `NBBS_MALLOC_AUDIT=1`,
/// whether the bookkeeping is in order, which takes that no other thread uses the heap just then.
extern "C" fn at_exit() {
    uncancelled(write_report);
}

fn write_report() {
    environment::with(c"NBBS_MALLOC_REPORT", |path| {
        // A pipe that nobody reads is refused, rather than waited for.
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the path ends with a zero byte.
        let file: c_int = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
        let is_written = file >= 0 && report().send(file);
        if !is_written {
            let (path, error) = (Text(path), errno());
            say(format_args!("NBBS_MALLOC_REPORT={path}: cannot be written to: errno {error}"));
        }
        if file >= 0 {
            // SAFETY: the file was just opened.
            unsafe { libc::close(file) };
        }
    });
}

fn report() -> Line {
    let mut line = Line::new();
    // SAFETY: the C library sets the name before a program begins, and it ends with a zero byte.
    let name = unsafe { CStr::from_ptr(program_invocation_short_name) };
    // SAFETY: it only answers.
    let number = unsafe { libc::getpid() };
    _ = write!(line, "{}[{number}]: {}", Text(name), HEAP.stats());
    match HEAP.damaged() {
        0 => {}
        slots => _ = write!(line, "; {slots} SLOTS WRITTEN TO AFTER THEIR FREE"),
    }
    if environment::with(c"NBBS_MALLOC_AUDIT", |value| value == c"1") == Some(true) {
        _ = match HEAP.audit() {
            Ok(()) => write!(line, "; in order"),
            Err(error) => write!(line, "; not in order, or in use: {error}"),
        };
    }
    _ = writeln!(line);
    line
}
