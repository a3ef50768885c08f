//! A file that a run replaces, and that keeps what it held until there is something to replace it with.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::trace::decode::{Frames, MAGIC};
use crate::trace::shorten;

/// What a file holds that may be replaced. Any other is kept: a mistyped name must not cost a file.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// What it is called.
    pub name: &'static str,
    /// How its text begins.
    pub begins: &'static str,
}

impl Content {
    /// Checks that a file holds this, or nothing.
    fn check(self, path: &Path) -> io::Result<()> {
        // A pipe or device has nothing to lose.
        if !fs::metadata(path)?.is_file() {
            return Ok(());
        }
        let Self { name, begins } = self;
        let (found, begins) = (beginning(path)?, begins.as_bytes());
        let first = found.trim_ascii_start();
        let is_such = first.get(..begins.len()).is_some_and(|at| at.eq_ignore_ascii_case(begins));
        if found.is_empty() || is_such {
            return Ok(());
        }
        let found = described(&found);
        Err(io::Error::other(format!("it is no {name}, but {found}; only a {name} is replaced")))
    }
}

/// Reads how the text of a file begins, which may be compressed.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    /// More than a block of zstd, in which the text begins.
    const ENOUGH: u64 = 1 << 18;
    /// More than is looked at.
    const TEXT: u64 = 1000;
    let mut bytes = Vec::new();
    File::open(path)?.take(ENOUGH).read_to_end(&mut bytes)?;
    if !bytes.starts_with(&MAGIC) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    // It may end in the middle, or be damaged: what could be read before that says what it is.
    let _ = Frames::new(&bytes).take(TEXT).read_to_end(&mut text);
    Ok(if text.is_empty() { bytes } else { text })
}

/// Says what a file holds, by how it begins.
fn described(bytes: &[u8]) -> String {
    let line = bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
    match str::from_utf8(line.trim_ascii_end()) {
        Ok(line) if !line.contains(char::is_control) => format!("begins with {:?}", shorten(line)),
        _ => "data that is not text".to_owned(),
    }
}

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
    /// It cannot be written, or holds something else.
    pub fn open(path: &Path, content: Content) -> io::Result<Self> {
        let was_there = fs::symlink_metadata(path).is_ok();
        let file = opened(path)?;
        if was_there {
            content.check(path)?;
        } else {
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

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::Replaced;
    use crate::report::page::PAGE;
    use crate::report::record::RECORD;

    #[test]
    fn a_file_is_there_once_something_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let open = |path| Replaced::open(path, RECORD);
        for written in ["{\"record\":1}", "{\"record\":2}"] {
            let was_there = fs::read_to_string(&path).ok();
            let mut replaced = open(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).ok(), was_there);
            replaced.write(written.as_bytes()).unwrap();
            replaced.write(b" and more").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{written} and more"));
        }
        assert!(open(directory.path()).is_err());
        assert!(open(&path.join("nowhere")).is_err());
    }

    #[test]
    fn only_its_like_is_replaced() {
        const OF_RECORD: &[u8] = b"{\"record\":2,\"date\":\"today\"}\n{}\n";
        const OF_PAGE: &[u8] = b"\n<!DOCTYPE html>\n<html>";
        let zstd = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let frame = zstd(OF_RECORD);
        let cut = [&frame[..], &frame[..frame.len() / 2]].concat();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (held, [is_record, is_page], found) in [
            (b"".to_vec(), [true, true], ""),
            (OF_RECORD.to_vec(), [true, false], "but begins with \"{\\\"record\\\":2,"),
            (zstd(OF_RECORD), [true, false], "but begins with \"{\\\"record\\\":2,"),
            (cut, [true, false], "but begins with \"{\\\"record\\\":2,"),
            (OF_PAGE.to_vec(), [false, true], "but begins with \"<!DOCTYPE html>\";"),
            (b"Dear diary,\nrain".to_vec(), [false, false], "but begins with \"Dear diary,\";"),
            (b"{}".to_vec(), [false, false], "but begins with \"{}\";"),
            (zstd(b"# page trace v1: x\n"), [false, false], "begins with \"# page trace v1: x\";"),
            (b"\x7fELF\x02".to_vec(), [false, false], "but data that is not text;"),
            (vec![0xff; 9], [false, false], "but data that is not text;"),
            (b"\x28\xb5\x2f\xfd\x01".to_vec(), [false, false], "but data that is not text;"),
        ] {
            fs::write(&path, &held).unwrap();
            for (content, is_such) in [(RECORD, is_record), (PAGE, is_page)] {
                let refused = Replaced::open(&path, content).err().map(|error| error.to_string());
                assert_eq!(refused.is_none(), is_such, "{content:?} {refused:?} {held:?}");
                let told = refused.is_none_or(|error| {
                    error.contains(found)
                        && error.contains(&format!("only a {} is replaced", content.name))
                });
                assert!(told, "{content:?}, {found}");
            }
            assert_eq!(fs::read(&path).unwrap(), held);
        }
    }
}
