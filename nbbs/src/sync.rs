//! The only file that says what a word of metadata is.
//!
//! Everything else in the library is written against [`Word`], so one and the same code runs on the
//! processor's atomics, under a model checker, under a counter of read-modify-writes, or with stalls
//! injected between any two steps. Orderings are written at the call sites, never here.

pub use core::sync::atomic::Ordering;

/// A 64-bit atomic word of metadata.
///
/// Implemented for [`AtomicU64`](core::sync::atomic::AtomicU64). Implement it for a wrapper to observe
/// or to steer every step that the allocator takes.
///
/// ```
/// use nbbs::sync::{Ordering, Word};
/// use std::sync::atomic::AtomicU64;
///
/// let word = AtomicU64::new(1);
/// assert_eq!(Word::compare_exchange(&word, 1, 2, Ordering::SeqCst, Ordering::SeqCst), Ok(1));
/// assert_eq!(Word::load(&word, Ordering::SeqCst), 2);
/// ```
pub trait Word: Sync {
    /// Reads the word.
    fn load(&self, order: Ordering) -> u64;

    /// Writes the word. Used for lanes' hints and for construction, never for the protocol.
    fn store(&self, value: u64, order: Ordering);

    /// Replaces `current` by `new` if the word still holds `current`; otherwise returns what it holds.
    ///
    /// # Errors
    /// The value found, if it was not `current`.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;

    /// Stands between a write of one word and a read of another that must not pass it.
    ///
    /// `SeqCst` accesses already forbid that, so this does nothing. A checker that only models
    /// `SeqCst` fences puts its fence here.
    #[inline(always)]
    fn store_load_fence() {}
}

#[cfg(target_has_atomic = "64")]
impl Word for core::sync::atomic::AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.compare_exchange(current, new, success, failure)
    }
}

#[cfg(not(target_has_atomic = "64"))]
compile_error!("nbbs needs a target with 64-bit atomic compare-and-swap");
