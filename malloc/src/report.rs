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
    let audits = audits();
    let is_asked_for = environment::with(c"NBBS_MALLOC_REPORT", |path| append(path, audits));
    if audits && is_asked_for.is_none() {
        say(format_args!("NBBS_MALLOC_AUDIT=1: no effect without NBBS_MALLOC_REPORT"));
    }
}

/// Returns whether `NBBS_MALLOC_AUDIT` is 1. Says so if it is neither that nor 0.
fn audits() -> bool {
    let audits = environment::with(c"NBBS_MALLOC_AUDIT", |value| {
        if value != c"0" && value != c"1" {
            say(format_args!("NBBS_MALLOC_AUDIT={}: expected 0 or 1", Text(value)));
        }
        value == c"1"
    });
    audits == Some(true)
}

/// Appends the report to a file. Says so if that cannot be written to.
fn append(path: &CStr, audits: bool) {
    // A pipe that nobody reads is refused, rather than waited for.
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero byte.
    let file: c_int = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    let is_written = file >= 0 && report(audits).send(file);
    if !is_written {
        let (path, error) = (Text(path), errno());
        let why = reason(error);
        say(format_args!("NBBS_MALLOC_REPORT={path}: cannot be written to: {why}errno {error}"));
    }
    if file >= 0 {
        // SAFETY: the file was just opened.
        unsafe { libc::close(file) };
    }
}

/// Describes the usual reasons why a file cannot be written to; `strerror` may allocate.
fn reason(error: c_int) -> &'static str {
    match error {
        libc::ENOENT => "no such file or directory, ",
        libc::EACCES => "permission denied, ",
        libc::EPERM => "operation not permitted, ",
        libc::ENXIO => "no such device or address, or a pipe that nobody reads, ",
        libc::ENOTDIR => "not a directory, ",
        libc::EISDIR => "is a directory, ",
        libc::ENOSPC => "no space left on the device, ",
        libc::EROFS => "read-only file system, ",
        libc::EAGAIN => "a pipe that is full, ",
        _ => "",
    }
}

fn report(audits: bool) -> Line {
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
    if audits {
        _ = match HEAP.audit() {
            Ok(()) => write!(line, "; in order"),
            Err(error) => write!(line, "; not in order, or in use: {error}"),
        };
    }
    _ = writeln!(line);
    line
}
