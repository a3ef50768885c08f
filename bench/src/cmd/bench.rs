//! `nbbs bench NAME...`: workloads.

use crate::clock::Clock;
use crate::market::Kind;
use crate::output::Output;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::measure::{WorkloadCase, measure};
use crate::suite::plan::{Part, Plan, WorkloadTable};
use crate::suite::worker::Setting;
use crate::suite::{instructions, on_heap};
use crate::table;

/// Runs the command. Returns whether all allocators that are meant to be safe were verified.
pub fn run(args: &Suite) -> anyhow::Result<bool> {
    let plan = Plan::new(args)?;
    if args.instructions {
        instructions::check()?;
    }
    let mut output = args.output()?;
    let clock = Clock::new();
    plan.skipped.iter().try_for_each(|what| output.skip(what))?;
    let mut footers = Vec::new();
    for part in &plan.parts {
        let workload = match part {
            Part::Table(table) => {
                table_of(args, table, &clock, &mut output)?;
                table.workload
            }
            Part::Cases(workload, cases) => {
                output.bar.inc_length((cases.steps)(workload, args) as u64);
                (cases.run)(workload, args, &clock, &mut output)?;
                workload
            }
        };
        if !footers.contains(&workload.footer) {
            footers.push(workload.footer);
        }
    }
    output.finish(&footers.join("\n\n"))
}

/// Measures a table, and prints it. The rows of each number of threads are passed on as soon as they are measured.
fn table_of(
    args: &Suite,
    table: &WorkloadTable,
    clock: &Clock,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut all: Vec<Row> = Vec::new();
    let &WorkloadTable { workload, kind, order, units, ref contenders, ref threads, ref trace } =
        table;
    let most_held = if kind == Kind::Heap { on_heap::MOST_HELD } else { usize::MAX };
    for &threads in threads {
        let setting = Setting {
            order,
            max_threads: table.threads.iter().copied().max().unwrap_or(1),
            most_held,
            ..Setting::of(threads, args.duration() * 1e9, clock)
        };
        let (trace, rounds) = (trace.as_deref(), args.rounds(workload));
        let case = WorkloadCase { workload, units, trace, once: args.once, setting, rounds };
        output.bar.inc_length((contenders.len() * case.steps()) as u64);
        output.bar.set_message(format!(
            "{}, order {order}, {}",
            workload.name,
            table::threads(threads)
        ));
        let mut rows = measure(&case, contenders, clock, &output.bar);
        if args.instructions {
            instructions::count(&case, &mut rows)?;
        }
        output.add(&rows)?;
        all.extend(rows);
    }
    if args.instructions && all.iter().all(|row| row.instructions_per_op.is_none()) {
        let what = "--instructions, which counts cases of one phase on one thread";
        output.skip(&format!("{}: {what}", workload.name))?;
    }
    output.print(|| (workload.table)(workload, &all))
}
