//! Writes a record while the run is in progress.

use std::io;
use std::path::Path;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Header, RECORD};
use crate::report::replaced::Replaced;

/// The file of a record. If the run is killed at any time, everything added before can be read.
pub struct Writer {
    file: Replaced,
    /// What is written with the first rows, or at the end.
    waiting: String,
    /// Whether each piece becomes a zstd frame of its own.
    compressed: bool,
    rows: u64,
}

impl Writer {
    /// Opens the file, compressed if its path ends in `.zst`. What it holds stays until there are rows.
    ///
    /// # Errors
    /// The file cannot be written, or holds no record.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let compressed = path.extension().is_some_and(|extension| extension == "zst");
        Ok(Self {
            file: Replaced::open(path, RECORD)?,
            waiting: line(header)?,
            compressed,
            rows: 0,
        })
    }

    /// Adds rows, without their null values.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, rows: &[Value]) -> io::Result<()> {
        let mut text = String::new();
        for row in rows {
            let mut row = row.clone();
            if let Some(object) = row.as_object_mut() {
                object.retain(|_, value| !value.is_null());
            }
            text += &line(&row)?;
        }
        self.rows += rows.len() as u64;
        self.write(&text)
    }

    /// Adds what was not measured, and why.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn skip(&mut self, what: &str) -> io::Result<()> {
        let text = line(&json!({ "skipped": what }))?;
        if self.rows > 0 {
            return self.write(&text);
        }
        self.waiting += &text;
        Ok(())
    }

    /// Ends the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        let rows = self.rows;
        self.write(&line(&json!({ "end": rows }))?)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let text = std::mem::take(&mut self.waiting) + text;
        if self.compressed {
            self.file.write(&compress_to_vec(text.as_bytes(), CompressionLevel::Fastest))
        } else {
            self.file.write(text.as_bytes())
        }
    }
}

fn line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}
