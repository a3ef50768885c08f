//! The verbs, one file each. Each says whether everything was as it should be.

pub mod compare;
pub mod limit;
pub mod replay;
pub mod report;
pub mod requests;
pub mod suite;

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::report::record::{Record, RecordError};

/// Prints a paragraph.
fn print(text: &str) -> anyhow::Result<()> {
    // Not `println!`, which panics when the reader has gone.
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Says something on standard error, if that is open.
fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Opens a record; says on standard error what of it is incomplete.
fn open_record(path: &Path) -> Result<Record, RecordError> {
    let record = Record::open(path)?;
    for warning in record.runs.iter().filter_map(|run| run.warning()) {
        warn(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(record)
}

/// Prints a row of `--json`.
fn print_json(row: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string(row)?)
}
