//! Turns the cases into rows.

use super::ways::Way;
use super::{bulk, fail, heap, pairs};
use crate::clock::Clock;
use crate::market::Kind;
use crate::median::hundredths;
use crate::row::Row;

/// The name of a case, and how it is made.
struct LimitCase {
    units: u64,
    order: u32,
    threads: usize,
    fill_percent: u32,
    /// Its name in `--json`.
    case: &'static str,
    /// What distinguishes it from other cases of this workload.
    phase: String,
    /// The number of operations that were timed as one.
    ops: f64,
}

impl LimitCase {
    /// Makes a row of nanoseconds, those of as many bare compare-and-swaps, and the spread of the rounds.
    fn row(self, ns: f64, bare_ns: f64, ratio: f64, spread_ns: (f64, f64)) -> Row {
        let Self { units, order, threads, fill_percent, case, phase, ops } = self;
        let row = Row::named("limit", "nbbs", Kind::BackEnd, threads).on(units, Some(order));
        let row = Row { phase: phase.into(), complete: true, ..row };
        let mut row = row.with("case", case).with("fill_percent", fill_percent);
        row.set_median(ns / ops, (spread_ns.0 / ops, spread_ns.1 / ops));
        row.with_all([("bare_ns_per_op", Some(bare_ns / ops)), ("ratio", Some(ratio))])
    }
}

/// Adds the counted read-modify-writes of an allocation and of a free.
fn with_steps(mut row: Row, per_alloc: f64, per_free: Option<f64>) -> Row {
    let mean = per_free.map_or(per_alloc, |free| f64::midpoint(per_alloc, free));
    row.rmw_per_op = Some(hundredths(mean));
    row.with_all([("rmw_per_alloc", Some(per_alloc)), ("rmw_per_free", per_free)])
}

/// Makes the row of pairs of `order`, with that part of the arena in use.
pub fn pair(
    units: u64,
    (order, fill_percent): (u32, u32),
    threads: usize,
    cost: &pairs::Cost,
    (per_alloc, per_free): (f64, f64),
) -> Row {
    let phase = format!("pairs, {fill_percent} % full");
    let case = LimitCase { units, order, threads, fill_percent, case: "pair", phase, ops: 2.0 };
    with_steps(of_pairs(case, cost), per_alloc, Some(per_free))
        .with_all([("alone_ns_per_op", cost.alone_ns.map(|ns| ns / 2.0))])
}

/// Makes the row of pairs of `order` in one of the ways to ask for a block, in an arena with nothing in use.
pub fn way(units: u64, way: Way, order: u32, threads: usize, cost: &pairs::Cost) -> Row {
    let phase = format!("pairs by {}", way.name());
    let case = LimitCase { units, order, threads, fill_percent: 0, case: "way", phase, ops: 2.0 };
    of_pairs(case, cost).with("by", way.name())
}

/// Makes the row of pairs of the heap, of blocks of a size and alignment.
pub fn heap((size, align): (usize, usize), threads: usize, cost: &pairs::Cost) -> Row {
    let aligned = if align == heap::USUAL_ALIGN { "" } else { ", aligned" };
    let (case, phase) = ("heap", format!("pairs of {size} bytes{aligned}"));
    let case = LimitCase { units: 0, order: 0, threads, fill_percent: 0, case, phase, ops: 2.0 };
    Row {
        allocator: "nbbs-heap".into(),
        kind: Kind::Heap.name().into(),
        private_caches: true,
        order: None,
        size_bytes: Some(size as u64),
        arena_bytes: Some(heap::BYTES as u64),
        ..of_pairs(case, cost).with("align_bytes", align)
    }
}

fn of_pairs(case: LimitCase, cost: &pairs::Cost) -> Row {
    case.row(cost.ns, cost.bare_ns, cost.ratio, cost.spread_ns)
}

/// Makes the rows of half the arena, allocated and freed in reverse order; then the same, freed in random order.
pub fn bulk(units: u64, threads: usize, cost: &bulk::Cost, steps: &bulk::Steps) -> [Row; 2] {
    let row = |case, (ns, spread_ns): (f64, _), (free_ns, unsized_ns), floor_ns, per_free| {
        let phase = str::replace(case, "_", " ");
        let case = LimitCase { units, order: 0, threads, fill_percent: 50, case, phase, ops: 1.0 };
        let row = case.row(ns, cost.bare_ns, ns / cost.bare_ns, spread_ns);
        with_steps(row, steps.alloc, Some(per_free)).with_all([
            ("alloc_ns", Some(cost.alloc_ns)),
            ("free_ns", Some(free_ns)),
            ("free_unsized_ns", Some(unsized_ns)),
            ("floor_ns", Some(floor_ns)),
        ])
    };
    let both = (f64::midpoint(cost.alloc_ns, cost.reverse_ns), cost.both_spread_ns);
    let random = (cost.random_ns, cost.random_spread_ns);
    let frees = (cost.reverse_ns, cost.reverse_unsized_ns);
    let random_frees = (cost.random_ns, cost.random_unsized_ns);
    [
        row("bulk", both, frees, cost.reverse_floor_ns, steps.reverse),
        row("random_free", random, random_frees, cost.random_floor_ns, steps.random),
    ]
}

/// Makes the row of allocations of `order` that are refused.
pub fn fail(units: u64, state: fail::State, order: u32, cost: &fail::Cost, clock: &Clock) -> Row {
    let (fill_percent, phase) = (state.fill_percent(), format!("refused, {}", state.name()));
    let case = LimitCase { units, order, threads: 1, fill_percent, case: "fail", phase, ops: 1.0 };
    let row = case.row(cost.ns, cost.bare_ns, cost.ns / cost.bare_ns, cost.spread_ns);
    let row = with_steps(row, cost.steps, None).with("state", state.name());
    let clock_step_ns = Some(hundredths(clock.step_ns()));
    Row { p99_ns: Some(hundredths(cost.p99_ns)), clock_step_ns, ..row }
        .with_all([("first_ns", Some(cost.first_ns))])
}

#[cfg(test)]
mod tests {
    use super::bulk;
    use crate::limit::bulk::{Cost, Steps};

    #[test]
    fn nobody_has_verified_these_rows() {
        for row in bulk(1 << 10, 1, &Cost::default(), &Steps::default()) {
            assert_eq!((row.verified, row.is_good()), (None, true));
        }
    }
}
