//! What is told of misuse to a program that has set no hook: a line on standard error.

#[cfg(all(feature = "std", unix))]
pub(super) const HOOK: *mut () = printed::notice as *mut ();

// Without `std` there is nowhere to print to; elsewhere it is not done.
#[cfg(not(all(feature = "std", unix)))]
pub(super) const HOOK: *mut () = core::ptr::null_mut();

#[cfg(all(feature = "std", unix))]
mod printed {
    use core::ffi::{c_int, c_void};
    use core::fmt::Write;
    use core::sync::atomic::{AtomicU32, Ordering};

    use crate::error::{Cut, Error};

    unsafe extern "C" {
        fn write(file: c_int, text: *const c_void, bytes: usize) -> isize;
    }

    /// A program that goes wrong in a loop is to fill no disk.
    const MOST_LINES: u32 = 10;
    const LINE: usize = 200;
    const STANDARD_ERROR: c_int = 2;

    static LINES: AtomicU32 = AtomicU32::new(0);

    /// # Safety
    /// `error` leads to an error.
    pub(super) unsafe extern "C" fn notice(_context: *mut c_void, error: *const Error) {
        // Relaxed: a count. Threads that meet here may print a line more each.
        let line = LINES.load(Ordering::Relaxed) + 1;
        if line > MOST_LINES {
            return;
        }
        LINES.store(line, Ordering::Relaxed);
        // SAFETY: by the contract.
        let error = unsafe { error.read() };
        let end = if line == MOST_LINES { " (no more is printed)" } else { "" };
        let mut text = [0; LINE];
        let mut cut = Cut::new(&mut text);
        // Writing to a `Cut` never fails.
        _ = writeln!(cut, "nbbs: nb_free: {error}{end}");
        let len = cut.end().min(LINE - 1);
        // `write` itself, which handlers may call: what Rust and C keep on top of it has locks.
        // SAFETY: so many bytes are there. Whether anybody reads them is not ours to know.
        unsafe { write(STANDARD_ERROR, text.as_ptr().cast(), len) };
    }
}
