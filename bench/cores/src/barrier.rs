//! A barrier at which all harts wait for all.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A barrier for a number of harts, which can be used again and again.
pub struct Barrier {
    harts: usize,
    /// The number of arrivals in all rounds.
    come: Line,
}

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub struct Line(pub AtomicUsize);

impl Barrier {
    pub fn new(harts: usize) -> Self {
        Self { harts, come: Line::default() }
    }

    /// Returns when all harts have come. After it, all see what each did before.
    pub fn wait(&self) {
        // Release and Acquire pair with each other, through the sum, which is a chain of read-modify-writes.
        let come = self.come.0.fetch_add(1, Ordering::AcqRel);
        let all = (come / self.harts + 1) * self.harts;
        while self.come.0.load(Ordering::Acquire) < all {
            spin_loop();
        }
    }
}
