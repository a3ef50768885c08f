//! `nbbs bench NAME...`: the field's workloads on every back-end.

use std::io;

use anyhow::ensure;
use indicatif::ProgressBar;

use crate::args::UNIT_BYTES;
use crate::clock::Clock;
use crate::cmd::{print, print_json};
use crate::progress;
use crate::suite::args::Suite;
use crate::suite::measure::{Case, measure, passes};
use crate::suite::report;
use crate::suite::row::Row;
use crate::suite::worker::Setting;
use crate::suite::workloads::Workload;
use crate::table::bytes;

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Suite) -> anyhow::Result<bool> {
    check(args)?;
    let clock = Clock::new();
    let cases: Vec<_> = cases(args).collect();
    let each = args.threads().len() * args.contenders().len() * passes(args.rounds());
    let bar = progress::bar(cases.len() * each);
    let mut csv = csv::Writer::from_writer(io::stdout());
    let mut all_verified = true;
    for (workload, order) in cases {
        bar.set_message(format!("{}, order {order}", workload.name));
        let rows = rows(args, workload, order, &clock, &bar);
        all_verified &= rows.iter().all(|row| row.verified || !row.safe);
        bar.suspend(|| match (args.json, args.csv) {
            (true, _) => rows.iter().try_for_each(print_json),
            (_, true) => print_csv(&mut csv, &rows),
            _ => print(&report::workload(&rows)),
        })?;
    }
    bar.finish_and_clear();
    if !args.json && !args.csv {
        print(report::FOOTER)?;
    }
    Ok(all_verified)
}

/// What is to be measured: a table each.
fn cases(args: &Suite) -> impl Iterator<Item = (&'static Workload, u32)> {
    args.workloads()
        .flat_map(|workload| args.orders(workload).into_iter().map(move |order| (workload, order)))
}

/// Refuses what does not fit.
fn check(args: &Suite) -> anyhow::Result<()> {
    let (units, arena) = (args.units(), bytes(args.units() * UNIT_BYTES));
    for contender in args.contenders() {
        let max = bytes(contender.max_units * UNIT_BYTES);
        let name = contender.name;
        ensure!(units <= contender.max_units, "{name} takes an arena of at most {max}");
    }
    let threads = args.threads().into_iter().max().unwrap_or(1) as u64;
    for (workload, order) in cases(args) {
        let name = workload.name;
        let above = workload.orders_above;
        ensure!(Suite::serves(order, workload), "{name} goes {above} orders above order {order}");
        let least = (threads * workload.blocks_per_thread) << order;
        ensure!(
            units >= least,
            "{name} with {threads} threads and order {order} takes an arena of {}, not {arena}",
            bytes(least * UNIT_BYTES),
        );
    }
    Ok(())
}

fn rows(
    args: &Suite,
    workload: &'static Workload,
    order: u32,
    clock: &Clock,
    bar: &ProgressBar,
) -> Vec<Row> {
    let thread_counts = args.threads();
    let max_threads = thread_counts.iter().copied().max().unwrap_or(1);
    let limit_ticks = (args.duration() * 1e9 / clock.ns(1)) as u64;
    let mut rows = Vec::new();
    for threads in thread_counts {
        let setting = Setting { order, threads, max_threads, limit_ticks, latency: false };
        let case = Case { workload, units: args.units(), setting, rounds: args.rounds() };
        rows.extend(measure(&case, &args.contenders(), clock, bar));
    }
    rows
}

fn print_csv(csv: &mut csv::Writer<io::Stdout>, rows: &[Row]) -> anyhow::Result<()> {
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}
