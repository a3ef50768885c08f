//! A file that a run replaces, and that keeps what it held until there is something to replace it with.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file that is opened when a run begins, so that one that cannot be written is refused at once, and emptied when the
/// run has something to write: a run that fails before that loses nothing.
pub struct Replaced {
    file: File,
    is_emptied: bool,
}

impl Replaced {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file, is_emptied: false })
    }

    /// Writes after what was written before; the first time, in place of what the file held.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A pipe or device has no length.
        if !self.is_emptied && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.is_emptied = true;
        self.file.write_all(bytes)
    }
}
