//! Replays a trace on an allocator.
//!
//! ```text
//! plan     who does what, in the order of the trace      course   threads that follow a trace, in step where they must
//! verify   whether the oracle has anything against it    report   the table, and who was faster in plain words
//! ```

pub mod course;
mod plan;
pub mod report;
pub mod verify;

use std::ffi::OsString;

#[cfg(feature = "suite")]
pub use plan::ReplayPlan;

use crate::args::UNIT_BYTES;
use crate::trace::{HeapTrace, Trace};

/// A trace that is replayed.
pub struct Replayed {
    /// The option and value that ask for it on the command line, unless it is built in.
    pub asked: Option<[OsString; 2]>,
    pub events: Events,
}

/// The events of a trace.
pub enum Events {
    /// Page allocations.
    Pages(Trace),
    /// Calls of malloc by a program.
    Heap(HeapTrace),
}

impl Replayed {
    pub fn pages(&self) -> Option<&Trace> {
        if let Events::Pages(trace) = &self.events { Some(trace) } else { None }
    }

    pub fn heap(&self) -> Option<&HeapTrace> {
        if let Events::Heap(trace) = &self.events { Some(trace) } else { None }
    }

    /// Returns its name in tables.
    pub fn name(&self) -> &'static str {
        match &self.events {
            Events::Pages(trace) => trace.name,
            Events::Heap(trace) => trace.name,
        }
    }

    /// Returns the most threads that can replay it: as many as took part in it.
    pub fn threads(&self) -> usize {
        match &self.events {
            Events::Pages(trace) => trace.cpus,
            Events::Heap(trace) => trace.threads,
        }
    }

    /// Returns how many operations it has.
    pub fn ops(&self) -> usize {
        match &self.events {
            Events::Pages(trace) => trace.events.len(),
            Events::Heap(trace) => trace.events.len(),
        }
    }

    /// Returns the bytes that it holds at its peak.
    pub fn peak_bytes(&self) -> u64 {
        match &self.events {
            Events::Pages(trace) => trace.peak_units.saturating_mul(UNIT_BYTES),
            Events::Heap(trace) => trace.peak_bytes,
        }
    }
}
