//! What becomes of the rows of a run: a page, a record, or both.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::page;
use super::pictures::Pictures;
use super::record::{Header, Record, Writer};
use crate::trace::Trace;

/// The rows of a run while it goes on.
pub struct Kept {
    html: Option<(Place, Record)>,
    record: Option<(PathBuf, Writer)>,
}

/// A page that is written at the end, and opened at the beginning: a run may take hours.
struct Place {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens the files, if any are asked for, and begins the record.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn new(html: Option<&Path>, record: Option<&Path>) -> anyhow::Result<Self> {
        let header = Header::of_this_run();
        let html = html.map(Place::open).transpose()?;
        let begin = |path: &Path| {
            let writer = Writer::create(path, &header).with_context(|| refused(path))?;
            anyhow::Ok((path.to_owned(), writer))
        };
        let record = record.map(begin).transpose()?;
        Ok(Self { html: html.map(|place| (place, Record::new(header.clone()))), record })
    }

    /// Adds rows, if anybody wants them: those of the record are in its file when this returns.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn add(&mut self, rows: &[impl Serialize]) -> anyhow::Result<()> {
        if self.html.is_none() && self.record.is_none() {
            return Ok(());
        }
        let rows = rows.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some((path, writer)) = &mut self.record {
            writer.add(&rows).with_context(|| refused(path))?;
        }
        if let Some((_, record)) = &mut self.html {
            rows.iter().try_for_each(|row| record.add(row))?;
        }
        Ok(())
    }

    /// Adds what is not measured, and why.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn skip(&mut self, what: &str) -> anyhow::Result<()> {
        if let Some((path, writer)) = &mut self.record {
            writer.skip(what).with_context(|| refused(path))?;
        }
        for run in self.html.iter_mut().flat_map(|(_, record)| &mut record.runs) {
            run.skipped.push(what.to_owned());
        }
        Ok(())
    }

    /// Ends the record and writes the page.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some((path, writer)) = self.record {
            writer.end().with_context(|| refused(&path))?;
        }
        if let Some((place, mut record)) = self.html {
            record.runs.iter_mut().for_each(|run| run.ended = true);
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
        let file = File::create(path).with_context(|| refused(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn write_page(mut self, record: &Record) -> anyhow::Result<()> {
        let pictures = Pictures::of(&Trace::sample()?)?;
        let page = page::render(record, Some(&pictures))?;
        self.file.write_all(page.as_bytes()).with_context(|| refused(&self.path))
    }
}

fn refused(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
