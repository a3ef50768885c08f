//! Reads page-allocation traces; `heap` reads those of heaps.
//!
//! A trace is zstd-compressed text. Its first line is `# page trace v1: NAME`; further lines that begin with `#` are
//! comments. Each other line is one event, in the order in which events happened: `+CPU ORDER ID` allocates `2^ORDER`
//! pages of 4 KiB as block ID, and `-CPU ID` frees block ID. An ID is allocated only once.

pub mod decode;
mod error;
mod heap;
mod lines;
mod parse;

use std::path::Path;

pub use error::{Fault, TraceError};
pub use heap::{HeapEvent, HeapTrace};
pub use lines::shorten;

/// The sample that ships with the project.
const SAMPLE: &[u8] = include_bytes!("../../../traces/redis.trace.zst");

/// The highest number of a CPU.
pub const MAX_CPU: u64 = 1023;

/// The largest order that any arena can have.
pub const MAX_ORDER: u64 = nbbs::MAX_ORDERS as u64 - 1;

/// A page-allocation trace.
#[derive(Debug)]
pub struct Trace {
    /// Its name in the table, which lives as long as the program.
    pub name: &'static str,
    /// The number of CPUs: CPUs that have events have lower numbers.
    pub cpus: usize,
    /// The order of each block, in the sequence of allocation.
    pub orders: Vec<u8>,
    /// All events in the order in which they happened.
    pub events: Vec<Event>,
    /// The most units that were live at once.
    pub peak_units: u64,
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The CPU on which it happened.
    pub cpu: usize,
    /// What happened.
    pub action: Action,
    /// The number of the block: its place among the allocations of the trace.
    pub block: usize,
}

/// What an event does to its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Allocates it.
    Alloc,
    /// Frees it.
    Free,
}

impl Trace {
    /// Reads the sample that ships with the project.
    pub fn sample() -> Result<Self, TraceError> {
        Ok(Self { name: "redis", ..parse::trace("redis", SAMPLE)? })
    }

    /// Reads a trace file. Its name in the table is the file name up to the first dot that has something before it.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let (shown, bytes, name) = read_file(path)?;
        Ok(Self { name: name.leak(), ..parse::trace(&shown, &bytes)? })
    }
}

/// Reads a file: returns the path as messages show it, the contents, and the file name up to the first dot that has
/// something before it.
fn read_file(path: &Path) -> Result<(String, Vec<u8>, String), TraceError> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| TraceError {
        file: shown.clone(),
        line: 0,
        fault: Fault::Unreadable(error),
    })?;
    let name = path.file_name().map_or(shown.clone(), |name| name.to_string_lossy().into_owned());
    let name = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
    Ok((shown, bytes, name))
}

#[cfg(test)]
mod tests;
