//! `nbbs bench NAME...`: the field's workloads on every back-end and every heap.

use std::time::Duration;

use crate::clock::Clock;
use crate::market::Kind;
use crate::output::Output;
use crate::pool;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::measure::{Case, measure};
use crate::suite::plan::{Plan, Table};
use crate::suite::worker::Setting;
use crate::suite::{instructions, on_heap, report};

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Suite) -> anyhow::Result<bool> {
    let plan = Plan::new(args)?;
    let output = args.output(plan.steps(args))?;
    let mut run = Run { args, plan: &plan, clock: Clock::new(), output };
    plan.skipped.iter().try_for_each(|what| run.output.skip(what))?;
    for table in &plan.tables {
        run.output.bar.set_message(format!("{}, order {}", table.workload.name, table.order));
        let rows = run.measure(table)?;
        run.output.print(|| report::table(table.workload, &rows))?;
    }
    run.output.finish(report::FOOTER)
}

struct Run<'a> {
    args: &'a Suite,
    plan: &'a Plan,
    clock: Clock,
    output: Output,
}

impl Run<'_> {
    /// The rows of a table, each case of which goes where it should as soon as it is measured.
    fn measure(&mut self, table: &Table) -> anyhow::Result<Vec<Row>> {
        let mut all = Vec::new();
        let cases = if table.kind == Kind::Pool { self.args.cases() } else { Vec::new() };
        for case in cases.iter().map(Some).chain(cases.is_empty().then_some(None)) {
            for &threads in &table.threads {
                let rows = match case {
                    Some(&case) => self.pool(table, case, threads),
                    None => self.blocks(table, threads)?,
                };
                self.output.add(&rows)?;
                all.extend(rows);
            }
        }
        Ok(all)
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
        let mut rows = measure(&case, &table.contenders, clock, &self.output.bar);
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
        self.output.bar.inc(1);
        rows
    }
}
