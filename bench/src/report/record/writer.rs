//! Writes a record while the run is in progress.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::Serialize;
use serde_json::{Value, json};

use super::Header;

/// The file of a record. If the run is killed at any time, everything added before can be read.
pub struct Writer {
    file: File,
    /// Whether each piece becomes a zstd frame of its own.
    compressed: bool,
    rows: u64,
}

impl Writer {
    /// Begins a run with its header; compressed if the path ends in `.zst`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let compressed = path.extension().is_some_and(|extension| extension == "zst");
        let mut writer = Self { file: File::create(path)?, compressed, rows: 0 };
        writer.write(&line(header)?)?;
        Ok(writer)
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
        self.write(&line(&json!({ "skipped": what }))?)
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
        if self.compressed {
            self.file.write_all(&compress_to_vec(text.as_bytes(), CompressionLevel::Fastest))
        } else {
            self.file.write_all(text.as_bytes())
        }
    }
}

fn line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}
