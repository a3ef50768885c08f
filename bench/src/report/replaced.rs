//! A file that a run replaces, and that keeps what it held until there is something to replace it with.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is opened when a run begins, so that one that cannot be written is refused at once, and emptied when the
/// run has something to write: a run that fails or is interrupted before that loses nothing, and leaves none behind.
pub struct Replaced {
    path: PathBuf,
    /// `None` while there is no such file.
    file: Option<File>,
    is_emptied: bool,
}

impl Replaced {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let was_there = fs::symlink_metadata(path).is_ok();
        let file = opened(path)?;
        if !was_there {
            fs::remove_file(path)?;
        }
        let file = was_there.then_some(file);
        Ok(Self { path: path.to_owned(), file, is_emptied: false })
    }

    /// Writes after what was written before; the first time, in place of what the file held.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(opened(&self.path)?),
        };
        // A pipe or device has no length.
        if !self.is_emptied && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        self.is_emptied = true;
        file.write_all(bytes)
    }
}

fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Replaced;

    #[test]
    fn a_file_is_there_once_something_was_written() {
        let path = std::env::temp_dir().join(format!("nbbs-replaced-{}", std::process::id()));
        for written in ["first", "second"] {
            let was_there = fs::read_to_string(&path).ok();
            let mut replaced = Replaced::open(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).ok(), was_there);
            replaced.write(written.as_bytes()).unwrap();
            replaced.write(b" and more").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{written} and more"));
        }
        fs::remove_file(&path).unwrap();
        assert!(Replaced::open(&std::env::temp_dir()).is_err());
        assert!(Replaced::open(&path.join("nowhere")).is_err());
    }
}
