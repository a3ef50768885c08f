//! Writes the file of the page.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{PAGE, render};
use crate::report::keep::refused;
use crate::report::pictures::Pictures;
use crate::report::record::{Header, Record};
use crate::report::replaced::Replaced;
use crate::trace::Trace;

/// A page that is written at the end of a run, and opened at its beginning.
pub struct Awaited {
    place: Place,
    record: Record,
}

struct Place {
    path: PathBuf,
    file: Replaced,
}

impl Awaited {
    /// Opens the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { place: Place::open(path)?, record: Record::new(Header::of_this_run()) })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// A row has a figure that no measurement can have, which would be a fault of this command.
    pub fn add(&mut self, rows: &[Value]) -> anyhow::Result<()> {
        Ok(rows.iter().try_for_each(|row| self.record.add(row))?)
    }

    /// Adds what is not measured, and why.
    pub fn skip(&mut self, what: &str) {
        self.record.runs.iter_mut().for_each(|run| run.skipped.push(what.to_owned()));
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.record.runs.iter_mut().for_each(|run| run.ended = true);
        self.place.write(&self.record)
    }
}

/// Writes the page of a record.
///
/// # Errors
/// The file cannot be written.
pub fn write_page(record: &Record, path: &Path) -> anyhow::Result<()> {
    Place::open(path)?.write(record)
}

impl Place {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = Replaced::open(path, PAGE).with_context(|| refused(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn write(mut self, record: &Record) -> anyhow::Result<()> {
        let pictures = Pictures::of(&Trace::sample()?)?;
        let page = render(record, Some(&pictures))?;
        self.file.write(page.as_bytes()).with_context(|| refused(&self.path))
    }
}
