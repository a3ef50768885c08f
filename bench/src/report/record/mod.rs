//! Records: the rows of the benchmarks, with when, where and how they were measured.
//!
//! A record is JSON lines, zstd-compressed or plain. A line with the key `record` is a header, and says
//! where the rows after it come from; the first line is one. Records joined one behind the other are a
//! record. A row that comes again, of the same case and allocator, replaces the one before.

mod entry;
mod error;
mod header;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::Deserialize;
use serde_json::Value;

pub use entry::{Case, Entry};
pub use error::{Fault, RecordError};
pub use header::{FORMAT, Header, Versions};

use crate::trace::decode::{Frames, MAGIC};
use crate::trace::shorten;

/// One run or several.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The parts' headers.
    pub headers: Vec<Header>,
    pub entries: Vec<Entry>,
    /// Where the row of each case and allocator is.
    places: HashMap<(Case, String), usize>,
}

impl Record {
    /// No rows yet.
    pub fn new(header: Header) -> Self {
        Self { headers: vec![header], ..Self::default() }
    }

    /// Reads a record's file.
    ///
    /// # Errors
    /// The line that is wrong, and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = path.display().to_string();
        let failed = |line, fault| RecordError { file: file.clone(), line, fault };
        let bytes = std::fs::read(path).map_err(|error| failed(0, Fault::Unreadable(error)))?;
        let text: Box<dyn Read> = match bytes.starts_with(&MAGIC) {
            true => Box::new(Frames::new(&bytes)),
            false => Box::new(&bytes[..]),
        };
        let mut record = Self::default();
        for (line, number) in BufReader::new(text).lines().zip(1..) {
            let line = line.map_err(|error| failed(number, Fault::Damaged(error)))?;
            if !line.trim().is_empty() {
                record.read_line(&line).map_err(|fault| failed(number, fault))?;
            }
        }
        if record.entries.is_empty() {
            return Err(failed(0, Fault::Empty));
        }
        Ok(record)
    }

    fn read_line(&mut self, line: &str) -> Result<(), Fault> {
        let value: Value = serde_json::from_str(line).map_err(|error| not_json(&error))?;
        let object = value.as_object().ok_or_else(|| Fault::NotJson(shorten(line)))?;
        match object.get("record") {
            Some(format) if *format == FORMAT => {
                self.headers
                    .push(Header::deserialize(&value).map_err(|e| Fault::Header(e.to_string()))?);
            }
            Some(format) => return Err(Fault::Format(format.to_string())),
            None if self.headers.is_empty() => return Err(Fault::NoHeader),
            None => self.add(&value)?,
        }
        Ok(())
    }

    /// Adds a row, or replaces the one of the same case and allocator.
    ///
    /// # Errors
    /// The row lacks something, or has a figure that cannot be.
    pub fn add(&mut self, row: &Value) -> Result<(), Fault> {
        let entry = Entry::deserialize(row).map_err(|e| Fault::Row(e.to_string()))?;
        entry.impossible().map_or(Ok(()), |what| Err(Fault::Impossible(what)))?;
        self.put(entry);
        Ok(())
    }

    fn put(&mut self, entry: Entry) {
        let key = (entry.case(), entry.allocator.clone());
        let place = *self.places.entry(key).or_insert(self.entries.len());
        match self.entries.get_mut(place) {
            Some(before) => *before = entry,
            None => self.entries.push(entry),
        }
    }

    /// Appends another record.
    pub fn join(&mut self, other: Self) {
        self.headers.extend(other.headers);
        other.entries.into_iter().for_each(|entry| self.put(entry));
    }
}

/// The lines of a record: without what is null, and compressed for a file that is named `.zst`.
///
/// # Errors
/// None that a benchmark's rows can cause.
pub fn to_bytes(header: &Header, rows: &[Value], path: &Path) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_string(header)? + "\n";
    for row in rows {
        let mut row = row.clone();
        if let Some(object) = row.as_object_mut() {
            object.retain(|_, value| !value.is_null());
        }
        text += &(serde_json::to_string(&row)? + "\n");
    }
    let compressed = path.extension().is_some_and(|extension| extension == "zst");
    Ok(match compressed {
        true => compress_to_vec(text.as_bytes(), CompressionLevel::Fastest),
        false => text.into_bytes(),
    })
}

/// What is wrong with a line, which the parser takes for the first.
fn not_json(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    Fault::NotJson(format!("{what} at column {}", error.column()))
}
