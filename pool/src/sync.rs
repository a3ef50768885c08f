//! The definition of a word: the only file that says what an atomic is.
//!
//! Everything else is written against [`Word`], so the same code runs on the processor's atomics, on plain cells in one
//! thread, and under a model checker. Orderings are written at the call sites, never here.
//!
//! On a target without 64-bit atomics the feature `portable-atomic` takes them from the crate of that name. The program
//! chooses how they are implemented, by the features of that crate in its own `Cargo.toml`: with
//! `unsafe-assume-single-core` by disabling interrupts, otherwise by a lock, with which operations wait for each other.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
/// The default word: `core`'s 64-bit atomic, or that of the crate `portable-atomic` on a target without 64-bit atomics
/// if the feature of that name is on.
#[cfg(not(all(feature = "portable-atomic", not(target_has_atomic = "64"))))]
pub use core::sync::atomic::AtomicU64;
pub use core::sync::atomic::Ordering;
#[cfg(all(feature = "portable-atomic", not(target_has_atomic = "64")))]
pub use portable_atomic::AtomicU64;

/// A word of 64 bits, one for each of 64 slots.
///
/// Implemented for [`AtomicU64`], and for [`Cell<u64>`](Cell): a pool of cells allocates and frees objects without an
/// atomic instruction, and stays in one thread.
///
/// # Safety
/// The word is atomic, as far as the type may be shared: every read-modify-write is one step, with the ordering that it
/// names. If the type is `Sync` or `Send`, its pointers are too, and are as atomic.
///
/// ```
/// use nbbs_pool::sync::{Ordering, Word};
/// use std::cell::Cell;
///
/// let word = Cell::new(0b101_u64);
/// assert_eq!(Word::fetch_or(&word, 0b010, Ordering::SeqCst), 0b101);
/// assert_eq!(Word::load(&word, Ordering::SeqCst), 0b111);
/// ```
pub unsafe trait Word: Sized {
    /// The corresponding pointer type.
    type Pointer<P>: Pointer<P>;

    /// Creates a word with this value.
    ///
    /// ```
    /// # use nbbs_pool::sync::{AtomicU64, Ordering, Word};
    /// let word: AtomicU64 = Word::new(5);
    /// assert_eq!(Word::load(&word, Ordering::Relaxed), 5);
    /// ```
    fn new(value: u64) -> Self;

    /// Reads the word.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Word};
    /// # use std::cell::Cell;
    /// assert_eq!(Word::load(&Cell::new(5), Ordering::Acquire), 5);
    /// ```
    fn load(&self, order: Ordering) -> u64;

    /// Writes the word.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Word};
    /// # use std::cell::Cell;
    /// let word = Cell::new(0);
    /// Word::store(&word, 5, Ordering::Release);
    /// assert_eq!(word.get(), 5);
    /// ```
    fn store(&self, value: u64, order: Ordering);

    /// Replaces `current` by `new` if the word still holds `current`; otherwise returns what it holds.
    ///
    /// # Errors
    /// The value found, if it was not `current`.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering::{AcqRel, Acquire}, Word};
    /// # use std::cell::Cell;
    /// let word = Cell::new(5);
    /// assert_eq!(Word::compare_exchange(&word, 5, 6, AcqRel, Acquire), Ok(5));
    /// assert_eq!(Word::compare_exchange(&word, 5, 7, AcqRel, Acquire), Err(6));
    /// ```
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;

    /// Replaces the word by `new`, and returns what it held.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Word};
    /// # use std::cell::Cell;
    /// let word = Cell::new(5);
    /// assert_eq!(Word::swap(&word, 6, Ordering::AcqRel), 5);
    /// assert_eq!(word.get(), 6);
    /// ```
    fn swap(&self, new: u64, order: Ordering) -> u64 {
        change(self, |_| new, order)
    }

    /// Sets `bits`, and returns what the word held.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Word};
    /// # use std::cell::Cell;
    /// let word = Cell::new(0b101);
    /// assert_eq!(Word::fetch_or(&word, 0b011, Ordering::AcqRel), 0b101);
    /// assert_eq!(word.get(), 0b111);
    /// ```
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        change(self, |old| old | bits, order)
    }

    /// Clears all but `bits`, and returns what the word held.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Word};
    /// # use std::cell::Cell;
    /// let word = Cell::new(0b101);
    /// assert_eq!(Word::fetch_and(&word, 0b011, Ordering::AcqRel), 0b101);
    /// assert_eq!(word.get(), 0b001);
    /// ```
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        change(self, |old| old & bits, order)
    }
}

/// A read-modify-write made of compare-and-swaps.
fn change<W: Word>(word: &W, to: impl Fn(u64) -> u64, order: Ordering) -> u64 {
    let changed = update(word, order, |old| Some(to(old)));
    let Some(old) = changed else { unreachable!("there is always something to change it to") };
    old
}

/// Replaces what the word holds by what `to` makes of it, unless that is `None`. Returns what it held.
pub(crate) fn update<W: Word>(
    word: &W,
    order: Ordering,
    to: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    // Both Relaxed: nothing is done with a value before a compare-and-swap has found it.
    let mut old = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange(old, to(old)?, order, Ordering::Relaxed) {
            Ok(old) => return Some(old),
            Err(found) => old = found,
        }
    }
}

/// A pointer that threads share, null at first.
///
/// ```
/// use nbbs_pool::sync::{Ordering, Pointer, Word};
/// use std::cell::Cell;
///
/// /// Is null, on words of any kind.
/// fn unset<W: Word>() -> W::Pointer<u32> {
///     Pointer::null()
/// }
///
/// assert!(unset::<Cell<u64>>().get().is_null());
/// ```
pub trait Pointer<P> {
    /// Creates a null pointer.
    ///
    /// ```
    /// # use nbbs_pool::sync::Pointer;
    /// let pointer: std::cell::Cell<*mut u32> = Pointer::null();
    /// assert!(pointer.get().is_null());
    /// ```
    fn null() -> Self;

    /// Reads the pointer.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering, Pointer};
    /// # use std::cell::Cell;
    /// let at = &raw mut *Box::leak(Box::new(5));
    /// assert_eq!(Pointer::load(&Cell::new(at), Ordering::Acquire), at);
    /// ```
    fn load(&self, order: Ordering) -> *mut P;

    /// Replaces `current` by `new` if the pointer still is `current`; otherwise returns what it is.
    ///
    /// # Errors
    /// The pointer found, if it was not `current`.
    ///
    /// ```
    /// # use nbbs_pool::sync::{Ordering::{AcqRel, Acquire}, Pointer};
    /// # use std::{cell::Cell, ptr::null_mut};
    /// let (pointer, five) = (Cell::new(null_mut()), &raw mut *Box::leak(Box::new(5)));
    /// assert_eq!(Pointer::compare_exchange(&pointer, null_mut(), five, AcqRel, Acquire), Ok(null_mut()));
    /// assert_eq!(Pointer::compare_exchange(&pointer, null_mut(), five, AcqRel, Acquire), Err(five));
    /// ```
    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P>;
}

/// [`Word`] for a 64-bit atomic that has the methods of `core`'s.
macro_rules! word {
    ($atomic:ty) => {
        // SAFETY: an atomic, of `core` or of a crate that has the same contract.
        unsafe impl Word for $atomic {
            type Pointer<P> = AtomicPtr<P>;

            fn new(value: u64) -> Self {
                Self::new(value)
            }

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

            #[inline(always)]
            fn swap(&self, new: u64, order: Ordering) -> u64 {
                self.swap(new, order)
            }

            #[inline(always)]
            fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
                self.fetch_or(bits, order)
            }

            #[inline(always)]
            fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
                self.fetch_and(bits, order)
            }
        }
    };
}

#[cfg(target_has_atomic = "64")]
word!(core::sync::atomic::AtomicU64);

#[cfg(feature = "portable-atomic")]
portable_atomic::cfg_has_atomic_64! {
    word!(portable_atomic::AtomicU64);
}

impl<P> Pointer<P> for AtomicPtr<P> {
    fn null() -> Self {
        Self::new(null_mut())
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> *mut P {
        self.load(order)
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        self.compare_exchange(current, new, success, failure)
    }
}

/// For one thread: the orderings mean nothing here.
// SAFETY: cells are not shared.
unsafe impl Word for Cell<u64> {
    type Pointer<P> = Cell<*mut P>;

    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn load(&self, _order: Ordering) -> u64 {
        self.get()
    }

    #[inline(always)]
    fn store(&self, value: u64, _order: Ordering) {
        self.set(value);
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _success: Ordering,
        _failure: Ordering,
    ) -> Result<u64, u64> {
        if self.get() == current { Ok(self.replace(new)) } else { Err(self.get()) }
    }

    #[inline(always)]
    fn swap(&self, new: u64, _order: Ordering) -> u64 {
        self.replace(new)
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, _order: Ordering) -> u64 {
        self.replace(self.get() | bits)
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, _order: Ordering) -> u64 {
        self.replace(self.get() & bits)
    }
}

/// For one thread.
impl<P> Pointer<P> for Cell<*mut P> {
    fn null() -> Self {
        Self::new(null_mut())
    }

    #[inline(always)]
    fn load(&self, _order: Ordering) -> *mut P {
        self.get()
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        _success: Ordering,
        _failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        if self.get() == current { Ok(self.replace(new)) } else { Err(self.get()) }
    }
}

#[cfg(all(feature = "portable-atomic", not(target_has_atomic = "64")))]
portable_atomic::cfg_no_atomic_64! {
    compile_error!(
        "this target has no 64-bit atomics: say in the program's own Cargo.toml how `portable-atomic` makes them, by its \
         features `fallback` and, where they hold, `unsafe-assume-single-core` or `unsafe-assume-privileged`"
    );
}

#[cfg(not(any(feature = "portable-atomic", target_has_atomic = "64")))]
compile_error!(
    "this target has no 64-bit atomics: enable the feature `portable-atomic` of nbbs-pool, and see the documentation of \
     `nbbs_pool::sync`"
);

#[cfg(test)]
mod tests;
