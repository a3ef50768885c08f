//! The workloads, by where they come from: what one is, and in `table` all of them.

mod churn;
mod first_failure;
mod frusa;
mod heap_random;
mod llfree;
mod paper;
mod replay;
mod table;
mod talc;
mod until_full;

use super::args::Suite;
use super::on_heap::HeapRound;
use super::own::Own;
use super::round::{OnPages, Part};
use super::worker::Worker;
use crate::clock::Clock;
use crate::market::Kind;
use crate::output::Output;
use crate::replay::Replayed;
use crate::row::Row;
use crate::trace::TraceError;
pub use table::WORKLOADS;

/// What is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Blocks of one order, which the command line gives.
    Asked,
    /// Single units.
    Units,
    /// Random orders.
    Mixed,
}

/// What each thread does.
pub struct Workload {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    pub orders: Orders,
    /// How many orders it goes above the one that is asked for.
    pub orders_above: u32,
    /// Blocks that a thread must have room for.
    pub blocks_per_thread: u64,
    /// What it can be run on.
    pub kinds: &'static [Kind],
    /// The fewest threads that it takes, and the most.
    pub threads: (usize, usize),
    /// Whether `all` has it.
    pub of_all: bool,
    /// What it is run with unless told otherwise, and with --quick.
    pub usual: Usual,
    pub quick: Usual,
    /// Whether its figures are those of single operations: as many rounds are timed so, and none is repeated.
    pub by_operation: bool,
    /// What is replayed: each trace has a table.
    pub traces: Option<ReadTraces>,
    /// Whether heaps have half of what the trace holds at its peak, unless told otherwise: they are to refuse.
    pub crowded: bool,
    /// What rows of it have that no others have.
    pub own: Option<&'static Own>,
    /// How its rows are printed.
    pub table: fn(&Workload, &[Row]) -> String,
    /// How to read its figures.
    pub footer: &'static str,
    pub run: Run,
}

/// What a workload is run with.
#[derive(Clone, Copy)]
pub struct Usual {
    pub threads: &'static [usize],
    /// Of blocks of back-ends, and of heaps.
    pub orders: &'static [u32],
    pub sizes: &'static [u32],
    pub arena_units: &'static [u64],
    pub heap_bytes: u64,
    pub rounds: usize,
}

/// 1 GiB of pages, 64 MiB of heap.
const USUAL: Usual = Usual {
    threads: &[1, 2, 4, 8, 16, 32],
    orders: &[0, 3, 6],
    sizes: &[0, 4, 7],
    arena_units: &[1 << 18],
    heap_bytes: 64 << 20,
    rounds: 5,
};

/// Less of everything.
const QUICK: Usual = Usual {
    threads: &[1, 2, 8],
    orders: &[0],
    sizes: &[3],
    arena_units: &[1 << 14],
    heap_bytes: 16 << 20,
    rounds: 3,
};

/// Reads the traces that are asked for.
pub type ReadTraces = fn(&Suite) -> Result<Vec<Replayed>, TraceError>;

/// What each thread does, by what it asks for.
#[derive(Clone, Copy)]
pub enum Run {
    /// Blocks by order.
    Blocks(fn(&mut Worker<'_>)),
    /// Memory by size and alignment.
    Heap(fn(&HeapRound<'_>) -> Vec<Part>),
    /// A thread that is put to sleep: module `suspended`.
    #[cfg(unix)]
    Suspended,
    /// A trace of page allocations.
    Pages(OnPages),
    /// Cases and contenders of its own.
    Cases(Cases),
}

/// A workload that knows its own cases.
#[derive(Clone, Copy)]
pub struct Cases {
    /// Steps of the progress bar; none if nobody that was asked for takes part.
    pub steps: fn(&Workload, &Suite) -> usize,
    /// Measures them all, and prints their tables.
    pub run: fn(&Workload, &Suite, &Clock, &mut Output) -> anyhow::Result<()>,
}
