//! Measures the floor: compare-and-swaps and nothing else.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A word with a cache line to itself. All accesses are SeqCst, as those of the protocol that it is measured beside.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Bare(AtomicU64);

impl Bare {
    /// Does pairs of compare-and-swaps, each of which needs the result of the one before. Nothing is loaded, since the
    /// word's value is known.
    #[inline(never)]
    pub fn pairs(&self, pairs: u64) {
        let mut held = self.0.load(SeqCst);
        for _ in 0..pairs {
            held = self.step(held);
            held = self.step(held);
        }
    }

    #[inline(always)]
    fn step(&self, held: u64) -> u64 {
        match self.0.compare_exchange(held, held + 1, SeqCst, SeqCst) {
            Ok(found) | Err(found) => found + 1,
        }
    }
}

/// As many words as the leaf words of an arena, in the same layout.
#[derive(Debug)]
pub struct Footprint(Vec<AtomicU64>);

/// Units that a leaf word describes.
const UNITS_PER_WORD: u64 = 32;

impl Footprint {
    /// Creates the words for an arena of `units` units, with all their memory already present.
    pub fn new(units: u64) -> Self {
        Self((0..units.div_ceil(UNITS_PER_WORD)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Does one compare-and-swap at the word of each unit: the least that freeing them in this order can cost,
    /// including cache misses.
    #[inline(never)]
    pub fn touch(&self, units: &[u32]) {
        for &unit in units {
            let word = &self.0[(u64::from(unit) / UNITS_PER_WORD) as usize];
            // Swaps 0 for 0: it succeeds without a load of what was there.
            let _ = word.compare_exchange(0, 0, SeqCst, SeqCst);
        }
    }
}
