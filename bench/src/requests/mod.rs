//! Exact sizes, batches, growth in place and placement.
//!
//! ```text
//! work    what is done, on any words      judge   whether it was right      row   a measured case
//! ```

mod judge;
mod row;
mod work;

use std::time::Instant;

use crate::counted::count;
use crate::limit::arena::Arena;
use crate::median::median;
pub use row::Row;
pub use work::{CASES, Case};

/// Units of the arena: 1 GiB in pages of 4 KiB.
const UNITS: u64 = 1 << 18;

/// Measures a case: timed on an empty arena, `rounds` times, then once more on words that count, with the owner
/// map on.
pub fn measure(case: &Case, rounds: usize) -> Row {
    let arena = Arena::new(UNITS);
    let times = (0..rounds).map(|round| {
        arena.empty();
        let setup = case.prepare(arena.buddy(), round as u64, &judge::Judge::off());
        let start = Instant::now();
        let tally = case.run(arena.buddy(), setup, &judge::Judge::off());
        start.elapsed().as_nanos() as f64 / tally.ops.max(1) as f64
    });
    let ns = median(times.collect::<Vec<_>>());
    arena.empty();
    arena.with_counted_copy(|buddy| {
        let judge = judge::Judge::new(UNITS);
        let setup = case.prepare(buddy, 0, &judge);
        let (tally, counts) = count(|| case.run(buddy, setup, &judge));
        Row::new(case, &tally, ns, counts.steps, judge.is_content() && buddy.audit().is_ok())
    })
}
