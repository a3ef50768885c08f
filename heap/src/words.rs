//! The words of which bookkeeping consists: the processor's atomics, and in this crate's own tests words that count.

#[cfg(not(test))]
pub use nbbs::sync::AtomicU64 as HeapWord;

#[cfg(test)]
pub use counting::{HeapWord, counted};

#[cfg(test)]
mod counting {
    use std::cell::Cell;

    use nbbs::sync::{AtomicU64, Ordering, Word};

    std::thread_local! {
        /// The loads and the read-modify-writes of the calling thread.
        static SO_FAR: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }

    /// A word that counts what is done to it.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct HeapWord(AtomicU64);

    impl HeapWord {
        pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            count(0, 1);
            self.0.fetch_or(bits, order)
        }

        pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            count(0, 1);
            self.0.fetch_and(bits, order)
        }
    }

    impl Word for HeapWord {
        fn load(&self, order: Ordering) -> u64 {
            count(1, 0);
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
            count(0, 1);
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    fn count(loads: u64, swaps: u64) {
        SO_FAR.with(|so_far| {
            let (all_loads, all_swaps) = so_far.get();
            so_far.set((all_loads + loads, all_swaps + swaps));
        });
    }

    /// Returns what `work` returns, its loads, and its read-modify-writes.
    pub fn counted<R>(work: impl FnOnce() -> R) -> (R, (u64, u64)) {
        let before = SO_FAR.get();
        let result = work();
        let (loads, swaps) = SO_FAR.get();
        (result, (loads - before.0, swaps - before.1))
    }
}
