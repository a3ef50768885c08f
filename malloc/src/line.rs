//! Lines that are written without memory: on standard error, and in reports.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};

use nbbs_heap::FreeError;

/// A line that is written in one call, cut off where it is too long.
pub struct Line {
    bytes: [u8; 400],
    length: usize,
}

impl Line {
    pub fn new() -> Self {
        Self { bytes: [0; 400], length: 0 }
    }

    /// Writes the line to a file. Returns whether that can be written to.
    pub fn send(&self, file: c_int) -> bool {
        // SAFETY: the first `length` bytes are within `bytes`.
        unsafe { libc::write(file, self.bytes.as_ptr().cast(), self.length) >= 0 }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

/// A string of C, as far as it can be shown: at most 100 bytes.
pub struct Text<'a>(pub &'a CStr);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_bytes();
        bytes[..bytes.len().min(100)].utf8_chunks().try_for_each(|chunk| f.write_str(chunk.valid()))
    }
}

/// Writes a line to standard error.
#[cold]
pub fn say(what: fmt::Arguments<'_>) {
    let mut line = Line::new();
    _ = writeln!(line, "nbbs: {what}");
    line.send(libc::STDERR_FILENO);
}

/// Ends the program because of what a function was called with.
#[cold]
pub fn fail(function: &str, error: FreeError) -> ! {
    say(format_args!("{function}: {error}"));
    // SAFETY: it may be called at any time.
    unsafe { libc::abort() }
}
