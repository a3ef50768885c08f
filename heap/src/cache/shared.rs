//! Caches that belong to no thread: one for each CPU, or for any caller.

use core::cell::UnsafeCell;

use crate::cache::{Cache, Turn};

/// A cache for one caller at a time. A caller that finds it in use bypasses it, and waits for nothing.
#[derive(Debug)]
#[repr(align(128))]
pub struct SharedCache {
    turn: Turn,
    cache: UnsafeCell<Cache>,
}

// SAFETY: only the caller whose turn it is reaches the cache.
unsafe impl Sync for SharedCache {}

impl SharedCache {
    pub const fn new() -> Self {
        Self { turn: Turn::new(), cache: UnsafeCell::new(Cache::new()) }
    }

    /// Calls `visit` with the cache, unless it is in use.
    #[inline]
    pub fn with<R>(&self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        if !self.turn.enter() {
            return None;
        }
        // SAFETY: it was not in use, and is marked as in use until below.
        let found = visit(unsafe { &mut *self.cache.get() });
        self.turn.leave();
        Some(found)
    }

    /// Calls `visit` with the cache, unless it is in use, and without a read-modify-write.
    ///
    /// # Safety
    /// Of two calls of this method or [`with`](Self::with), one ends before the other begins, or one interrupts the
    /// other and ends before that continues.
    #[inline]
    pub unsafe fn with_nested<R>(&self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        if !self.turn.enter_nested() {
            return None;
        }
        // SAFETY: no call that this one interrupts uses it, and one that interrupts this finds it in use.
        let found = visit(unsafe { &mut *self.cache.get() });
        self.turn.leave_nested();
        Some(found)
    }
}
