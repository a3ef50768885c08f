//! Measures exact sizes, batches, growth in place and placement.
//!
//! ```text
//! work    what is done, on any words      judge   whether it was right      report   the table
//! ```

mod judge;
pub mod report;
mod work;

use crate::clock::Clock;
use crate::counted::count;
use crate::limit::arena::Arena;
use crate::market::Kind;
use crate::median::ten_thousandths;
use crate::output::Output;
use crate::row::Row;
use crate::suite::args::Suite;
use crate::suite::workloads::{Cases, Workload};
use work::{CASES, RequestCase, Tally};

/// What `bench requests` measures.
pub const MEASURED: Cases = Cases {
    steps,
    run,
    allocators: |_| vec!["nbbs"],
    runs_on: "nbbs alone",
    options: &["--rounds"],
    left_out: |_, _| Ok(Vec::new()),
};

/// The units of the arena: 1 GiB in pages of 4 KiB.
const UNITS: u64 = 1 << 18;

fn steps(workload: &Workload, args: &Suite) -> usize {
    let takes_part = args.takes_part("nbbs") && !args.threads(workload).is_empty();
    if takes_part { CASES.len() } else { 0 }
}

fn run(
    workload: &Workload,
    args: &Suite,
    clock: &Clock,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for case in CASES {
        rows.push(measure(case, args.rounds(workload), clock));
        output.add(&rows[rows.len() - 1..])?;
        output.bar.inc(1);
    }
    output.print(|| report::LAYOUT.table(&rows.iter().collect::<Vec<_>>()).to_string())
}

/// Measures a case: times it on an empty arena, `rounds` times, then runs it once more on words that count, with the
/// owner map on.
fn measure(case: &RequestCase, rounds: usize, clock: &Clock) -> Row {
    let arena = Arena::new(UNITS);
    let time = |round| {
        arena.empty();
        let setup = case.prepare(arena.buddy(), round as u64, &judge::Judge::off());
        let start = clock.ticks();
        let tally = case.run(arena.buddy(), setup, &judge::Judge::off());
        (clock.ns(clock.ticks() - start), tally.ops.max(1))
    };
    let times: Vec<(f64, u64)> = (0..rounds).map(time).collect();
    arena.empty();
    arena.with_counted_copy(|buddy| {
        let judge = judge::Judge::new(UNITS);
        let setup = case.prepare(buddy, 0, &judge);
        let (tally, counts) = count(|| case.run(buddy, setup, &judge));
        row(case, &tally, &times, counts.steps, judge.is_content() && buddy.audit().is_ok())
    })
}

fn row(case: &RequestCase, tally: &Tally, times: &[(f64, u64)], steps: u64, verified: bool) -> Row {
    let share = |part: u64, whole: u64| ten_thousandths(part as f64 / whole.max(1) as f64);
    let mut row = Row {
        phase: format!("{}: {}", case.case, case.asked).into(),
        ops: Some(tally.ops),
        complete: true,
        rmw_per_op: Some(share(steps, tally.ops)),
        verified: Some(verified),
        violation: (!verified).then(|| "the owner map or the audit found a violation".to_owned()),
        ..Row::named("requests", case.allocator, Kind::BackEnd, 1).on(UNITS, None)
    };
    row.set_times(times);
    row.with("case", case.case)
        .with("asked", case.asked)
        .with("units_requested", tally.requested)
        .with("units_held", tally.held)
        .with("rmw_per_unit", share(steps, tally.moved))
        .with("success_rate", share(tally.granted, tally.asked))
}
