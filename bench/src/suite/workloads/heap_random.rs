//! The workload of P. Schuster's simple_chunk_allocator: random sizes and alignments, until the heap is nearly full.
//!
//! The original prints cycles of successful allocations. These are ticks of the time stamp counter, whose rate does not
//! follow the core's, so they are nanoseconds in another unit. To count cycles of the core takes performance counters,
//! which virtual machines seldom have. Here, as everywhere, the figures are nanoseconds, of allocations and frees.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::crew::Crew;
use crate::suite::gauge::{Gauge, Stretch, measured};
use crate::suite::on_heap::HeapRound;
use crate::suite::round::Part;

/// A thread, and the blocks that it holds, the oldest first.
struct Random<'a> {
    round: &'a HeapRound<'a>,
    random: fastrand::Rng,
    held: VecDeque<(u64, Layout)>,
    held_bytes: u64,
    /// The bytes that it may hold.
    share: u64,
    /// Requests, granted or refused, and frees.
    ops: u64,
    refused: u64,
}

/// How often it fills the heap at most, as that is soon done beside the time on a full heap.
const TIMES: usize = 50;

/// Runs until something is refused, again and again until that took long enough, then for a whole stretch on a full heap.
pub fn heap_random(round: &HeapRound<'_>) -> Vec<Part> {
    let threads = round.setting.threads as u64;
    let over = AtomicBool::new(false);
    Crew::run(round.setting.threads, |crew, lane| {
        let mut worker = Random {
            round,
            random: fastrand::Rng::with_seed(lane as u64),
            held: VecDeque::new(),
            held_bytes: 0,
            share: round.bytes / 1000 * 999 / threads,
            ops: 0,
            refused: 0,
        };
        let (mut stretches, mut ticks) = (Vec::new(), 0);
        for time in 1..=TIMES {
            let filling = worker.stretch("filling", crew);
            ticks += filling.ended - filling.began;
            stretches.push(filling);
            crew.wait_asleep();
            if lane == 0 {
                over.store(time == TIMES || ticks >= round.setting.enough_ticks, Relaxed);
            }
            crew.wait_asleep();
            if over.load(Relaxed) {
                break;
            }
            worker.free_all();
        }
        stretches.push(worker.stretch("full", crew));
        worker.free_all();
        Part { stretches, refused: worker.refused, ..Part::default() }
    })
}

impl Random<'_> {
    fn stretch(&mut self, name: &'static str, crew: &Crew) -> Stretch {
        let until_refused = name == "filling";
        let mut gauge = Gauge::new(self.round.setting, self.round.clock);
        crew.wait_awake();
        gauge.start();
        let before = self.ops;
        let mut complete = !until_refused;
        measured(|| {
            while !gauge.is_late() {
                if !self.alloc(&mut gauge) && until_refused {
                    complete = true;
                    break;
                }
                self.free_some(&mut gauge);
            }
        });
        gauge.stop(name.into(), self.ops - before, complete)
    }

    /// Allocates a block of 64 to 16,383 bytes, aligned to 1 to 128. Returns `false` if it is refused, or not asked for
    /// because it would exceed the thread's share.
    fn alloc(&mut self, gauge: &mut Gauge<'_>) -> bool {
        let (size, align) = (self.random.usize(64..16_384), 1 << self.random.u32(0..8));
        let layout = Layout::from_size_align(size, align).expect("a small size");
        if self.held_bytes + size as u64 > self.share {
            return false;
        }
        let block = gauge.time(|| self.round.heap.alloc(layout));
        self.ops += 1;
        match block {
            Some(at) => {
                self.held.push_back((at, layout));
                self.held_bytes += size as u64;
            }
            None => self.refused += 1,
        }
        block.is_some()
    }

    fn free_all(&mut self) {
        self.held.drain(..).for_each(|(at, layout)| self.round.heap.free(at, layout));
        self.held_bytes = 0;
    }

    /// Frees the seven oldest blocks, once in ten times.
    fn free_some(&mut self, gauge: &mut Gauge<'_>) {
        if self.held.len() > 10 && self.random.u8(..10) == 0 {
            for (at, layout) in self.held.drain(..7) {
                gauge.time(|| self.round.heap.free(at, layout));
                self.held_bytes -= layout.size() as u64;
                self.ops += 1;
            }
        }
    }
}
