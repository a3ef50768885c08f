//! Loom's words and pointers.

use std::cell::Cell;
use std::ptr::null_mut;

use loom::sync::atomic::{AtomicPtr, AtomicU64, fence};
use nbbs_pool::sync::{Ordering, Pointer, Word};

/// Loom's word. Loom has `SeqCst` fences, but treats a `SeqCst` access as an `AcqRel` one. So there is a fence between
/// each `SeqCst` write of a thread and its next `SeqCst` read, and none if either is weaker.
pub struct Loom(AtomicU64, Turn);

/// Loom's search forgets a load as soon as another thread loads the same word, and so tries no schedule in which a
/// write of that thread comes before it. Here every access is preceded by one that loom does not forget, and that
/// orders nothing.
struct Turn(AtomicU64);

impl Turn {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn take(&self) {
        self.0.fetch_add(0, Ordering::Relaxed);
    }
}

loom::thread_local! {
    /// The thread's last `SeqCst` access was a write.
    static WROTE: Cell<bool> = Cell::new(false);
}

fn before_read(order: Ordering) {
    if order == Ordering::SeqCst && WROTE.with(|wrote| wrote.replace(false)) {
        fence(Ordering::SeqCst);
    }
}

fn after_write(order: Ordering) {
    if order == Ordering::SeqCst {
        WROTE.with(|wrote| wrote.set(true));
    }
}

// SAFETY: loom's atomics behave as atomics.
unsafe impl Word for Loom {
    type Pointer<P> = AtomicLoom<P>;

    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value), Turn::new())
    }

    fn load(&self, order: Ordering) -> u64 {
        self.1.take();
        before_read(order);
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.1.take();
        self.0.store(value, order);
        after_write(order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.1.take();
        self.0.compare_exchange(current, new, success, failure).inspect(|_| after_write(success))
    }

    fn swap(&self, new: u64, order: Ordering) -> u64 {
        self.1.take();
        let old = self.0.swap(new, order);
        after_write(order);
        old
    }

    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.1.take();
        let old = self.0.fetch_or(bits, order);
        after_write(order);
        old
    }

    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.1.take();
        let old = self.0.fetch_and(bits, order);
        after_write(order);
        old
    }
}

/// Loom's pointer: a thread that follows it must have synchronised with the thread that made what it leads to.
pub struct AtomicLoom<P>(AtomicPtr<P>, Turn);

impl<P> Pointer<P> for AtomicLoom<P> {
    fn null() -> Self {
        Self(AtomicPtr::new(null_mut()), Turn::new())
    }

    fn load(&self, order: Ordering) -> *mut P {
        self.1.take();
        self.0.load(order)
    }

    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        self.1.take();
        self.0.compare_exchange(current, new, success, failure)
    }
}
