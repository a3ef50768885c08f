//! The states in which programs begin: what is in use, and what the lanes remember.

use testkit::program::Held;

use crate::calls::Call;

/// A scene's name, and the calls that lead to it.
pub struct Plan {
    pub name: &'static str,
    pub calls: Vec<(usize, Call)>,
}

/// The lane that is not part of programs, and holds what is in their way.
pub const BYSTANDER: usize = 3;

const fn held(index: u64, len: u64) -> Held {
    Held { index, len }
}

/// Allocates units for a lane, at a place.
fn at(lane: usize, index: u64, len: u64) -> (usize, Call) {
    (lane, Call::At(held(index, len)))
}

/// Makes the lane's cursor for single units point at `unit`, which is even.
fn cursor_at(lane: usize, unit: u64, units: u64) -> Vec<(usize, Call)> {
    let mut calls = Vec::new();
    if unit > 0 {
        calls.push(at(BYSTANDER, 0, unit));
    }
    calls.push(at(BYSTANDER, unit + 1, units - unit - 1));
    calls.extend([(lane, Call::Alloc(0)), (lane, Call::FreeAll), (BYSTANDER, Call::FreeAll)]);
    calls
}

/// Leaves two spares to lane 0, whose cursor is in a full word: the first one in a word that has been merged since, to
/// which the cursor of lane 1 points, the second one beside a unit of lane 2.
fn spares(units: u64, leaf: u64) -> Vec<(usize, Call)> {
    let half = units / 2;
    let free = |lane, index| (lane, Call::FreeSized(held(index, 1)));
    let mut calls = cursor_at(1, 0, units);
    calls.extend(cursor_at(0, half, units));
    calls.extend([1, leaf + 1].map(|index| at(2, index, 1)));
    calls.extend([0, leaf, half].map(|index| at(0, index, 1)));
    calls.push(at(BYSTANDER, half + 1, leaf - 1));
    // A free is noted where the lane did not free just before.
    for spare in [leaf, 0] {
        calls.extend([free(0, spare), free(0, half), (0, Call::Alloc(0))]);
    }
    calls.push(free(2, 1));
    calls
}

/// Returns the scenes of an arena of `units` units, with leaf words of `leaf` units.
pub fn plans(units: u64, leaf: u64) -> Vec<Plan> {
    let (half, quarter, top) = (units / 2, units / 4, units.ilog2());
    let stale = || {
        let mut calls = cursor_at(1, 0, units);
        calls.extend(cursor_at(2, half + quarter, units));
        calls
    };
    let after = |before: Vec<(usize, Call)>, calls: Vec<(usize, Call)>| -> Vec<_> {
        before.into_iter().chain(calls).collect()
    };
    let mut full: Vec<_> = vec![(0, Call::Alloc(1)), (1, Call::Alloc(0)), (2, Call::Alloc(2))];
    for order in (0..=top).rev() {
        full.extend((0..units >> order).map(|_| (BYSTANDER, Call::Alloc(order))));
    }
    let chequered = (0..units).step_by(2).map(|unit| at((unit / 2 % 4) as usize, unit, 1));
    let corners = (0..units).step_by(leaf as usize).zip([0, 1, 2, 3].into_iter().cycle());
    vec![
        Plan { name: "empty", calls: vec![] },
        Plan {
            name: "one block each",
            calls: vec![(0, Call::Alloc(0)), (1, Call::Alloc(2)), (2, Call::Alloc(1))],
        },
        Plan { name: "full", calls: full },
        Plan { name: "a block of all", calls: after(stale(), vec![(0, Call::Alloc(top))]) },
        Plan {
            name: "a block of all, both cursors below its first half",
            calls: after(
                after(cursor_at(1, 0, units), cursor_at(2, quarter, units)),
                vec![(0, Call::Alloc(top))],
            ),
        },
        Plan { name: "a block of half", calls: after(stale(), vec![at(0, 0, half)]) },
        Plan {
            name: "a block of half, the other half in use",
            calls: after(stale(), vec![at(0, 0, half), at(BYSTANDER, half, half)]),
        },
        Plan {
            name: "a block of a quarter",
            calls: after(stale(), vec![at(0, 0, quarter), at(1, quarter, 1), at(2, half, quarter)]),
        },
        Plan { name: "a run of nearly all", calls: after(stale(), vec![at(0, 1, units - 3)]) },
        Plan {
            name: "a run across the middle",
            calls: after(stale(), vec![at(0, half - 3, 7), at(1, half + 4, 1), at(2, 0, 2)]),
        },
        Plan {
            name: "a run of three quarters",
            calls: after(stale(), vec![at(0, 0, half + quarter)]),
        },
        Plan {
            name: "short runs",
            calls: vec![at(0, 0, leaf - 1), at(1, leaf, leaf + 1), at(2, half, leaf + 2)],
        },
        Plan {
            name: "runs from the last unit of a word",
            calls: vec![at(0, leaf - 1, leaf + 2), at(1, 3 * leaf - 1, 2), at(2, 0, 1)],
        },
        Plan { name: "spares", calls: spares(units, leaf) },
        Plan { name: "chequered", calls: chequered.collect() },
        Plan { name: "corners", calls: corners.map(|(unit, lane)| at(lane, unit, 1)).collect() },
        Plan {
            name: "reserved",
            calls: vec![
                (0, Call::Reserve(1..leaf + 2)),
                (1, Call::Reserve(half..half + 1)),
                (2, Call::Alloc(1)),
                (1, Call::Alloc(0)),
            ],
        },
        Plan {
            name: "batches",
            calls: vec![(0, Call::Batch(0, 3)), (1, Call::Batch(1, 2)), (2, Call::Batch(0, 2))],
        },
        Plan {
            name: "unsettled",
            calls: vec![
                (0, Call::Alloc(0)),
                (1, Call::Alloc(0)),
                (2, Call::Alloc(1)),
                (0, Call::FreeAll),
                (1, Call::FreeAll),
                (2, Call::FreeAll),
            ],
        },
    ]
}

/// Returns what a lane can do that holds this; each entry is a task.
pub fn menu(
    held: &[Held],
    reservations: &[std::ops::Range<u64>],
    units: u64,
    leaf: u64,
) -> Vec<Vec<Call>> {
    let (half, top) = (units / 2, units.ilog2());
    let mut single: Vec<Call> = (0..=top).map(Call::Alloc).collect();
    single.extend([3, leaf, leaf + 1, half - 1, half + 1].map(Call::Units));
    single.extend(
        [
            (0, leaf - 1),
            (1, leaf),
            (leaf - 1, 2),
            (half - 2, leaf + 1),
            (half, half),
            (half, half - leaf),
            (0, units),
        ]
        .map(|(index, len)| Call::At(self::held(index, len))),
    );
    single.extend(
        [
            (2, 1, 0..units, true),
            (2, 1, 0..units, false),
            (3, 0, 0..units, false),
            (leaf + 1, 0, 1..units, false),
            (half, 0, 0..units, true),
        ]
        .map(|(units, order, range, top_down)| Call::Within {
            units,
            order,
            range,
            top_down,
        }),
    );
    single.extend([Call::Batch(0, 3), Call::Batch(2, 2), Call::Look, Call::Mend]);
    single.extend([0..leaf, half - 1..half + leaf].map(Call::Reserve));
    let mut then_free =
        vec![Call::Alloc(0), Call::Alloc(top - 1), Call::Units(leaf + 1), Call::Batch(1, 2)];
    for &held in held.iter().take(2) {
        single.extend([Call::Free(held), Call::FreeUnits(held)]);
        if held.len.is_power_of_two() && held.index % held.len == 0 {
            single.push(Call::FreeSized(held));
        }
        for order in 0..(held.index | held.len).trailing_zeros() {
            then_free.push(Call::Split(held, order));
        }
        for cut in cuts(held, leaf) {
            then_free.extend([Call::Shrink(held, cut), Call::SplitOff(held, cut)]);
            single.push(Call::FreePart(held, held.index..held.index + cut));
            let middle = held.index + held.len / 2;
            if held.index + cut < middle {
                then_free.push(Call::FreePart(held, held.index + cut..middle));
            }
        }
        for more in [1, 2, leaf, half] {
            if held.index + held.len + more <= units {
                then_free.push(Call::Grow(held, held.len + more));
            }
        }
    }
    if held.len() > 1 {
        single.push(Call::FreeAll);
        single.extend([0, 1].map(Call::FreeBatch));
    }
    single.extend(reservations.iter().cloned().map(Call::Release));
    single.extend(then_free.iter().cloned());
    let single = single.into_iter().map(|call| vec![call]);
    single.chain(then_free.into_iter().map(|call| vec![call, Call::FreeAll])).collect()
}

/// Returns where a run is cut: near its ends, and once in each size of slot.
fn cuts(held: Held, leaf: u64) -> Vec<u64> {
    let len = held.len;
    let mut cuts: Vec<u64> = [
        1,
        leaf - 1,
        leaf,
        leaf + 1,
        len / 2 - len.min(2) / 2,
        len / 2,
        len / 2 + 1,
        len.saturating_sub(leaf),
        len.saturating_sub(1),
    ]
    .into_iter()
    .filter(|&cut| cut > 0 && cut < len)
    .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}
