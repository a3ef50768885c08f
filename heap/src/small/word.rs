//! The words of a row: the processor's own, as wide as a pointer, and in tests some that are watched.

use core::sync::atomic::Ordering;

use crate::words::AtomicUsize;

/// A word of a row: two bits for each of its units.
pub trait Word: Sync {
    /// The number of its units, a power of two.
    const UNITS: u32 = usize::BITS / 2;

    /// Reads the word.
    fn load(&self, order: Ordering) -> usize;

    /// Replaces `current` by `new` if the word holds `current`. `Err` is what it holds instead.
    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize>;
}

impl Word for AtomicUsize {
    #[inline]
    fn load(&self, order: Ordering) -> usize {
        self.load(order)
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        self.compare_exchange(current, new, success, failure)
    }
}
