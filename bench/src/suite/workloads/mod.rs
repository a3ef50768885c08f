//! The workloads, by origin. This module says what a workload is; `table` lists all of them.

mod cache_scratch;
mod churn;
mod first_failure;
mod frusa;
mod heap_random;
mod hermit;
mod larson_sizes;
mod llfree;
mod mstress;
mod paper;
mod replay;
mod table;
mod talc;
mod until_full;
mod xmalloc;

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

/// The orders that are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Blocks of one order, which the command line sets.
    Asked,
    /// Single units.
    Units,
    /// Random orders.
    Mixed,
}

/// A workload: what each thread does.
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// A line that says what it does.
    pub about: &'static str,
    pub orders: Orders,
    /// How far its orders go above the one that is asked for.
    pub orders_above: u32,
    /// The blocks that a thread must have room for.
    pub blocks_per_thread: u64,
    /// The kinds of allocators on which it runs.
    pub kinds: &'static [Kind],
    /// The smallest and the largest number of threads.
    pub threads: (usize, usize),
    /// Whether `all` includes it.
    pub of_all: bool,
    /// The defaults, and those with `--quick`.
    pub usual: Usual,
    pub quick: Usual,
    /// Whether its figures are those of single operations. If so, as many rounds time these.
    pub by_operation: bool,
    /// How to read the traces that are replayed; each trace has a table.
    pub traces: Option<ReadTraces>,
    /// Whether heaps get by default half of what the trace holds at its peak, since they are to refuse.
    pub crowded: bool,
    /// The figures that only its rows have.
    pub own: Option<&'static Own>,
    /// How its rows are printed.
    pub table: fn(&Workload, &[Row]) -> String,
    /// How to read its figures.
    pub footer: &'static str,
    pub run: Run,
}

/// The defaults of a workload.
#[derive(Clone, Copy)]
pub struct Usual {
    pub threads: &'static [usize],
    /// The orders of the blocks of back-ends, and of heaps.
    pub orders: &'static [u32],
    pub sizes: &'static [u32],
    pub arena_units: &'static [u64],
    pub heap_bytes: u64,
    pub rounds: usize,
}

/// The usual defaults: 1 GiB of pages, 64 MiB of heap.
const USUAL: Usual = Usual {
    threads: &[1, 2, 4, 8, 16, 32],
    orders: &[0, 3, 6],
    sizes: &[0, 4, 7],
    arena_units: &[1 << 18],
    heap_bytes: 64 << 20,
    rounds: 5,
};

/// The usual defaults with `--quick`: less of everything.
const QUICK: Usual = Usual {
    threads: &[1, 2, 8],
    orders: &[0],
    sizes: &[3],
    arena_units: &[1 << 14],
    heap_bytes: 16 << 20,
    rounds: 3,
};

/// A function that reads the traces that are asked for.
pub type ReadTraces = fn(&Suite) -> Result<Vec<Replayed>, TraceError>;

/// What each thread runs, by what it asks for.
#[derive(Clone, Copy)]
pub enum Run {
    /// Blocks by order.
    Blocks(fn(&mut Worker<'_>)),
    /// Memory by size and alignment.
    Heap(fn(&HeapRound<'_>) -> Vec<Part>),
    /// A thread is put to sleep: module `suspended`.
    #[cfg(unix)]
    Suspended,
    /// A trace of page allocations.
    Pages(OnPages),
    /// Cases and contenders of its own.
    Cases(Cases),
}

/// A workload that defines its own cases.
#[derive(Clone, Copy)]
pub struct Cases {
    /// Returns the steps of the progress bar, or 0 if none of the allocators asked for takes part.
    pub steps: fn(&Workload, &Suite) -> usize,
    /// Measures them all, and prints their tables.
    pub run: fn(&Workload, &Suite, &Clock, &mut Output) -> anyhow::Result<()>,
    /// Returns the names of the allocators that can take part.
    pub allocators: fn(&Suite) -> Vec<&'static str>,
    /// The same, for readers.
    pub runs_on: &'static str,
    /// The options that it takes, beside those of all workloads.
    pub options: &'static [&'static str],
    /// Returns what was asked for and is left out, with the reasons, or the reason why nothing can be measured.
    pub left_out: fn(&Workload, &Suite) -> anyhow::Result<Vec<String>>,
}
