//! Caches that belong to no thread, each with a lane: one for each CPU, or for any caller.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::cache::Cache;

/// A cache for one caller at a time. A caller that finds it in use bypasses it, and waits for nothing.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    busy: AtomicBool,
    cache: UnsafeCell<Cache>,
}

// SAFETY: only the caller that turned `busy` from false to true reaches the cache, until it is false again.
unsafe impl Sync for Lane {}

impl Lane {
    pub const fn new() -> Self {
        Self { busy: AtomicBool::new(false), cache: UnsafeCell::new(Cache::new()) }
    }

    /// Calls `visit` with the cache, unless it is in use.
    #[inline]
    pub fn with<R>(&self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        // Acquire: pairs with the Release below, of the caller that had the cache before.
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: it was not in use, and is marked as in use until below.
        let found = visit(unsafe { &mut *self.cache.get() });
        // Release: pairs with the Acquire above.
        self.busy.store(false, Ordering::Release);
        Some(found)
    }
}
