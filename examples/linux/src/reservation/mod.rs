//! An address range that is committed on allocation and decommitted on free.

mod load;
mod range;
mod seen;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use comfy_table::Table;
use nbbs::MetadataBox;
use procfs::{Current, Meminfo};

use load::Worker;
use range::{Guard, Reserved};
use seen::Seen;

use crate::print;
use crate::table::{size, table};

/// Gives out blocks of a large address range, which are backed by memory only while they are held, and shows what the
/// operating system sees of it.
#[derive(Debug, clap::Parser)]
#[command(name = "reservation")]
pub struct Args {
    /// Addresses to reserve, in GiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    reserve: u32,
    /// Memory that all threads hold together, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    hold: u32,
    /// Number of threads, each of them with its lane.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Time for which they allocate and free at random, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(..=3_600_000))]
    churn: u32,
    /// Does not give memory back when a block is freed: the checks must notice.
    #[arg(long)]
    broken: bool,
}

impl Args {
    fn reserved_bytes(&self) -> u64 {
        u64::from(self.reserve) << 30
    }

    fn hold_bytes(&self) -> u64 {
        u64::from(self.hold) << 20
    }
}

/// Runs the example.
///
/// # Errors
/// The operating system refuses, or a check fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let available = Meminfo::current()?.mem_available.unwrap_or(u64::MAX);
    ensure!(
        args.hold_bytes() <= (available / 2).min(args.reserved_bytes() / 2),
        "--hold {}: at most half of the reservation, and of the memory that is available, {}",
        args.hold,
        size(available)
    );
    let mut rows = table(&HEADER, 2);
    let done = [Guard::Open, Guard::Closed]
        .into_iter()
        .try_for_each(|guard| demonstrate(args, guard, &mut rows));
    let printed = print(rows);
    done?;
    printed?;
    print("blocks: zero when they came, as their holder left them when they went")?;
    print("resident after each phase: just what was in use")?;
    Ok(())
}

/// The columns printed for a phase.
const HEADER: [&str; 10] = [
    "freed memory",
    "phase",
    "time",
    "operations",
    "in use",
    "resident",
    "in huge pages",
    "of large blocks",
    "page faults",
    "mappings",
];

/// Runs all phases, in a separate reservation.
fn demonstrate(args: &Args, guard: Guard, rows: &mut Table) -> anyhow::Result<()> {
    let page = rustix::param::page_size() as u64;
    let units = args.reserved_bytes() / page;
    let metadata = MetadataBox::new(units)?;
    let pages = metadata.arena()?;
    let reserved = Reserved::new(pages, guard, args.broken).with_context(|| {
        format!("--reserve {}: so many GiB of addresses are not to be had", args.reserve)
    })?;
    if guard == Guard::Open {
        print(&reserved)?;
    }
    course(args, &reserved, args.hold_bytes() / page, |name, operations, time, seen| {
        rows.add_row([
            guard.to_string(),
            name.to_owned(),
            format!("{} ms", time.as_millis()),
            operations.to_string(),
            size(pages.stats().used_units * page),
            size(seen.resident),
            size(seen.huge),
            size(reserved.huge_in_use() * page),
            seen.faults.to_string(),
            seen.mappings.to_string(),
        ]);
    })
}

/// Runs the phases. After each, calls `report` with its name, its operations, how long it took, and what is seen then.
fn course(
    args: &Args,
    reserved: &Reserved<'_>,
    hold: u64,
    mut report: impl FnMut(&str, u64, Duration, Seen),
) -> anyhow::Result<()> {
    let mut workers: Vec<_> = (0..args.threads.into()).map(Worker::new).collect();
    let share = hold / u64::from(args.threads);
    let mut phase = |name, workers: &mut [Worker], act: Act<'_>| -> anyhow::Result<()> {
        let (before, begun) = (Seen::of(reserved.addresses())?, Instant::now());
        let operations = load::on_threads(workers, |worker| act(worker))?;
        let time = begun.elapsed();
        let seen = Seen::of(reserved.addresses())?.since(&before);
        reserved.check_resident(&seen)?;
        report(name, operations, time, seen);
        Ok(())
    };
    phase("reserved", &mut workers, &|_| Ok(()))?;
    phase("filled", &mut workers, &|worker| worker.fill(reserved, share))?;
    // One end for all: threads that start late, where there are few processors, do not add their time to it.
    let end = Instant::now() + Duration::from_millis(args.churn.into());
    phase("in random use", &mut workers, &|worker| worker.churn(reserved, share, end))?;
    // Another thread frees what one thread has allocated.
    load::pass_on(&mut workers);
    phase("half freed, by others", &mut workers, &|worker| worker.free(reserved, share / 2))?;
    phase("freed", &mut workers, &|worker| worker.free(reserved, 0))?;
    Ok(())
}

/// What each thread does in a phase.
type Act<'a> = &'a (dyn Fn(&mut Worker) -> anyhow::Result<()> + Sync);
