//! A cache for each thread, which gives everything back when the thread ends.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use crate::cache::Cache;
use crate::regions::Memory;

/// A thread's cache, for the first heap that the thread uses.
struct Local {
    /// Set while the cache is in use: a signal handler that comes then goes past it. And for good when the thread has
    /// given everything back.
    busy: AtomicBool,
    heap: Cell<Option<Memory<'static>>>,
    lane: Cell<usize>,
    cache: UnsafeCell<Cache>,
}

std::thread_local! {
    // Needs no destructor, so that it can be used as long as the thread runs.
    static LOCAL: Local = const {
        Local {
            busy: AtomicBool::new(false),
            heap: Cell::new(None),
            lane: Cell::new(0),
            cache: UnsafeCell::new(Cache::new()),
        }
    };
    static END: End = const { End };
}

/// Gives everything back when the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        _ = LOCAL.try_with(|local| {
            if !local.enter() {
                return;
            }
            if let Some(memory) = local.heap.get() {
                // SAFETY: `enter` said that nobody else uses the cache.
                unsafe { &mut *local.cache.get() }.drain(&memory, local.lane.get());
            }
            // Never left: what comes now goes past the cache.
        });
    }
}

impl Local {
    /// Whether the cache is the caller's until it calls `leave`.
    #[inline]
    fn enter(&self) -> bool {
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        self.busy.store(true, Ordering::Relaxed);
        // Of one thread, whose handlers see the mark before anything that comes after it.
        compiler_fence(Ordering::SeqCst);
        true
    }

    #[inline]
    fn leave(&self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Whether the cache is for this heap. It becomes the first one's that asks.
    #[inline]
    fn is_for(&self, memory: &Memory<'static>) -> bool {
        match self.heap.get() {
            Some(heap) => heap.is(memory),
            None => self.is_now_for(memory),
        }
    }

    #[cold]
    fn is_now_for(&self, memory: &Memory<'static>) -> bool {
        self.lane.set(nbbs::default_lane());
        // A thread that is ending would give nothing back.
        let ends = END.try_with(|_| ()).is_ok();
        if ends {
            self.heap.set(Some(*memory));
        }
        ends
    }
}

/// Shows `visit` the calling thread's cache and its lane; none if it is another heap's, or in use by what the caller has
/// interrupted, or the thread is ending.
#[inline]
pub fn with<R>(memory: &Memory<'static>, visit: impl FnOnce(&mut Cache, usize) -> R) -> Option<R> {
    LOCAL
        .try_with(|local| {
            if !local.enter() {
                return None;
            }
            let found = local.is_for(memory).then(|| {
                // SAFETY: `enter` said that nobody else uses the cache.
                visit(unsafe { &mut *local.cache.get() }, local.lane.get())
            });
            local.leave();
            found
        })
        .ok()
        .flatten()
}
