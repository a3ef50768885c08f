//! How a program ends that frees what it must not: with a line on standard error, which takes no memory.

use core::ffi::c_int;
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

    /// Writes the line to a file, if that can be written to.
    pub fn send(&self, file: c_int) {
        // SAFETY: the line has so many bytes.
        unsafe { libc::write(file, self.bytes.as_ptr().cast(), self.length) };
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

/// Ends the program because of what a function was called with.
#[cold]
pub fn fail(function: &str, error: FreeError) -> ! {
    let mut line = Line::new();
    _ = writeln!(line, "nbbs: {function}: {error}");
    line.send(libc::STDERR_FILENO);
    // SAFETY: it never returns.
    unsafe { libc::abort() }
}
