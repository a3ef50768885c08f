//! Verifies a replay with the oracle, in the order of the trace, where every refusal can be judged.

use std::panic::{AssertUnwindSafe, catch_unwind};

use testkit::{BackEnd, Checked, Oracle, Violation};

use super::plan::{ReplayPlan, Step};
use crate::market::Contender;
use crate::trace::{Action, Trace};

/// The order of a huge page on x86-64: 2 MiB out of pages of 4 KiB.
const HUGE: u32 = 9;

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The first violation.
    pub violation: Option<String>,
    /// Allocations that were refused, rightly or not.
    pub failed: u64,
    /// The most units that were held at once.
    pub peak_units: u64,
    /// The layout of the free memory when the trace ends.
    pub end: FreeMemory,
}

/// The layout of the free memory, according to the owner map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// The largest order with a free block.
    pub largest_order: Option<u32>,
    /// Thousandths of the free units that lie outside the largest free block.
    pub fragmentation_permille: u64,
    /// Thousandths of the free units that lie outside free, aligned 2 MiB.
    pub unusable_huge_permille: u64,
}

impl FreeMemory {
    fn of(oracle: &Oracle) -> Self {
        let units = oracle.units();
        let free = units - oracle.held_units();
        let whole = |order| oracle.free_blocks(order);
        let largest_order = (0..=units.ilog2()).rev().find(|&order| whole(order) > 0);
        let outside = |units: u64| ((free - units) * 1000).checked_div(free).unwrap_or(0);
        Self {
            largest_order,
            fragmentation_permille: outside(largest_order.map_or(0, |order| 1 << order)),
            unusable_huge_permille: outside(whole(HUGE) << HUGE),
        }
    }
}

/// Replays the trace in its order, from each of the lanes in turn. At the end everything must be freed and the memory
/// whole.
pub fn verify(contender: &Contender, units: u64, trace: &Trace, lanes: usize) -> Verdict {
    watch(contender, units, &ReplayPlan::new(trace, lanes), |_, _| ())
}

/// Replays the plan in the order of the trace, and calls `seen` after every operation, with the owner map and the
/// number of operations so far. Everything is checked against this owner map.
pub fn watch(
    contender: &Contender,
    units: u64,
    plan: &ReplayPlan,
    seen: impl FnMut(usize, &Oracle),
) -> Verdict {
    contender.with_back_end(units, |allocator| in_turn(allocator, plan, seen))
}

fn in_turn(
    allocator: &dyn BackEnd,
    plan: &ReplayPlan,
    mut seen: impl FnMut(usize, &Oracle),
) -> Verdict {
    let checked = Checked::sequential(allocator);
    let mut live = Live { places: vec![None; plan.blocks], units: 0, peak_units: 0, failed: 0 };
    let mut end = FreeMemory::default();
    let result = catch_panic(|| {
        for (&(lane, step), count) in plan.steps.iter().zip(1..) {
            live.step(&checked, lane, step);
            checked.violation().map_or(Ok(()), Err)?;
            seen(count, checked.oracle());
        }
        end = FreeMemory::of(checked.oracle());
        finish(&checked, plan, &live.places)
    });
    let violation = result.err().map(|violation| violation.to_string());
    Verdict { violation, failed: live.failed, peak_units: live.peak_units, end }
}

/// The places of the blocks during a sequential pass.
struct Live {
    places: Vec<Option<u64>>,
    units: u64,
    peak_units: u64,
    failed: u64,
}

impl Live {
    fn step(&mut self, checked: &Checked<&dyn BackEnd>, lane: usize, step: Step) {
        let (order, place) = (u32::from(step.order), &mut self.places[step.block as usize]);
        match (step.action, *place) {
            (Action::Alloc, _) => {
                *place = checked.alloc(lane, order);
                self.failed += u64::from(place.is_none());
                self.units += place.map_or(0, |_| 1 << order);
                self.peak_units = self.peak_units.max(self.units);
            }
            (Action::Free, Some(index)) => {
                // A refused free is a violation, and `checked` remembers it.
                let _ = checked.free(lane, index, order);
                self.units -= 1 << order;
            }
            (Action::Free, None) => {}
        }
    }
}

/// Runs `work`, and turns a panic of the allocator into a violation.
fn catch_panic(work: impl FnOnce() -> Result<(), Violation>) -> Result<(), Violation> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)))
}

/// Frees what the trace leaves, and checks that the memory is whole again.
fn finish(
    checked: &Checked<&dyn BackEnd>,
    plan: &ReplayPlan,
    places: &[Option<u64>],
) -> Result<(), Violation> {
    checked.violation().map_or(Ok(()), Err)?;
    for &(block, order) in &plan.survivors {
        if let Some(index) = places[block] {
            // A refused free is a violation, and `checked` remembers it.
            let _ = checked.free(0, index, order);
        }
    }
    checked.finish()
}

#[cfg(test)]
mod tests;
