//! Where a search need not look: for each stretch of the row, how long the free pieces are that begin there.
//!
//! A search notes what it finds in a stretch that it looks through, and a free raises the bound of the stretch where its
//! piece begins. A bound is a hint: where a unit comes free behind a search, it may be too low until the next free or
//! search there. Before a search gives up it looks everywhere.

use core::sync::atomic::Ordering;

use crate::words::AtomicUsize;

/// The words of a stretch.
pub const WORDS: usize = 16;

/// A stretch in which a piece of so many units or more begins has no bound.
pub const MOST: usize = 512;

/// The bounds of a row, each of which is stored as bound + 1; 0 means that there is none.
///
/// Accesses are relaxed: a bound publishes nothing.
#[derive(Clone, Copy)]
pub struct Bounds<'a>(pub &'a [AtomicUsize]);

impl Bounds<'_> {
    /// Returns how many there are for so many words.
    pub const fn of_words(words: usize) -> usize {
        words.div_ceil(WORDS)
    }

    /// Returns whether a piece of `units` units may begin in a stretch.
    pub fn allows(&self, stretch: usize, units: usize) -> bool {
        // A bound that is not there is 0, and so allows anything.
        self.0
            .get(stretch)
            .is_none_or(|bound| bound.load(Ordering::Relaxed).wrapping_sub(1) >= units)
    }

    /// Notes that the longest piece that begins in a stretch has `units` units.
    pub fn set(&self, stretch: usize, units: usize) {
        if let Some(bound) = self.0.get(stretch) {
            bound.store(if units < MOST { units + 1 } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Notes that a piece of `units` units begins in a stretch.
    pub fn raise(&self, stretch: usize, units: usize) {
        if !self.allows(stretch, units) {
            self.set(stretch, units);
        }
    }
}
