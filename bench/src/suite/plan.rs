//! What a run measures: tables of cases, each with memory that it fits into.

use anyhow::ensure;

use super::args::Suite;
use super::measure::{Traces, passes};
use super::on_heap;
use super::workloads::{Replayed, Workload};
use crate::args::UNIT_BYTES;
use crate::market::{Contender, Kind};
use crate::pool;
use crate::table::bytes;
use crate::trace::{HeapTrace, Trace};

/// All tables of a run.
pub struct Plan {
    pub tables: Vec<Table>,
    /// What was asked for and cannot be measured: each with why.
    pub skipped: Vec<String>,
    traces: Loaded,
}

/// What is printed together: a workload with blocks of one size.
pub struct Table {
    pub workload: &'static Workload,
    pub kind: Kind,
    pub order: u32,
    /// Units of a back-end's arena, bytes of a heap.
    pub units: u64,
    pub contenders: Vec<&'static Contender>,
    /// Contenders of `pool`.
    pub pools: Vec<&'static pool::Contender>,
    pub threads: Vec<usize>,
}

/// The traces that are replayed.
struct Loaded {
    pages: Option<Trace>,
    heap: Option<HeapTrace>,
}

impl Plan {
    /// All that was asked for and fits.
    ///
    /// # Errors
    /// Nothing fits, or a trace cannot be read.
    pub fn new(args: &Suite) -> anyhow::Result<Self> {
        let mut tables: Vec<Table> = tables(args).collect();
        let traces = Loaded::load(args, &tables)?;
        let mut skipped = Vec::new();
        for table in &mut tables {
            for what in traces.fit(args, table).into_iter().chain(table.fit(args)) {
                // What is the same for every order is said once.
                if !skipped.contains(&what) {
                    skipped.push(what);
                }
            }
        }
        tables.retain(|table| !table.is_empty());
        let nobody =
            "none of these allocators takes part in any of these workloads, on so many threads";
        ensure!(!tables.is_empty(), "{}", skipped.first().map_or(nobody, String::as_str));
        Ok(Self { tables, skipped, traces })
    }

    /// What is replayed.
    pub fn traces(&self) -> Traces<'_> {
        Traces { pages: self.traces.pages.as_ref(), heap: self.traces.heap.as_ref() }
    }

    /// Steps of the progress bar.
    pub fn steps(&self, args: &Suite) -> usize {
        self.tables.iter().map(|table| table.steps(args)).sum()
    }
}

/// Every table that was asked for.
fn tables(args: &Suite) -> impl Iterator<Item = Table> {
    let kinds =
        |workload: &'static Workload| workload.kinds.iter().map(move |&kind| (workload, kind));
    let of_kind = move |(workload, kind)| {
        let orders = args.orders(workload, kind).into_iter();
        orders.map(move |order| Table {
            workload,
            kind,
            order,
            units: args.units(workload, kind),
            contenders: args.contenders(kind),
            pools: if kind == Kind::Pool { args.pools() } else { Vec::new() },
            threads: args.threads_of(workload),
        })
    };
    args.workloads().flat_map(kinds).flat_map(of_kind).filter(|table| !table.is_empty())
}

impl Table {
    fn is_empty(&self) -> bool {
        self.threads.is_empty() || self.contenders.is_empty() && self.pools.is_empty()
    }

    /// Bytes that the memory of its allocators is counted in.
    fn unit(&self) -> u64 {
        if self.kind == Kind::Heap { 1 } else { UNIT_BYTES }
    }

    /// Its memory, to be read.
    fn memory(&self) -> String {
        bytes(self.units * self.unit())
    }

    fn steps(&self, args: &Suite) -> usize {
        let each = self.contenders.len() * passes(args.rounds());
        self.threads.len() * if self.kind == Kind::Pool { args.cases().len() } else { each }
    }

    /// Makes the memory twice as large, and again, until the most threads have room in it; if its size was asked
    /// for, leaves out the threads that have none, and who does not take so much. Says what it left out.
    fn fit(&mut self, args: &Suite) -> Vec<String> {
        let (name, order) = (self.workload.name, self.order);
        if self.threads.is_empty() {
            return Vec::new();
        }
        let (above, max) = (self.workload.orders_above, Suite::max_order(self.kind));
        if order + above > max {
            self.threads.clear();
            return vec![format!("{name} goes {above} orders above order {order}, beyond {max}")];
        }
        let most = self.threads.iter().copied().max().unwrap_or(1);
        while !args.has_memory(self.kind) && self.units < self.least(most) {
            self.units *= 2;
        }
        let memory = self.memory();
        let room = |threads: &usize| self.units >= self.least(*threads);
        let (threads, crowds): (Vec<_>, Vec<_>) = self.threads.iter().partition(|&one| room(one));
        let crowded = |threads: usize| {
            let least = bytes(self.least(threads) * self.unit());
            let block = format!("{name} with {threads} threads and order {order}");
            format!("{block} takes memory of {least}, not {memory}")
        };
        let mut left_out: Vec<String> = crowds.into_iter().map(crowded).collect();
        self.threads = threads;
        let (units, unit) = (self.units, self.unit());
        self.contenders.retain(|contender| {
            let takes = units <= contender.max_units;
            let max = bytes(contender.max_units.saturating_mul(unit));
            let (who, what) = (contender.name, "takes memory of at most");
            left_out.extend((!takes).then(|| format!("{name}: {who} {what} {max}, not {memory}")));
            takes
        });
        left_out
    }

    /// The least memory for so many threads.
    fn least(&self, threads: usize) -> u64 {
        let unit = if self.kind == Kind::Heap { 2 * on_heap::UNIT } else { 1 };
        (threads as u64 * self.workload.blocks_per_thread * unit) << self.order
    }
}

impl Loaded {
    fn load(args: &Suite, tables: &[Table]) -> anyhow::Result<Self> {
        let asked = |trace| tables.iter().any(|table| table.workload.trace == Some(trace));
        let heap = || args.heap_trace.as_deref().map_or_else(HeapTrace::sample, HeapTrace::open);
        let pages = asked(Replayed::Pages).then(Trace::sample).transpose()?;
        Ok(Self { pages, heap: asked(Replayed::Heap).then(heap).transpose()? })
    }

    /// Keeps the numbers of threads that the table's trace has events for, and none if it has too little memory.
    /// Says what it left out, if it was asked for.
    fn fit(&self, args: &Suite, table: &mut Table) -> Vec<String> {
        let (name, threads, peak) = match (table.workload.trace, &self.pages, &self.heap) {
            // Of too small an arena it is seen how much is refused.
            (Some(Replayed::Pages), Some(trace), _) => (trace.name.as_str(), trace.cpus, 0),
            (Some(Replayed::Heap), _, Some(trace)) => (trace.name, trace.threads, trace.peak_bytes),
            _ => return Vec::new(),
        };
        if table.units * table.unit() < peak {
            table.threads.clear();
            let peak = bytes(peak);
            return vec![format!("{name} holds {peak} at its peak, more than {}", table.memory())];
        }
        let asked = table.threads.len();
        table.threads.retain(|&asked| asked <= threads);
        if args.threads.is_empty() {
            table.threads.extend((!table.threads.contains(&threads)).then_some(threads));
        } else if table.threads.len() < asked {
            return vec![format!("{name} has events of {threads} threads, for as many at most")];
        }
        Vec::new()
    }
}
