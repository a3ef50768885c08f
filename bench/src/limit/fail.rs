//! Measures allocations that are refused.

use std::hint::black_box;

use super::arena::Arena;
use super::bare::Bare;
use crate::clock::Clock;
use crate::counted::count;
use crate::median::{median, tenths};

/// A state of the arena in which some orders have no free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Every unit is in use.
    Full,
    /// Every second unit is in use.
    Fragmented,
    /// One unit in 512, which is 2 MiB of 4 KiB, is in use.
    Sprinkled,
}

impl State {
    /// All states, each made from the one before.
    pub const ALL: [Self; 3] = [Self::Full, Self::Fragmented, Self::Sprinkled];

    /// Returns its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::Sprinkled => "sprinkled",
        }
    }

    /// Returns the smallest order that is refused.
    pub fn smallest_refused(self) -> u32 {
        match self {
            Self::Full => 0,
            Self::Fragmented => 1,
            Self::Sprinkled => 9,
        }
    }

    /// Returns how much of the arena is in use, in percent, rounded up.
    pub fn fill_percent(self) -> u32 {
        match self {
            Self::Full => 100,
            Self::Fragmented => 50,
            Self::Sprinkled => 1,
        }
    }

    /// Makes this state from the one before it, or from an empty arena if it is the first.
    pub fn make(self, arena: &Arena) -> anyhow::Result<()> {
        let units = 0..arena.units();
        match self {
            Self::Full => arena.fill(0),
            Self::Fragmented => arena.free(0, units, |unit| (unit % 2 == 1).then_some(unit)),
            Self::Sprinkled => {
                arena.free(0, units, |unit| (unit % 2 == 0 && unit % 512 != 0).then_some(unit))
            }
        }
    }
}

/// The cost of a refused allocation.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Nanoseconds, the median over stretches.
    pub ns: f64,
    /// Nanoseconds of the first refusal after the arena was brought into its state.
    pub first_ns: f64,
    /// Nanoseconds that 99 of 100 refusals after the first do not exceed, each timed by itself.
    pub p99_ns: f64,
    /// Nanoseconds of a bare compare-and-swap.
    pub bare_ns: f64,
    /// Nanoseconds that a tenth of the stretches stay below, and that a tenth exceed.
    pub spread_ns: (f64, f64),
    /// Read-modify-writes.
    pub steps: f64,
}

/// Times refusals of `order`.
pub fn time(arena: &Arena, order: u32, rounds: usize, clock: &Clock) -> Cost {
    const STRETCH_NS: f64 = 500_000.0;
    const PAIRS: u64 = 5_000;
    const SINGLE: usize = 1_000;
    let steps = count_steps(arena, order);
    let buddy = arena.buddy();
    let refuse =
        || assert!(black_box(buddy.on(0).alloc(order)).is_err(), "there is a block after all");
    let once = || {
        let start = clock.ticks();
        refuse();
        clock.operation_ns(clock.ticks() - start)
    };
    let first_ns = once();
    let mut single: Vec<f64> = (0..SINGLE).map(|_| once()).collect();
    let (_, p99_ns, _) = single.select_nth_unstable_by(SINGLE * 99 / 100, f64::total_cmp);
    let p99_ns = *p99_ns;
    let calls = (STRETCH_NS / median(single)).clamp(1.0, 20_000.0) as usize;
    let bare = Bare::default();
    let (mut ns, mut bare_ns) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ns.push(clock.time_ns(|| (0..calls).for_each(|_| refuse())) / calls as f64);
        bare_ns.push(clock.time_ns(|| bare.pairs(PAIRS)) / (2 * PAIRS) as f64);
    }
    let spread_ns = tenths(ns.iter().copied());
    Cost { ns: median(ns), first_ns, p99_ns, bare_ns: median(bare_ns), spread_ns, steps }
}

/// Counts the read-modify-writes of a refusal, on a copy of the arena, after a first refusal.
fn count_steps(arena: &Arena, order: u32) -> f64 {
    const CALLS: u64 = 20;
    arena.with_counted_copy(|buddy| {
        let _ = buddy.on(0).alloc(order);
        let (refused, counts) = count(|| (0..CALLS).all(|_| buddy.on(0).alloc(order).is_err()));
        assert!(refused, "there is a block after all");
        counts.steps as f64 / CALLS as f64
    })
}
