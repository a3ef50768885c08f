//! The verbs, one file each. Each says whether everything was as it should be.

pub mod compare;
pub mod cores;
pub mod limit;
pub mod replay;
#[cfg(feature = "suite")]
pub mod report;
pub mod requests;
#[cfg(feature = "suite")]
pub mod suite;

use std::path::Path;

use crate::args::{Bench, Measure};
use crate::output::warn;
use crate::report::record::{Record, RecordError};

/// `nbbs bench`: workloads by name, or one with a command line of its own.
pub fn bench(measure: Measure) -> anyhow::Result<bool> {
    match measure {
        Measure { own: Some(Bench::Limit(args)), .. } => limit::run(&args),
        Measure { own: Some(Bench::Requests(args)), .. } => requests::run(&args),
        Measure { own: Some(Bench::Cores(args)), .. } => cores::run(&args),
        #[cfg(feature = "suite")]
        Measure { own: None, suite: Some(args) } => suite::run(&args),
        #[cfg(not(feature = "suite"))]
        Measure { own: None, suite: Some(_) } => Err(crate::without::refusal()),
        Measure { own: None, suite: None } => anyhow::bail!("it takes the name of a workload"),
    }
}

/// Opens a record; says on standard error what of it is incomplete.
fn open_record(path: &Path) -> Result<Record, RecordError> {
    let record = Record::open(path)?;
    for warning in record.runs.iter().filter_map(|run| run.warning()) {
        warn(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(record)
}
