//! Measures pairs: allocate a block, free it, again and again.

use std::hint::black_box;

use nbbs::Buddy;
use nbbs::sync::Word;

use super::arena::Arena;
use super::bare::Bare;
use crate::clock::Clock;
use crate::counted::count;
use crate::crew::Crew;
use crate::median::{median, tenths};

/// Pairs in a stretch that is timed as one: long beside a step of the clock, short beside a time slice.
const BATCH: u64 = 20_000;

/// The cost of pairs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Nanoseconds a pair, for the slowest thread.
    pub ns: f64,
    /// Nanoseconds a pair of bare compare-and-swaps, for the same thread, in alternation.
    pub bare_ns: f64,
    /// The median over rounds of `ns` by `bare_ns`, for the thread where it is largest.
    pub ratio: f64,
    /// Nanoseconds a pair that a tenth of the rounds stay below, and that a tenth exceed, for the first thread.
    pub spread_ns: (f64, f64),
    /// With several threads: nanoseconds a pair of one of them while the others sleep.
    pub alone_ns: Option<f64>,
}

/// What one thread measured in one round.
struct Round {
    ns: f64,
    bare_ns: f64,
    alone_ns: Option<f64>,
}

/// Times pairs of `order` on this number of threads, in alternation with bare compare-and-swaps.
pub fn time(arena: &Arena, order: u32, threads: usize, rounds: usize, clock: &Clock) -> Cost {
    let buddy = arena.buddy();
    time_by(threads, rounds, clock, |lane| {
        move || {
            let index = black_box(alloc(&buddy, lane, order));
            free(&buddy, lane, index, order);
        }
    })
}

/// Times the pairs that `pair` makes for each lane.
pub fn time_by<P: FnMut()>(
    threads: usize,
    rounds: usize,
    clock: &Clock,
    pair: impl Fn(usize) -> P + Sync,
) -> Cost {
    let lanes = Crew::run(threads, |crew, lane| {
        let bare = Bare::default();
        let mut member = Member { crew, lane, pair: pair(lane), bare: &bare, clock };
        member.round(0); // warms up
        (0..rounds).map(|round| member.round(round)).collect::<Vec<_>>()
    });
    sum_up(&lanes)
}

fn sum_up(lanes: &[Vec<Round>]) -> Cost {
    let over = |figure: fn(&Round) -> f64| {
        lanes.iter().map(move |rounds| median(rounds.iter().map(figure)))
    };
    let slowest = over(|round| round.ns).zip(over(|round| round.bare_ns));
    let (ns, bare_ns) = slowest.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    let ratio = over(|round| round.ns / round.bare_ns).fold(0.0, f64::max);
    let spread_ns = tenths(lanes.iter().take(1).flatten().map(|round| round.ns));
    let alone: Vec<f64> = lanes.iter().flatten().filter_map(|round| round.alone_ns).collect();
    let alone_ns = (!alone.is_empty()).then(|| median(alone));
    Cost { ns, bare_ns, ratio, spread_ns, alone_ns }
}

/// One thread of a measurement.
struct Member<'a, P> {
    crew: &'a Crew,
    lane: usize,
    pair: P,
    bare: &'a Bare,
    clock: &'a Clock,
}

impl<P: FnMut()> Member<'_, P> {
    fn round(&mut self, round: usize) -> Round {
        let alone_ns = (self.crew.threads() > 1).then(|| self.alone()).flatten();
        // The second to run finds another clock speed and another temperature, so they take turns.
        let (ns, bare_ns) = if round.is_multiple_of(2) {
            let ns = self.pairs();
            (ns, self.bare())
        } else {
            let bare_ns = self.bare();
            (self.pairs(), bare_ns)
        };
        Round { ns, bare_ns, alone_ns }
    }

    /// Measures on the first lane while the others sleep.
    fn alone(&mut self) -> Option<f64> {
        self.crew.wait_asleep();
        let ns = (self.lane == 0).then(|| self.stretch());
        self.crew.wait_asleep();
        ns
    }

    fn pairs(&mut self) -> f64 {
        self.crew.wait_awake();
        self.stretch()
    }

    fn stretch(&mut self) -> f64 {
        let Self { pair, clock, .. } = self;
        clock.time_ns(|| stretch(pair)) / BATCH as f64
    }

    fn bare(&self) -> f64 {
        self.crew.wait_awake();
        self.clock.time_ns(|| self.bare.pairs(BATCH)) / BATCH as f64
    }
}

#[inline(never)]
fn stretch(pair: &mut impl FnMut()) {
    for _ in 0..BATCH {
        pair();
    }
}

#[inline(always)]
fn alloc<W: Word>(buddy: &Buddy<'_, W>, lane: usize, order: u32) -> u64 {
    buddy.on(lane).alloc(order).expect("more free blocks than threads")
}

#[inline(always)]
fn free<W: Word>(buddy: &Buddy<'_, W>, lane: usize, index: u64, order: u32) {
    buddy.on(lane).free_sized(index, order).expect("a block just allocated");
}

/// Counts the read-modify-writes of an allocation and of a free in steady state, on a copy of the arena.
pub fn count_steps(arena: &Arena, order: u32, threads: usize) -> (f64, f64) {
    const PAIRS: u64 = 1000;
    let lanes = arena.with_counted_copy(|buddy| {
        Crew::run(threads, |crew, lane| {
            crew.wait_awake();
            let pair = |_| {
                let (index, of_alloc) = count(|| alloc(&buddy, lane, order));
                let ((), of_free) = count(|| free(&buddy, lane, index, order));
                (of_alloc.steps, of_free.steps)
            };
            (0..PAIRS / 10).map(pair).count(); // warms up
            (0..PAIRS).map(pair).fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
        })
    });
    let per_operation = |sum: u64| sum as f64 / (PAIRS * threads as u64) as f64;
    let (allocs, frees): (Vec<u64>, Vec<u64>) = lanes.into_iter().unzip();
    (per_operation(allocs.iter().sum()), per_operation(frees.iter().sum()))
}
