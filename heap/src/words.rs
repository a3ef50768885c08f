//! The words of which bookkeeping consists, the flags of caches, the counts of all regions and the states of their
//! places: the processor's atomics, and in this crate's own tests some that count, and that a test can interrupt.

// The atomics of the processor, or of a crate where it has none that swap.
#[cfg(any(target_has_atomic = "ptr", not(feature = "portable-atomic")))]
use core::sync::atomic as native;
#[cfg(all(feature = "portable-atomic", not(target_has_atomic = "ptr")))]
use portable_atomic as native;

pub use native::AtomicUsize;

#[cfg(not(test))]
pub use native::{AtomicBool as HeapFlag, AtomicU8 as HeapState, AtomicUsize as HeapCount};
#[cfg(not(test))]
pub use nbbs::sync::AtomicU64 as HeapWord;

#[cfg(test)]
pub use counting::{
    HeapCount, HeapFlag, HeapState, HeapWord, count, counted, interrupt, interrupted,
};

#[cfg(test)]
mod counting {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};

    use nbbs::sync::{AtomicU64, Ordering, Word};

    std::thread_local! {
        /// The loads and the read-modify-writes of the calling thread.
        static SO_FAR: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
        /// What interrupts the calling thread. Flags are used until a thread has ended, so it has no destructor.
        static HANDLER: Cell<fn()> = const { Cell::new(|| {}) };
    }

    /// A word that counts what is done to it, and lets a test interrupt it there.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct HeapWord(AtomicU64);

    impl HeapWord {
        pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            interrupt();
            count(0, 1);
            self.0.fetch_or(bits, order)
        }

        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            interrupt();
            count(0, 1);
            self.0.fetch_add(value, order)
        }

        pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            interrupt();
            count(0, 1);
            self.0.fetch_and(bits, order)
        }
    }

    impl Word for HeapWord {
        fn load(&self, order: Ordering) -> u64 {
            interrupt();
            count(1, 0);
            self.0.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            interrupt();
            self.0.store(value, order);
        }

        fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            interrupt();
            count(0, 1);
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    /// A flag that counts what is done to it, and lets a test interrupt it there.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct HeapFlag(AtomicBool);

    impl HeapFlag {
        pub const fn new(value: bool) -> Self {
            Self(AtomicBool::new(value))
        }

        pub fn load(&self, order: Ordering) -> bool {
            interrupt();
            count(1, 0);
            self.0.load(order)
        }

        pub fn store(&self, value: bool, order: Ordering) {
            interrupt();
            self.0.store(value, order);
        }

        pub fn swap(&self, value: bool, order: Ordering) -> bool {
            interrupt();
            count(0, 1);
            self.0.swap(value, order)
        }
    }

    /// A count that lets a test interrupt what is done to it.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct HeapCount(AtomicUsize);

    impl HeapCount {
        pub const fn new(value: usize) -> Self {
            Self(AtomicUsize::new(value))
        }

        pub fn load(&self, order: Ordering) -> usize {
            interrupt();
            self.0.load(order)
        }

        pub fn store(&self, value: usize, order: Ordering) {
            interrupt();
            self.0.store(value, order);
        }

        pub fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            interrupt();
            self.0.fetch_add(value, order)
        }
    }

    /// A state that lets a test interrupt what is done to it.
    #[derive(Debug)]
    #[repr(transparent)]
    pub struct HeapState(AtomicU8);

    impl HeapState {
        pub const fn new(value: u8) -> Self {
            Self(AtomicU8::new(value))
        }

        pub fn load(&self, order: Ordering) -> u8 {
            interrupt();
            self.0.load(order)
        }

        pub fn store(&self, value: u8, order: Ordering) {
            interrupt();
            self.0.store(value, order);
        }

        pub fn compare_exchange(
            &self,
            current: u8,
            new: u8,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u8, u8> {
            interrupt();
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    /// Counts loads and read-modify-writes of the calling thread.
    pub fn count(loads: u64, swaps: u64) {
        SO_FAR.with(|so_far| {
            let (all_loads, all_swaps) = so_far.get();
            so_far.set((all_loads + loads, all_swaps + swaps));
        });
    }

    /// Calls the handler.
    pub fn interrupt() {
        HANDLER.get()();
    }

    /// Does `work`, which `handler` interrupts before each access. What it does itself is interrupted, too.
    pub fn interrupted<R>(handler: fn(), work: impl FnOnce() -> R) -> R {
        struct Restored(fn());
        impl Drop for Restored {
            fn drop(&mut self) {
                HANDLER.set(self.0);
            }
        }
        let _restored = Restored(HANDLER.replace(handler));
        work()
    }

    /// Returns what `work` returns, its loads, and its read-modify-writes.
    pub fn counted<R>(work: impl FnOnce() -> R) -> (R, (u64, u64)) {
        let before = SO_FAR.get();
        let result = work();
        let (loads, swaps) = SO_FAR.get();
        (result, (loads - before.0, swaps - before.1))
    }
}
