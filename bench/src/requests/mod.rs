//! Exact sizes, batches, growth in place and placement.
//!
//! ```text
//! work    what is done, on any words      judge   whether it was right      report   the table
//! ```

mod judge;
pub mod report;
mod work;

use std::time::Instant;

use crate::counted::count;
use crate::limit::arena::Arena;
use crate::market::Kind;
use crate::median::ten_thousandths;
use crate::row::Row;
use work::Tally;
pub use work::{CASES, Case};

/// Units of the arena: 1 GiB in pages of 4 KiB.
const UNITS: u64 = 1 << 18;

/// Measures a case: timed on an empty arena, `rounds` times, then once more on words that count, with the owner
/// map on.
pub fn measure(case: &Case, rounds: usize) -> Row {
    let arena = Arena::new(UNITS);
    let time = |round| {
        arena.empty();
        let setup = case.prepare(arena.buddy(), round as u64, &judge::Judge::off());
        let start = Instant::now();
        let tally = case.run(arena.buddy(), setup, &judge::Judge::off());
        (start.elapsed().as_nanos() as f64, tally.ops.max(1))
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

fn row(case: &Case, tally: &Tally, times: &[(f64, u64)], steps: u64, verified: bool) -> Row {
    let share = |part: u64, whole: u64| ten_thousandths(part as f64 / whole.max(1) as f64);
    let mut row = Row {
        command: "bench requests".into(),
        phase: format!("{}: {}", case.case, case.asked).into(),
        ops: Some(tally.ops),
        complete: true,
        rmw_per_op: Some(share(steps, tally.ops)),
        verified,
        violation: (!verified).then(|| "the owner map or the audit disagrees".to_owned()),
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
