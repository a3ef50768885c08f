//! All harts wait for all.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};

/// For a number of harts, again and again.
pub struct Barrier {
    harts: usize,
    /// How many have come, of all rounds.
    come: Line,
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub struct Line(pub AtomicUsize);

impl Barrier {
    pub fn new(harts: usize) -> Self {
        Self { harts, come: Line::default() }
    }

    /// Returns when all have come. What each did before, all see after it.
    pub fn wait(&self) {
        // Release and Acquire: each other's, through the sum; it is a chain of read-modify-writes.
        let come = self.come.0.fetch_add(1, Ordering::AcqRel);
        let all = (come / self.harts + 1) * self.harts;
        while self.come.0.load(Ordering::Acquire) < all {
            spin_loop();
        }
    }
}
