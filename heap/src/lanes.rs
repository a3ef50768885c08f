//! Caches that belong to no thread, a lane each: of CPUs, or of whoever comes.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::cache::Cache;

/// A cache for one caller at a time. Whoever finds it in use goes past it, and waits for nothing.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    busy: AtomicBool,
    cache: UnsafeCell<Cache>,
}

// SAFETY: the cache is reached by the one who turned `busy` from false to true, until it is false again.
unsafe impl Sync for Lane {}

impl Lane {
    pub const fn new() -> Self {
        Self { busy: AtomicBool::new(false), cache: UnsafeCell::new(Cache::new()) }
    }

    /// Shows `visit` the cache, unless it is in use.
    #[inline]
    pub fn with<R>(&self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        // Acquire: pairs with the Release below, of whoever had the cache before.
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
