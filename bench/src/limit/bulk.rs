//! Measures half the arena in blocks of order 0: allocated, freed in reverse; allocated, freed in random order.

use std::ops::Range;

use nbbs::Buddy;
use nbbs::sync::Word;

use super::arena::Arena;
use super::bare::{Bare, Footprint};
use crate::clock::Clock;
use crate::counted::{Counted, count};
use crate::crew::Crew;
use crate::median::{median, tenths};

/// Nanoseconds per operation, of the slowest thread, in the median over rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Allocations.
    pub alloc_ns: f64,
    /// Frees in reverse order.
    pub reverse_ns: f64,
    /// Frees in random order.
    pub random_ns: f64,
    /// Both without the order, which the free finds.
    pub reverse_unsized_ns: f64,
    pub random_unsized_ns: f64,
    /// One bare compare-and-swap for each free in reverse order, on words in the same layout.
    pub reverse_floor_ns: f64,
    /// The same in random order.
    pub random_floor_ns: f64,
    /// One bare compare-and-swap on one word.
    pub bare_ns: f64,
    /// The time that a tenth of the first thread's rounds stay below, and the time that a tenth exceed: for the mean of
    /// allocations and frees in reverse order, and for frees in random order.
    pub both_spread_ns: (f64, f64),
    pub random_spread_ns: (f64, f64),
}

/// Read-modify-writes per operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    /// Allocations.
    pub alloc: f64,
    /// Frees in reverse order.
    pub reverse: f64,
    /// Frees in random order.
    pub random: f64,
}

/// Times rounds on an empty arena, and leaves it empty.
pub fn time(arena: &Arena, threads: usize, rounds: usize, clock: &Clock) -> Cost {
    let (buddy, footprint) = (arena.buddy(), Footprint::new(arena.units()));
    let lanes = Crew::run(threads, |crew, lane| {
        let mut hoard = Hoard::new(buddy, lane, threads);
        let bare = Bare::default();
        (0..rounds).map(|_| round(crew, &mut hoard, &footprint, &bare, clock)).collect::<Vec<_>>()
    });
    let slowest = |figure: fn(&Cost) -> f64| {
        let of_lane = |rounds: &Vec<Cost>| median(rounds.iter().map(figure));
        lanes.iter().map(of_lane).fold(0.0, f64::max)
    };
    let first = || lanes.iter().take(1).flatten();
    let both = |cost: &Cost| f64::midpoint(cost.alloc_ns, cost.reverse_ns);
    Cost {
        both_spread_ns: tenths(first().map(both)),
        random_spread_ns: tenths(first().map(|cost| cost.random_ns)),
        alloc_ns: slowest(|cost| cost.alloc_ns),
        reverse_ns: slowest(|cost| cost.reverse_ns),
        random_ns: slowest(|cost| cost.random_ns),
        reverse_unsized_ns: slowest(|cost| cost.reverse_unsized_ns),
        random_unsized_ns: slowest(|cost| cost.random_unsized_ns),
        reverse_floor_ns: slowest(|cost| cost.reverse_floor_ns),
        random_floor_ns: slowest(|cost| cost.random_floor_ns),
        bare_ns: slowest(|cost| cost.bare_ns),
    }
}

fn round(
    crew: &Crew,
    hoard: &mut Hoard<'_, impl Word>,
    footprint: &Footprint,
    bare: &Bare,
    clock: &Clock,
) -> Cost {
    const PAIRS: u64 = 10_000;
    const STRETCHES: usize = 11;
    let len = hoard.blocks.len();
    let timed = |work: &mut dyn FnMut(Range<usize>)| {
        crew.wait_awake();
        steady_mean(len, |range| clock.time_ns(|| work(range)))
    };
    let alloc_ns = timed(&mut |range| hoard.alloc(range));
    hoard.blocks.reverse();
    let reverse_ns = timed(&mut |range| hoard.free(range));
    let reverse_floor_ns = timed(&mut |range| footprint.touch(&hoard.blocks[range]));
    timed(&mut |range| hoard.alloc(range));
    hoard.blocks.reverse();
    let reverse_unsized_ns = timed(&mut |range| hoard.free_unsized(range));
    timed(&mut |range| hoard.alloc(range));
    hoard.shuffle();
    let random_ns = timed(&mut |range| hoard.free(range));
    let random_floor_ns = timed(&mut |range| footprint.touch(&hoard.blocks[range]));
    timed(&mut |range| hoard.alloc(range));
    hoard.shuffle();
    let random_unsized_ns = timed(&mut |range| hoard.free_unsized(range));
    crew.wait_awake();
    let stretch = |_| clock.time_ns(|| bare.pairs(PAIRS)) / (2 * PAIRS) as f64;
    let bare_ns = median((0..STRETCHES).map(stretch));
    Cost {
        alloc_ns,
        reverse_ns,
        random_ns,
        reverse_unsized_ns,
        random_unsized_ns,
        reverse_floor_ns,
        random_floor_ns,
        bare_ns,
        ..Cost::default()
    }
}

/// Returns the nanoseconds per operation over `len` operations, which may take so long that other programs get the
/// processor now and then: the mean, over all stretches of time, of what is typical in each.
fn steady_mean(len: usize, mut time_ns: impl FnMut(Range<usize>) -> f64) -> f64 {
    /// Operations in a stretch that is timed as one.
    const STRETCH: usize = 1 << 14;
    /// The number of stretches whose median stands for all of them.
    const TOGETHER: usize = 15;
    let mut stretch = |start: usize| {
        let range = start..len.min(start + STRETCH);
        time_ns(range.clone()) / range.len() as f64
    };
    let figures: Vec<f64> = (0..len).step_by(STRETCH).map(&mut stretch).collect();
    let typical = figures.chunks(TOGETHER).map(|figures| median(figures.iter().copied()));
    let groups = typical.len() as f64;
    typical.sum::<f64>() / groups
}

/// Counts read-modify-writes on a copy of an empty arena.
pub fn count_steps(arena: &Arena, threads: usize) -> Steps {
    let lanes = arena.with_counted_copy(|buddy| {
        Crew::run(threads, |crew, lane| count_round(crew, &mut Hoard::new(buddy, lane, threads)))
    });
    let mean = |figure: fn(&Steps) -> f64| lanes.iter().map(figure).sum::<f64>() / threads as f64;
    Steps {
        alloc: mean(|steps| steps.alloc),
        reverse: mean(|steps| steps.reverse),
        random: mean(|steps| steps.random),
    }
}

fn count_round(crew: &Crew, hoard: &mut Hoard<'_, Counted>) -> Steps {
    let len = hoard.blocks.len();
    let counted = |work: &mut dyn FnMut(Range<usize>)| {
        crew.wait_awake();
        let ((), counts) = count(|| work(0..len));
        counts.steps as f64 / len as f64
    };
    let alloc = counted(&mut |range| hoard.alloc(range));
    hoard.blocks.reverse();
    let reverse = counted(&mut |range| hoard.free(range));
    counted(&mut |range| hoard.alloc(range));
    hoard.shuffle();
    let random = counted(&mut |range| hoard.free(range));
    Steps { alloc, reverse, random }
}

/// The blocks of a thread: its share of half of the arena, in blocks of one unit.
struct Hoard<'a, W> {
    buddy: Buddy<'a, W>,
    lane: usize,
    /// The units, in 32 bits each, so that the list takes as little of the processor's cache as possible.
    blocks: Vec<u32>,
    random: fastrand::Rng,
}

impl<'a, W: Word> Hoard<'a, W> {
    fn new(buddy: Buddy<'a, W>, lane: usize, threads: usize) -> Self {
        let share = buddy.units() / 2 / threads as u64;
        let random = fastrand::Rng::with_seed(lane as u64);
        // All of it is written to, so that no page fault is left in it.
        let blocks = (0..share).map(|unit| unit as u32).collect();
        Self { buddy, lane, blocks, random }
    }

    #[inline(never)]
    fn alloc(&mut self, range: Range<usize>) {
        for block in &mut self.blocks[range] {
            *block = self.buddy.on(self.lane).alloc(0).expect("half of the arena is free") as u32;
        }
    }

    #[inline(never)]
    fn free(&mut self, range: Range<usize>) {
        for &block in &self.blocks[range] {
            let freed = self.buddy.on(self.lane).free_sized(u64::from(block), 0);
            freed.expect("a block that was allocated");
        }
    }

    #[inline(never)]
    fn free_unsized(&mut self, range: Range<usize>) {
        for &block in &self.blocks[range] {
            let freed = self.buddy.on(self.lane).free(u64::from(block));
            freed.expect("a block that was allocated");
        }
    }

    fn shuffle(&mut self) {
        self.random.shuffle(&mut self.blocks);
    }
}
