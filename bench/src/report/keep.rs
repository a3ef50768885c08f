//! What becomes of the rows of a run: a page, a record, or both.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

use super::page;
use super::pictures::Pictures;
use super::record::{self, Header, Record};
use crate::trace::Trace;

/// The rows of a run while it goes on.
pub struct Kept {
    header: Header,
    rows: Vec<Value>,
    html: Option<Place>,
    record: Option<Place>,
}

/// A file that is written at the end, and opened at the beginning: a run may take hours.
struct Place {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens the files, if any are asked for.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn new(html: Option<&Path>, record: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            header: Header::of_this_run(),
            rows: Vec::new(),
            html: html.map(Place::open).transpose()?,
            record: record.map(Place::open).transpose()?,
        })
    }

    /// Adds rows, if anybody wants them.
    ///
    /// # Errors
    /// None for the rows of a benchmark.
    pub fn add(&mut self, rows: &[impl Serialize]) -> anyhow::Result<()> {
        if self.html.is_some() || self.record.is_some() {
            for row in rows {
                self.rows.push(serde_json::to_value(row)?);
            }
        }
        Ok(())
    }

    /// Writes the files.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some(place) = self.record {
            let bytes = record::to_bytes(&self.header, &self.rows, &place.path)?;
            place.write(&bytes)?;
        }
        if let Some(place) = self.html {
            let mut record = Record::new(self.header);
            self.rows.iter().try_for_each(|row| record.add(row))?;
            place.write_page(&record)?;
        }
        Ok(())
    }
}

/// Writes the page of a record.
///
/// # Errors
/// The file cannot be written.
pub fn write_page(record: &Record, path: &Path) -> anyhow::Result<()> {
    Place::open(path)?.write_page(record)
}

impl Place {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn write(mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = self.file.write_all(bytes);
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }

    fn write_page(self, record: &Record) -> anyhow::Result<()> {
        let pictures = Pictures::of(&Trace::sample()?)?;
        self.write(page::render(record, Some(&pictures))?.as_bytes())
    }
}
