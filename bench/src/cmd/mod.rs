//! The subcommands, one file each. Each returns whether everything was as it should be.

pub mod bench;
pub mod compare;
pub mod report;

use std::path::Path;

use crate::output::warn;
use crate::report::record::{Record, RecordError};

/// Opens a record. Warns on standard error of its incomplete runs.
fn open_record(path: &Path) -> Result<Record, RecordError> {
    let record = Record::open(path)?;
    for warning in record.runs.iter().filter_map(|run| run.warning()) {
        warn(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(record)
}
