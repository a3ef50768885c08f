//! The workloads of the crate talc: random actions, and how much of a heap is in use when it is full.
//!
//! Sizes and alignments are drawn as in that crate: small ones are likelier, and alignments above that of a pointer are
//! rare.

use std::alloc::Layout;

use crate::crew::Crew;
use crate::suite::gauge::{Gauge, Stretch, measured};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// A thread, and the blocks that it holds.
struct Actor<'a> {
    round: &'a HeapRound<'a>,
    random: fastrand::Rng,
    held: Vec<(u64, Layout)>,
    /// The bytes that it holds.
    bytes: u64,
    ops: u64,
    refused: u64,
}

/// The largest sizes of random actions; each is a part of the workload.
const LARGEST: [(&str, usize); 5] = [
    ("to 200", 200),
    ("to 1000", 1000),
    ("to 3000", 3000),
    ("to 10000", 10_000),
    ("to 30000", 30_000),
];

/// Runs random actions: of seven, one resizes, three allocate, and three free, or allocate while there are fewer than
/// 300 blocks. An action that is refused is an operation, too.
pub fn random_actions(round: &HeapRound<'_>) -> Vec<Part> {
    Crew::run(round.setting.threads, |crew, lane| {
        let mut actor = Actor::new(round, lane as u64);
        let stretches = LARGEST.map(|(name, most)| {
            let stretch = actor.stretch(name, most, crew);
            actor.free_all();
            stretch
        });
        Part { stretches: stretches.into(), refused: actor.refused, ..Part::default() }
    })
}

/// Fills the heap by random actions until something is refused, then frees everything: 300 times, or as often as there
/// is time for. Of ten actions, five allocate, one frees, and four resize, to up to ten times the largest size.
///
/// There is only an efficiency on one thread, as several threads do not meet a full heap at the same time. There is
/// none for a heap that gets its memory itself and so refuses nothing: it counts as full when as much is in use as the
/// other heaps have.
pub fn heap_efficiency(round: &HeapRound<'_>) -> Vec<Part> {
    const TIMES: u32 = 300;
    Crew::run(round.setting.threads, |crew, lane| {
        let mut actor = Actor::new(round, lane as u64);
        let mut gauge = Gauge::new(round.setting, round.clock);
        let (mut used, mut times) = (0, 0);
        crew.wait_awake();
        gauge.start();
        measured(|| {
            while times == 0 || times < TIMES && !gauge.is_late() {
                actor.fill(&mut gauge);
                used += actor.bytes;
                times += 1;
                actor.free_all();
            }
        });
        let stretches = vec![gauge.stop("until full".into(), actor.ops, true)];
        let percent = used as f64 * 100.0 / f64::from(times) / round.bytes as f64;
        let there = actor.refused > 0 && round.setting.threads == 1;
        let (refused, efficiency_percent) = (actor.refused, there.then_some(percent));
        Part { stretches, refused, efficiency_percent, ..Part::default() }
    })
}

impl<'a> Actor<'a> {
    fn new(round: &'a HeapRound<'a>, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { round, random, held: Vec::with_capacity(100_000), bytes: 0, ops: 0, refused: 0 }
    }

    fn stretch(&mut self, name: &'static str, most: usize, crew: &Crew) -> Stretch {
        /// The number of blocks from which on it frees as often as it allocates.
        const BLOCKS: usize = 300;
        let mut gauge = Gauge::new(self.round.setting, self.round.clock);
        crew.wait_awake();
        gauge.start();
        let before = self.ops;
        measured(|| {
            while !gauge.is_late() {
                for _ in 0..100 {
                    match self.random.u8(0..7) {
                        6 => self.resize(3 * most, &mut gauge),
                        action if action < 3 || self.held.len() < BLOCKS => {
                            self.alloc(most, &mut gauge)
                        }
                        _ => self.free(&mut gauge),
                    };
                }
            }
        });
        gauge.stop(name.into(), self.ops - before, true)
    }

    /// Fills the heap until something is refused, or as much is in use as the heap has memory.
    fn fill(&mut self, gauge: &mut Gauge<'_>) {
        const MOST: usize = 10_000;
        let share = self.round.bytes / self.round.setting.threads as u64;
        while self.bytes < share
            && match self.random.u8(0..10) {
                0..5 => self.alloc(MOST, gauge),
                5 => self.free(gauge),
                _ => self.resize(10 * MOST, gauge),
            }
        {}
    }

    /// Allocates a block. Returns `false` if it is refused.
    fn alloc(&mut self, most: usize, gauge: &mut Gauge<'_>) -> bool {
        let below = self.random.usize(16..most);
        let size = self.random.usize(4..below);
        let align = align_of::<usize>() << (self.random.u16(..).trailing_zeros() / 2);
        let layout = Layout::from_size_align(size, align).expect("a small size");
        let block = gauge.time(|| self.round.heap.alloc(layout));
        self.held.extend(block.map(|at| (at, layout)));
        self.bytes += block.map_or(0, |_| size as u64);
        self.note(block.is_some())
    }

    /// Frees one of the blocks, if there is one.
    fn free(&mut self, gauge: &mut Gauge<'_>) -> bool {
        if !self.held.is_empty() {
            let (at, layout) = self.held.swap_remove(self.random.usize(..self.held.len()));
            gauge.time(|| self.round.heap.free(at, layout));
            self.bytes -= layout.size() as u64;
            self.ops += 1;
        }
        true
    }

    /// Makes one of the blocks, if there is one, smaller or larger, to less than `below`. Returns `false` if that is
    /// refused.
    fn resize(&mut self, below: usize, gauge: &mut Gauge<'_>) -> bool {
        if self.held.is_empty() {
            return true;
        }
        let place = self.random.usize(..self.held.len());
        let (at, layout) = &mut self.held[place];
        let size = self.random.usize(1..below);
        let moved = gauge.time(|| self.round.heap.resize(*at, *layout, size));
        if let Some(moved) = moved {
            let new = Layout::from_size_align(size, layout.align()).expect("a small size");
            self.bytes = self.bytes + size as u64 - layout.size() as u64;
            (*at, *layout) = (moved, new);
        }
        self.note(moved.is_some())
    }

    /// Counts an operation that was done, or was refused.
    fn note(&mut self, done: bool) -> bool {
        self.ops += 1;
        self.refused += u64::from(!done);
        done
    }

    fn free_all(&mut self) {
        self.held.drain(..).for_each(|(at, layout)| self.round.heap.free(at, layout));
        self.bytes = 0;
    }
}
