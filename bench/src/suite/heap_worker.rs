//! Runs one thread of a workload that only runs on heaps.

use std::alloc::Layout;

use super::gauge::{Gauge, measured};
use super::on_heap::HeapRound;
use super::round::Part;
use crate::crew::Crew;

/// A block, and how it was asked for.
pub type Held = (u64, Layout);

/// A thread: what it asks of the heap is timed and counted.
pub struct HeapWorker<'a> {
    round: &'a HeapRound<'a>,
    gauge: Gauge<'a>,
    pub random: fastrand::Rng,
    ops: u64,
    refused: u64,
    /// Whether time was up before all was done.
    pub short: bool,
}

impl<'a> HeapWorker<'a> {
    /// Runs work that is measured, and begins it together with the other threads.
    pub fn stretch(
        round: &'a HeapRound<'a>,
        (crew, lane): (&Crew, usize),
        name: &'static str,
        work: impl FnOnce(&mut Self),
    ) -> Part {
        let gauge = Gauge::new(round.setting, round.clock);
        let random = fastrand::Rng::with_seed(lane as u64);
        let mut worker = Self { round, gauge, random, ops: 0, refused: 0, short: false };
        crew.wait_awake();
        worker.gauge.start();
        measured(|| work(&mut worker));
        let Self { gauge, ops, refused, short, .. } = worker;
        Part { stretches: vec![gauge.stop(name.into(), ops, !short)], refused, ..Part::default() }
    }

    /// Allocates a block of so many bytes, aligned to 8.
    #[inline]
    pub fn alloc(&mut self, bytes: usize) -> Option<Held> {
        let layout = layout(bytes);
        let at = self.gauge.time(|| self.round.heap.alloc(layout));
        self.ops += 1;
        self.refused += u64::from(at.is_none());
        at.map(|at| (at, layout))
    }

    /// Frees a block, whoever allocated it.
    #[inline]
    pub fn free(&mut self, (at, layout): Held) {
        self.gauge.time(|| self.round.heap.free(at, layout));
        self.ops += 1;
    }

    /// Allocates a block, and frees it at once.
    #[inline]
    pub fn pair(&mut self, bytes: usize) {
        if let Some(held) = self.alloc(bytes) {
            self.free(held);
        }
    }

    /// Runs `step` the given number of times, or until time is up: in a steady state fewer steps say as much. Returns
    /// whether all were done.
    #[inline]
    pub fn up_to(&mut self, times: u64, mut step: impl FnMut(&mut Self)) -> bool {
        for time in 0..times {
            if time.is_multiple_of(32) && self.is_late() {
                return false;
            }
            step(self);
        }
        true
    }

    pub fn is_late(&self) -> bool {
        self.gauge.is_late()
    }
}

/// Returns the layout of so many bytes, aligned to 8.
pub fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("a small size")
}
