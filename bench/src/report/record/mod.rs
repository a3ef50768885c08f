//! Records: the rows of the benchmarks, with when, where and how they were measured.
//!
//! A record consists of JSON lines, zstd-compressed or plain. The first line is a header: a line with the key `record`,
//! which says where the rows after it come from. A line with the key `skipped` says what was not measured, and why. A
//! line with the key `end` ends a run, and counts its rows. A run without an end is incomplete: it was killed, perhaps
//! in the middle of a line. Records that are concatenated form a record. A later row of the same case and allocator
//! replaces an earlier one.

mod error;
mod header;
mod run;
mod writer;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use serde_json::Value;

pub use error::{Fault, RecordError};
pub use header::{Header, Machine, Versions};
pub use run::Run;
pub use writer::Writer;

use crate::keyed::keyed;
use crate::located::Located;
use crate::report::replaced::Content;
use crate::row::{Case, Name, Row};
use crate::trace::decode::{Frames, MAGIC};
use crate::trace::shorten;

/// What tells records from other files.
pub const RECORD: Content = Content { name: "record", begins: "{\"record\"" };

/// A record of one or more runs.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The runs.
    pub runs: Vec<Run>,
    pub rows: Vec<Row>,
    /// The place of the row of each case and allocator.
    places: HashMap<(Case, Name), usize>,
}

impl Record {
    /// Creates a record without rows.
    #[cfg(feature = "suite")]
    pub fn new(header: Header) -> Self {
        Self { runs: vec![Run::new(header)], ..Self::default() }
    }

    /// Reads the file of a record.
    ///
    /// # Errors
    /// A line is wrong; the error names the line and its fault.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let mut record = Self::default();
        let mut line = 0;
        let read = record.read_file(path, &mut line);
        read.map_err(|fault| Located { file: path.display().to_string(), line, fault })?;
        Ok(record)
    }

    fn read_file(&mut self, path: &Path, number: &mut usize) -> Result<(), Fault> {
        let bytes = std::fs::read(path).map_err(Fault::Unreadable)?;
        let text: Box<dyn Read> = match bytes.starts_with(&MAGIC) {
            true => Box::new(Frames::new(&bytes)),
            false => Box::new(&bytes[..]),
        };
        let mut text = BufReader::new(text);
        let mut line = String::new();
        loop {
            line.clear();
            *number += 1;
            match text.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) if is_cut_off(&line) && self.may_be_cut_off() => break,
                Ok(_) if line.trim().is_empty() => {}
                Ok(_) => self.read_line(line.trim_end())?,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && self.may_be_cut_off() => {
                    break;
                }
                Err(error) => return Err(Fault::Damaged(error)),
            }
        }
        *number = 0;
        if self.rows.is_empty() { Err(Fault::Empty) } else { Ok(()) }
    }

    /// Returns whether the latest run lacks its end.
    fn may_be_cut_off(&self) -> bool {
        self.runs.last().is_some_and(Run::lacks_end)
    }

    fn read_line(&mut self, line: &str) -> Result<(), Fault> {
        let value: Value = serde_json::from_str(line).map_err(|error| not_json(&error, line))?;
        let object = value.as_object().ok_or_else(|| Fault::NotJson(shorten(line)))?;
        if let Some(format) = object.get("record") {
            if !Header::reads(format) {
                return Err(Fault::Format(format.to_string()));
            }
            let header: Header = keyed(&value).map_err(Fault::Header)?;
            self.runs.push(Run::new(header));
            return Ok(());
        }
        let run = self.runs.last_mut().filter(|run| !run.ended).ok_or(Fault::NoHeader)?;
        if let Some(told) = object.get("end") {
            run.ended = *told == run.rows;
            let (told, seen) = (told.to_string(), run.rows);
            return if run.ended { Ok(()) } else { Err(Fault::End { told, seen }) };
        }
        if let Some(skipped) = object.get("skipped") {
            let what = skipped.as_str().ok_or_else(|| Fault::Skipped(skipped.to_string()))?;
            run.skipped.push(what.to_owned());
            return Ok(());
        }
        self.add(&value)
    }

    /// Adds a row, or replaces the one of the same case and allocator.
    ///
    /// # Errors
    /// The row lacks something, or has an impossible figure.
    pub fn add(&mut self, row: &Value) -> Result<(), Fault> {
        let mut row = Row::read(row).map_err(Fault::Row)?;
        if let Some(run) = self.runs.last_mut() {
            run.rows += 1;
            row.cpus = Some(run.header.machine.cpus);
        }
        self.put(row);
        Ok(())
    }

    fn put(&mut self, row: Row) {
        let key = (row.case(), row.allocator.clone());
        let place = *self.places.entry(key).or_insert(self.rows.len());
        match self.rows.get_mut(place) {
            Some(before) => *before = row,
            None => self.rows.push(row),
        }
    }

    /// Appends another record.
    #[cfg(feature = "suite")]
    pub fn join(&mut self, other: Self) {
        self.runs.extend(other.runs);
        other.rows.into_iter().for_each(|row| self.put(row));
    }
}

/// Returns whether a line ends in the middle. Nothing but its newline may be missing.
fn is_cut_off(line: &str) -> bool {
    !line.ends_with('\n') && serde_json::from_str::<Value>(line).is_err()
}

/// Returns the fault of a line. The parser takes every line for line 1, so its line number is left out.
fn not_json(error: &serde_json::Error, line: &str) -> Fault {
    let (text, column) = (error.to_string(), error.column());
    let what = text.split(" at line ").next().unwrap_or(&text);
    Fault::NotJson(match word_at(line, column) {
        "" => format!("{what} at column {column}"),
        word => format!("{what} at column {column}: {}", shorten(word)),
    })
}

/// Returns the number or word at a column of a line of JSON, from 1, or nothing if there is none.
fn word_at(line: &str, column: usize) -> &str {
    let ends = |letter: char| ",:{}[]\"".contains(letter) || letter.is_whitespace();
    let Some((before, after)) = line.split_at_checked(column.saturating_sub(1)) else { return "" };
    let start = before.trim_end_matches(|letter| !ends(letter)).len();
    let end = after.find(ends).unwrap_or(after.len());
    &line[start..before.len() + end]
}
