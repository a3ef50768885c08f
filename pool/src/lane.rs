//! Lanes: what a pool remembers for each of a few threads, on cache lines of its own.

use core::sync::atomic::{AtomicBool, AtomicUsize};

use crate::sync::{AtomicU64, Ordering};

/// The number of lanes of a pool. If there are more threads, they share.
pub(crate) const LANES: usize = 32;

/// The number of words of which a `Local` may keep slots at the same time.
pub(crate) const WAYS: usize = 16;

/// Hints, and masks that only the lane's `Local` writes: `Relaxed`, since they publish nothing.
#[repr(align(64))]
pub(crate) struct Lane {
    /// The slots of each word that the `Local` on this lane keeps. They are here so that others can count them.
    pub(crate) kept: [AtomicU64; WAYS],
    /// The position of the slot freed last, which is kept apart from those; 0: there is none.
    pub(crate) last: AtomicUsize,
    /// Chunk and word of the last claim, plus 1; 0: none yet.
    cursor: AtomicU64,
    /// Whether a `Local` is on this lane.
    owned: AtomicBool,
}

/// Bits of a cursor for the word: enough for the largest chunk.
const WORD_BITS: u32 = 20;

impl Lane {
    pub(crate) const fn new() -> Self {
        Self {
            kept: [const { AtomicU64::new(0) }; WAYS],
            last: AtomicUsize::new(0),
            cursor: AtomicU64::new(0),
            owned: AtomicBool::new(false),
        }
    }

    /// Returns chunk and word of the last claim.
    #[inline]
    pub(crate) fn cursor(&self) -> Option<(usize, usize)> {
        // Relaxed, here and below: hints, and counts, which publish nothing.
        let cursor = self.cursor.load(Ordering::Relaxed).checked_sub(1)?;
        Some(((cursor >> WORD_BITS) as usize, (cursor & ((1 << WORD_BITS) - 1)) as usize))
    }

    #[inline]
    pub(crate) fn set_cursor(&self, chunk: usize, word: usize) {
        self.cursor.store(((chunk as u64) << WORD_BITS | word as u64) + 1, Ordering::Relaxed);
    }

    /// Returns how many slots the `Local` keeps.
    pub(crate) fn kept(&self) -> usize {
        let counts = self.kept.iter().map(|kept| kept.load(Ordering::Relaxed).count_ones());
        counts.sum::<u32>() as usize + usize::from(self.last.load(Ordering::Relaxed) != 0)
    }

    /// Takes the lane for a `Local`, if no other has it.
    pub(crate) fn enter(&self) -> bool {
        // Acquire pairs with the Release in `leave`: the lane keeps nothing.
        !self.owned.swap(true, Ordering::Acquire)
    }

    pub(crate) fn leave(&self) {
        // Release pairs with the Acquire in `enter`.
        self.owned.store(false, Ordering::Release);
    }
}

/// Returns the calling thread's number: threads are numbered in the order in which they first ask.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn thread_number() -> usize {
    extern crate std;
    use std::cell::Cell;

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const UNSET: usize = usize::MAX;
    std::thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(UNSET) };
    }
    // A thread that is being torn down, or that has no thread-locals, still gets a valid number.
    NUMBER
        .try_with(|number| {
            if number.get() == UNSET {
                // Relaxed: only the number matters, nothing is published with it.
                number.set(NEXT.fetch_add(1, Ordering::Relaxed) & (UNSET >> 1));
            }
            number.get()
        })
        .unwrap_or(0)
}

/// Without `std` threads cannot be identified: all share a lane, unless each has a `Local`.
#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn thread_number() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::{Lane, Ordering, thread_number};

    #[test]
    fn a_lane_remembers() {
        let lane = Lane::new();
        assert_eq!(lane.cursor(), None);
        for (chunk, word) in [(0, 0), (0, (1 << 18) - 1), (1 << 30, 0), (77, 1234)] {
            lane.set_cursor(chunk, word);
            assert_eq!(lane.cursor(), Some((chunk, word)));
        }
        assert!(lane.enter() && !lane.enter());
        lane.leave();
        assert!(lane.enter());
        lane.kept[3].store(0b101, Ordering::Relaxed);
        lane.kept[15].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(lane.kept(), 66);
        lane.last.store(64, Ordering::Relaxed);
        assert_eq!(lane.kept(), 67);
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_thread_keeps_its_number() {
        let number = || std::thread::spawn(|| (thread_number(), thread_number())).join().unwrap();
        let (one, other) = (number(), number());
        assert!(one.0 == one.1 && other.0 == other.1 && one.0 < other.0);
    }
}
