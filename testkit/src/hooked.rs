//! A metadata word with a hook before every access.

use core::fmt;
use core::marker::PhantomData;

use nbbs::Shape;
use nbbs::sync::{AtomicU64, Ordering, Word};

/// The hook that a checker runs before every access to a word.
pub trait Hook: fmt::Debug + Default {
    /// The shape of the words.
    const SHAPE: Shape = Shape::STANDARD;

    /// Called before each access, unless one of the next three methods is implemented.
    fn before_access();

    /// Called before each load of the word at that address.
    fn before_load(_at: usize) {
        Self::before_access();
    }

    /// Called before each store to the word at that address.
    fn before_store(_at: usize) {
        Self::before_access();
    }

    /// Called before each compare-and-swap of the word at that address.
    fn before_swap(_at: usize) {
        Self::before_access();
    }

    /// Called between two reads of a lock that another thread holds.
    fn pause() {
        Self::before_access();
        core::hint::spin_loop();
    }
}

/// A word that calls a hook before every access.
///
/// ```
/// use std::cell::Cell;
/// use nbbs::sync::{Ordering, Word};
/// use testkit::hooked::{Hook, Hooked};
///
/// thread_local!(static COUNT: Cell<u32> = const { Cell::new(0) });
///
/// #[derive(Debug, Default)]
/// struct Counting;
///
/// impl Hook for Counting {
///     fn before_access() {
///         COUNT.set(COUNT.get() + 1);
///     }
/// }
///
/// let word = Hooked::<Counting>::from(5);
/// assert_eq!((word.load(Ordering::Relaxed), COUNT.get()), (5, 1));
/// ```
#[derive(Debug, Default)]
pub struct Hooked<H>(AtomicU64, PhantomData<fn() -> H>);

impl<H> From<u64> for Hooked<H> {
    fn from(value: u64) -> Self {
        Self(AtomicU64::new(value), PhantomData)
    }
}

impl<H> Hooked<H> {
    /// The word, without the hook.
    pub fn plain(&self) -> &AtomicU64 {
        &self.0
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

impl<H: Hook> Word for Hooked<H> {
    const SHAPE: Shape = H::SHAPE;

    fn load(&self, order: Ordering) -> u64 {
        H::before_load(self.address());
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        H::before_store(self.address());
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        H::before_swap(self.address());
        self.0.compare_exchange(current, new, success, failure)
    }
}
