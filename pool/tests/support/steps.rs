//! Words and pointers each access to which is a step.

use std::sync::atomic::AtomicPtr;

use nbbs::sync::Word as _;
use nbbs_pool::sync::{Ordering, Pointer, Word};
use testkit::steered::Steered;

/// A word each access to which is a step of the explorer.
#[derive(Debug, Default)]
pub struct Stepped(Steered);

/// A pointer each access to which is a step of the explorer.
#[derive(Debug)]
pub struct SteppedPointer<P> {
    step: Steered,
    pointer: AtomicPtr<P>,
}

// SAFETY: atomics, with a hook before each access.
unsafe impl Word for Stepped {
    type Pointer<P> = SteppedPointer<P>;

    fn new(value: u64) -> Self {
        let word = Steered::default();
        // This does not count as an access: nobody else has the word.
        word.store(value, Ordering::Relaxed);
        Self(word)
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

impl<P> Pointer<P> for SteppedPointer<P> {
    fn null() -> Self {
        Self { step: Steered::default(), pointer: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn load(&self, order: Ordering) -> *mut P {
        self.step.load(Ordering::Relaxed);
        self.pointer.load(order)
    }

    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        self.step.load(Ordering::Relaxed);
        self.pointer.compare_exchange(current, new, success, failure)
    }
}
