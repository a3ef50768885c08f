//! `nbbs replay`: traces, on each allocator in turn.

use anyhow::{Context, bail, ensure};
use baselines::Contender;
use indicatif::ProgressBar;
use testkit::BackEnd;

use crate::args::{Arena, Replay, UNIT_BYTES};
use crate::clock::Clock;
use crate::cmd::{print, print_json};
use crate::median::median;
use crate::progress;
use crate::replay::row::{Row, Subject};
use crate::replay::timing::Times;
use crate::replay::{Plan, report, timing, verify};
use crate::table::bytes;
use crate::trace::Trace;

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Replay) -> anyhow::Result<bool> {
    let traces = match &args.traces[..] {
        [] => vec![Trace::sample()?],
        paths => paths.iter().map(|path| Trace::open(path)).collect::<Result<_, _>>()?,
    };
    let contenders = args.contenders();
    let clock = Clock::new();
    let (mut good, mut clock_ns) = (true, Vec::new());
    for trace in &traces {
        let rows = replay(trace, &contenders, args, &clock)?;
        good &= rows.iter().all(|row| row.verified || !row.safe);
        clock_ns.extend(rows.iter().map(|row| row.clock_ns));
        if args.json {
            rows.iter().try_for_each(print_json)?;
        } else {
            print(&report::trace(trace, &rows))?;
        }
    }
    if !args.json {
        print(&report::footer(median(clock_ns), clock.step_ns(), args.repeat))?;
    }
    Ok(good)
}

/// All rows of one trace.
fn replay(
    trace: &Trace,
    contenders: &[&'static Contender],
    args: &Replay,
    clock: &Clock,
) -> anyhow::Result<Vec<Row>> {
    let units = args.arena.map_or_else(|| roomy(trace), Ok)?.units;
    for contender in contenders {
        let (name, max) = (contender.name, contender.max_units * UNIT_BYTES);
        ensure!(units <= contender.max_units, "{name} takes an arena of at most {}", bytes(max));
    }
    let thread_counts = thread_counts(trace, &args.threads)?;
    let passes = contenders.len() * (args.repeat + 1) * thread_counts.len();
    let bar = progress::bar(passes).with_message(trace.name.clone());
    let mut rows = Vec::new();
    for threads in thread_counts {
        let plan = Plan::new(trace, threads);
        let rounds = time_rounds(contenders, units, &plan, args.repeat, clock, &bar);
        for (contender, rounds) in contenders.iter().zip(rounds) {
            bar.set_message(format!("{}: verifying {}", trace.name, contender.name));
            let verdict = verify::verify(contender, units, &plan);
            bar.inc(1);
            let metadata_bytes =
                contender.with_back_end(units, |allocator| allocator.metadata_bytes());
            let subject = Subject {
                trace: &trace.name,
                contender,
                threads,
                arena_units: units,
                metadata_bytes,
            };
            rows.push(Row::new(&subject, &rounds, &verdict, clock));
        }
    }
    bar.finish_and_clear();
    Ok(rows)
}

/// Times all contenders in turn, round by round, each round beginning with the next one.
fn time_rounds(
    contenders: &[&'static Contender],
    units: u64,
    plan: &Plan,
    rounds: usize,
    clock: &Clock,
    bar: &ProgressBar,
) -> Vec<Vec<Times>> {
    let mut times: Vec<Vec<Times>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let place = (round + turn) % contenders.len();
            bar.set_message(format!("timing {}", contenders[place].name));
            let replay = |allocator: &dyn BackEnd| timing::replay(allocator, plan, clock);
            times[place].push(contenders[place].with_back_end(units, replay));
            bar.inc(1);
        }
    }
    times
}

/// The smallest power of two of at least twice what the trace holds at its peak.
fn roomy(trace: &Trace) -> anyhow::Result<Arena> {
    /// 1 TiB: more is meant by who says so.
    const MAX_UNITS: u64 = 1 << 28;
    let units = trace.peak_units.saturating_mul(2).checked_next_power_of_two();
    let units = units.filter(|&units| units <= MAX_UNITS);
    let (name, peak) = (&trace.name, bytes(trace.peak_units.saturating_mul(UNIT_BYTES)));
    let units =
        units.with_context(|| format!("{name} holds {peak} at its peak: give an --arena"))?;
    Ok(Arena { units })
}

/// The numbers of threads to run with: as asked, or one, and one for each CPU of the trace.
fn thread_counts(trace: &Trace, asked: &[usize]) -> anyhow::Result<Vec<usize>> {
    let mut counts = if asked.is_empty() { vec![1, trace.cpus] } else { asked.to_vec() };
    if let Some(threads) = counts.iter().find(|&&threads| threads > trace.cpus) {
        bail!(
            "{threads} threads: {} has events of {} CPUs, for as many threads",
            trace.name,
            trace.cpus
        );
    }
    counts.dedup();
    Ok(counts)
}
