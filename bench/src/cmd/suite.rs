//! `nbbs bench NAME...`: the field's workloads on every back-end and every heap.

use std::io;
use std::time::Duration;

use anyhow::ensure;
use baselines::{Contender, Kind};
use indicatif::ProgressBar;

use crate::args::UNIT_BYTES;
use crate::clock::Clock;
use crate::cmd::{print, print_json};
use crate::pool::{self, Plan};
use crate::progress;
use crate::report::keep::Kept;
use crate::suite::args::Suite;
use crate::suite::instructions;
use crate::suite::measure::{Case, Traces, measure, passes};
use crate::suite::on_heap;
use crate::suite::report;
use crate::suite::row::Row;
use crate::suite::worker::Setting;
use crate::suite::workloads::Workload;
use crate::table::bytes;
use crate::trace::{HeapTrace, Trace};

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Suite) -> anyhow::Result<bool> {
    let mut tables: Vec<Table> = tables(args).collect();
    ensure!(
        !tables.is_empty(),
        "none of these allocators takes part in any of these workloads, on so many threads"
    );
    let traces = Loaded::load(args, &tables)?;
    for table in &mut tables {
        traces.check(args, table)?;
        check(args, table)?;
    }
    let mut kept = Kept::new(args.html.as_deref(), args.record.as_deref())?;
    let clock = Clock::new();
    let bar = progress::bar(tables.iter().map(|table| table.steps(args)).sum());
    let mut csv = csv::Writer::from_writer(io::stdout());
    let mut all_verified = true;
    for table in &tables {
        bar.set_message(format!("{}, order {}", table.workload.name, table.order));
        let rows = rows(args, table, &traces, &clock, &bar)?;
        all_verified &= rows.iter().all(|row| row.verified || !row.safe);
        kept.add(&rows)?;
        if args.silent {
            continue;
        }
        bar.suspend(|| match (args.json, args.csv) {
            (true, _) => rows.iter().try_for_each(print_json),
            (_, true) => print_csv(&mut csv, &rows),
            _ => print(&report::workload(&rows)),
        })?;
    }
    bar.finish_and_clear();
    kept.finish()?;
    if !args.json && !args.csv && !args.silent {
        print(report::FOOTER)?;
    }
    Ok(all_verified)
}

/// What is printed together: a workload with blocks of one size.
struct Table {
    workload: &'static Workload,
    kind: Kind,
    order: u32,
    contenders: Vec<&'static Contender>,
    /// Contenders of `pool`.
    pools: Vec<&'static pool::Contender>,
    threads: Vec<usize>,
}

impl Table {
    /// Bytes that the memory of its allocators is counted in.
    fn unit(&self) -> u64 {
        if self.kind == Kind::Heap { 1 } else { UNIT_BYTES }
    }

    /// Steps of the progress bar.
    fn steps(&self, args: &Suite) -> usize {
        let each = self.contenders.len() * passes(args.rounds());
        self.threads.len() * if self.kind == Kind::Pool { args.cases().len() } else { each }
    }
}

/// What is to be measured.
fn tables(args: &Suite) -> impl Iterator<Item = Table> {
    let kinds =
        |workload: &'static Workload| workload.kinds.iter().map(move |&kind| (workload, kind));
    let of_kind = move |(workload, kind)| {
        let orders = args.orders(workload, kind).into_iter();
        orders.map(move |order| Table {
            workload,
            kind,
            order,
            contenders: args.contenders(kind),
            pools: if kind == Kind::Pool { args.pools() } else { Vec::new() },
            threads: args.threads_of(workload),
        })
    };
    args.workloads()
        .flat_map(kinds)
        .flat_map(of_kind)
        .filter(|table| table.contenders.len() + table.pools.len() > 0 && !table.threads.is_empty())
}

/// The traces that are replayed.
#[derive(Default)]
struct Loaded {
    pages: Option<Trace>,
    heap: Option<HeapTrace>,
}

impl Loaded {
    fn load(args: &Suite, tables: &[Table]) -> anyhow::Result<Self> {
        let asked = |name| tables.iter().any(|table| table.workload.name == name);
        let heap = || args.heap_trace.as_deref().map_or_else(HeapTrace::sample, HeapTrace::open);
        let pages = asked("replay").then(Trace::sample).transpose()?;
        Ok(Self { pages, heap: asked("replay-heap").then(heap).transpose()? })
    }

    /// Keeps the numbers of threads that the table's trace has events for, and refuses too little memory.
    fn check(&self, args: &Suite, table: &mut Table) -> anyhow::Result<()> {
        let (name, threads, peak) = match (table.workload.name, &self.pages, &self.heap) {
            // Of too small an arena it is seen how much is refused.
            ("replay", Some(trace), _) => (trace.name.as_str(), trace.cpus, 0),
            ("replay-heap", _, Some(trace)) => (trace.name, trace.threads, trace.peak_bytes),
            _ => return Ok(()),
        };
        table.threads.retain(|&asked| asked <= threads);
        if args.threads.is_empty() && !table.threads.contains(&threads) {
            table.threads.push(threads);
        }
        ensure!(!table.threads.is_empty(), "{name} has events of {threads} threads, for as many");
        let memory = args.units(table.workload, table.kind) * table.unit();
        ensure!(
            memory >= peak,
            "{name} holds {} at its peak, more than {}",
            bytes(peak),
            bytes(memory)
        );
        Ok(())
    }
}

/// Refuses what does not fit.
fn check(args: &Suite, table: &Table) -> anyhow::Result<()> {
    let Table { workload, kind, order, .. } = *table;
    let unit = table.unit();
    let (units, arena) = (args.units(workload, kind), bytes(args.units(workload, kind) * unit));
    for contender in &table.contenders {
        let max = bytes(contender.max_units.saturating_mul(unit));
        let name = contender.name;
        ensure!(units <= contender.max_units, "{name} takes an arena of at most {max}");
    }
    let name = workload.name;
    let above = workload.orders_above;
    ensure!(Suite::serves(order, workload, kind), "{name} goes {above} orders above order {order}");
    let threads = table.threads.iter().copied().max().unwrap_or(1);
    let least = (threads as u64 * workload.blocks_per_thread) << order;
    let unit = if kind == Kind::Heap { 2 * on_heap::UNIT } else { 1 };
    ensure!(
        units >= least * unit,
        "{name} with {threads} threads and order {order} takes an arena of {}, not {arena}",
        bytes(least * if kind == Kind::Heap { unit } else { UNIT_BYTES }),
    );
    Ok(())
}

fn rows(
    args: &Suite,
    table: &Table,
    traces: &Loaded,
    clock: &Clock,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    if table.kind == Kind::Pool {
        return Ok(pool_rows(args, table, bar));
    }
    let max_threads = table.threads.iter().copied().max().unwrap_or(1);
    let limit_ticks = (args.duration() * 1e9 / clock.ns(1)) as u64;
    let most_held = if table.kind == Kind::Heap { on_heap::MOST_HELD } else { usize::MAX };
    let mut rows = Vec::new();
    for &threads in &table.threads {
        let (order, latency) = (table.order, false);
        let setting = Setting { order, threads, max_threads, limit_ticks, latency, most_held };
        let case = Case {
            workload: table.workload,
            units: args.units(table.workload, table.kind),
            traces: Traces { pages: traces.pages.as_ref(), heap: traces.heap.as_ref() },
            heap_trace: args.heap_trace.as_deref(),
            once: args.once,
            setting,
            rounds: args.rounds(),
        };
        let mut measured = measure(&case, &table.contenders, clock, bar);
        if args.instructions {
            instructions::count(&case, &mut measured)?;
        }
        rows.extend(measured);
    }
    Ok(rows)
}

fn pool_rows(args: &Suite, table: &Table, bar: &ProgressBar) -> Vec<Row> {
    let bulk = if args.quick { 100_000 } else { 1_000_000 };
    let (pairs, most) = (args.pairs(), Duration::from_secs_f64(args.duration()));
    let mut rows = Vec::new();
    for case in args.cases() {
        for &threads in &table.threads {
            let plan = Plan { case, threads, pairs, most, bulk };
            rows.extend(pool::measure(&plan, &table.pools, args.rounds()));
            bar.inc(1);
        }
    }
    rows
}

fn print_csv(csv: &mut csv::Writer<io::Stdout>, rows: &[Row]) -> anyhow::Result<()> {
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}
