//! Measures every loop in the same way.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::barrier::{Barrier, Line};
use crate::entry::HARTS;
use crate::machine::{self, say};
use crate::request::Request;

/// A run of all harts.
pub struct Course {
    harts: usize,
    warm_up: u64,
    operations: u64,
    pub barrier: Barrier,
    /// The number of harts that are warm.
    warm: Line,
    /// The number of harts that have finished measuring.
    done: Line,
    notes: [Note; HARTS],
}

/// What a hart did, on a cache line of its own.
#[repr(align(64))]
struct Note {
    operations: AtomicU64,
    cycles: AtomicU64,
    /// The operations while any hart measured.
    all: AtomicU64,
}

impl Course {
    pub fn new(harts: usize, request: &Request) -> Self {
        let new = || AtomicU64::new(0);
        Self {
            harts,
            warm_up: request.warm_up,
            operations: request.operations,
            barrier: Barrier::new(harts),
            warm: Line(AtomicUsize::new(0)),
            done: Line(AtomicUsize::new(0)),
            notes: core::array::from_fn(|_| Note { operations: new(), cycles: new(), all: new() }),
        }
    }

    /// Repeats `step`, which returns how many operations it made: warms up, waits for the others, and measures. A hart
    /// that is warm or done goes on until all are: no hart waits for blocks from one that has stopped, or measures a
    /// machine that becomes idle.
    pub fn measure(&self, hart: usize, mut step: impl FnMut() -> u64) {
        repeat(self.warm_up, &mut step);
        self.warm.0.fetch_add(1, Relaxed);
        self.go_on(&self.warm, &mut step);
        self.barrier.wait();
        if hart == 0 {
            machine::reset_statistics();
        }
        self.barrier.wait();

        let begin = machine::cycles();
        let operations = repeat(self.operations, &mut step);
        let cycles = machine::cycles() - begin;

        // Relaxed, like the rest: these are numbers that are read after the barrier.
        if self.done.0.fetch_add(1, Relaxed) + 1 == self.harts {
            machine::note_statistics();
        }
        let all = operations + self.go_on(&self.done, &mut step);
        let note = &self.notes[hart];
        note.operations.store(operations, Relaxed);
        note.cycles.store(cycles, Relaxed);
        note.all.store(all, Relaxed);
    }

    /// Repeats `step` until all harts have counted themselves in `line`. Returns the number of operations.
    fn go_on(&self, line: &Line, step: &mut impl FnMut() -> u64) -> u64 {
        let mut operations = 0;
        while line.0.load(Relaxed) < self.harts {
            operations += step();
        }
        operations
    }

    /// Writes a line for each hart.
    pub fn report(&self) {
        for Note { operations, cycles, all } in &self.notes[..self.harts] {
            let [operations, cycles, all] = [operations, cycles, all].map(|it| it.load(Relaxed));
            say!("hart {operations} {cycles} {all}");
        }
    }
}

/// Repeats `step` until there are at least `operations` operations. Returns how many there are then.
#[inline]
fn repeat(operations: u64, step: &mut impl FnMut() -> u64) -> u64 {
    let mut done = 0;
    while done < operations {
        done += step();
    }
    done
}
