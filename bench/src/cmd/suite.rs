//! `nbbs bench NAME...`: the field's workloads on every back-end and every heap.

use std::io;
use std::time::Duration;

use baselines::Kind;
use indicatif::ProgressBar;

use crate::clock::Clock;
use crate::cmd::{print, print_json, warn};
use crate::pool;
use crate::progress;
use crate::report::keep::Kept;
use crate::suite::args::Suite;
use crate::suite::measure::{Case, measure};
use crate::suite::plan::{Plan, Table};
use crate::suite::row::Row;
use crate::suite::worker::Setting;
use crate::suite::{instructions, on_heap, report};

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Suite) -> anyhow::Result<bool> {
    let plan = Plan::new(args)?;
    let mut run = Run {
        args,
        plan: &plan,
        clock: Clock::new(),
        bar: progress::bar(plan.steps(args)),
        kept: Kept::new(args.html.as_deref(), args.record.as_deref())?,
        csv: csv::Writer::from_writer(io::stdout()),
    };
    for what in &plan.skipped {
        warn(&format!("left out: {what}"));
        run.kept.skip(what)?;
    }
    let mut all_verified = true;
    for table in &plan.tables {
        run.bar.set_message(format!("{}, order {}", table.workload.name, table.order));
        let rows = run.measure(table)?;
        all_verified &= rows.iter().all(|row| row.verified || !row.safe);
        if args.prints_tables() {
            run.bar.suspend(|| print(&report::workload(&rows)))?;
        }
    }
    run.bar.finish_and_clear();
    run.kept.finish()?;
    if args.prints_tables() {
        print(report::FOOTER)?;
    }
    Ok(all_verified)
}

struct Run<'a> {
    args: &'a Suite,
    plan: &'a Plan,
    clock: Clock,
    bar: ProgressBar,
    kept: Kept,
    csv: csv::Writer<io::Stdout>,
}

impl Run<'_> {
    /// The rows of a table, each case of which is kept, and printed as JSON or values, as soon as it is measured.
    fn measure(&mut self, table: &Table) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        if table.kind == Kind::Pool {
            for case in self.args.cases() {
                for &threads in &table.threads {
                    let measured = self.pool(table, case, threads);
                    rows.extend(self.keep(measured)?);
                }
            }
        } else {
            for &threads in &table.threads {
                let measured = self.blocks(table, threads)?;
                rows.extend(self.keep(measured)?);
            }
        }
        Ok(rows)
    }

    fn keep(&mut self, rows: Vec<Row>) -> anyhow::Result<Vec<Row>> {
        self.kept.add(&rows)?;
        let Self { args, bar, csv, .. } = self;
        match (args.json, args.csv) {
            (true, _) => bar.suspend(|| rows.iter().try_for_each(print_json))?,
            (_, true) => bar.suspend(|| print_csv(csv, &rows))?,
            _ => {}
        }
        Ok(rows)
    }

    /// A case of blocks, on back-ends or heaps.
    fn blocks(&self, table: &Table, threads: usize) -> anyhow::Result<Vec<Row>> {
        let Self { args, clock, .. } = self;
        let heap = table.kind == Kind::Heap;
        let setting = Setting {
            order: table.order,
            threads,
            max_threads: table.threads.iter().copied().max().unwrap_or(1),
            limit_ticks: (args.duration() * 1e9 / clock.ns(1)) as u64,
            latency: false,
            most_held: if heap { on_heap::MOST_HELD } else { usize::MAX },
        };
        let case = Case {
            workload: table.workload,
            units: table.units,
            traces: self.plan.traces(),
            heap_trace: args.heap_trace.as_deref(),
            once: args.once,
            setting,
            rounds: args.rounds(),
        };
        let mut rows = measure(&case, &table.contenders, clock, &self.bar);
        if args.instructions {
            instructions::count(&case, &mut rows)?;
        }
        Ok(rows)
    }

    /// A case of objects of one size.
    fn pool(&self, table: &Table, case: pool::Case, threads: usize) -> Vec<Row> {
        let args = self.args;
        let bulk = if args.quick { 100_000 } else { 1_000_000 };
        let (pairs, most) = (args.pairs(), Duration::from_secs_f64(args.duration()));
        let plan = pool::Plan { case, threads, pairs, most, bulk };
        let rows = pool::measure(&plan, &table.pools, args.rounds());
        self.bar.inc(1);
        rows
    }
}

fn print_csv(csv: &mut csv::Writer<io::Stdout>, rows: &[Row]) -> anyhow::Result<()> {
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}
