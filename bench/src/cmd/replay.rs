//! `nbbs replay`: traces, on each allocator in turn.

use anyhow::{Context, bail, ensure};

use crate::args::{Arena, Replay, UNIT_BYTES};
use crate::clock::Clock;
use crate::market::Contender;
use crate::median::median;
use crate::output::{Output, in_turn};
use crate::replay::row::{Subject, row};
use crate::replay::{Plan, report, timing, verify};
use crate::row::Row;
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
    let mut output = args.keep.output(0)?;
    let mut clock_ns = Vec::new();
    for trace in &traces {
        let rows = replay(trace, &contenders, args, &clock, &output)?;
        clock_ns.extend(rows.iter().filter_map(|row| row.figure("clock_ns")));
        output.add(&rows)?;
        output.print(|| report::trace(trace, &rows))?;
    }
    output.finish(&report::footer(median(clock_ns), clock.step_ns(), args.repeat))
}

/// All rows of one trace.
fn replay(
    trace: &Trace,
    contenders: &[&'static Contender],
    args: &Replay,
    clock: &Clock,
    output: &Output,
) -> anyhow::Result<Vec<Row>> {
    let units = args.arena.map_or_else(|| roomy(trace), Ok)?.units;
    for contender in contenders {
        let (name, max) = (contender.name, contender.max_units * UNIT_BYTES);
        ensure!(units <= contender.max_units, "{name} takes an arena of at most {}", bytes(max));
    }
    let thread_counts = thread_counts(trace, &args.threads)?;
    let passes = contenders.len() * (args.repeat + 1) * thread_counts.len();
    let bar = &output.bar;
    bar.inc_length(passes as u64);
    bar.set_message(trace.name.clone());
    let mut rows = Vec::new();
    for threads in thread_counts {
        let plan = Plan::new(trace, threads);
        let rounds = in_turn(contenders, args.repeat, bar, |contender| {
            bar.set_message(format!("timing {}", contender.name));
            contender.with_back_end(units, |allocator| timing::replay(allocator, &plan, clock))
        });
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
            rows.push(row(&subject, &rounds, &verdict, clock));
        }
    }
    Ok(rows)
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
