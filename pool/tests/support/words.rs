//! The words of `testkit` as words of a pool.

use std::sync::atomic::AtomicPtr;

use nbbs_pool::sync::{Ordering, Word};

/// A word of `testkit` as a word of a pool, with ordinary pointers.
#[derive(Debug)]
pub struct Over<W>(W);

// SAFETY: words of `testkit` are atomics with the orderings that they are given.
unsafe impl<W: nbbs::sync::Word + From<u64>> Word for Over<W> {
    type Pointer<P> = AtomicPtr<P>;

    fn new(value: u64) -> Self {
        Self(W::from(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}
