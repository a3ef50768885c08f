//! A cache for each thread, which gives everything back when the thread ends.

use core::cell::{Cell, UnsafeCell};
use core::ptr::{eq, null};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::cache::{Cache, Turn, ends};
#[cfg(target_os = "linux")]
use crate::region::pages::system::processors;
use crate::region::{Memory, Regions};

/// A thread's cache, for the first heap that the thread uses.
struct Local {
    /// Only the thread and its signal handlers have turns, which nest. The last, in which the thread gives everything
    /// back, never ends.
    turn: Turn,
    /// The heap to which the cache belongs: null, and none, as long as it belongs to nobody.
    regions: Cell<*const Regions>,
    memory: Cell<Option<Memory<'static>>>,
    /// The thread's lane, or [`UNSET`].
    lane: Cell<usize>,
    cache: UnsafeCell<Cache>,
}

/// In place of a lane that has not been drawn.
const UNSET: usize = usize::MAX;

/// The lane of the next thread that asks for one.
static NEXT: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    // It needs no destructor, so that it can be used as long as the thread runs.
    static LOCAL: Local = const {
        Local {
            turn: Turn::new(),
            regions: Cell::new(null()),
            memory: Cell::new(None),
            lane: Cell::new(UNSET),
            cache: UnsafeCell::new(Cache::new()),
        }
    };
}

/// Gives everything back when the calling thread ends.
pub fn give_back() {
    _ = LOCAL.try_with(|local| {
        if !local.turn.enter_nested() {
            return;
        }
        if let Some(memory) = local.memory.get() {
            // SAFETY: `enter_nested` said that nobody else uses the cache.
            unsafe { &mut *local.cache.get() }.drain(&memory, local.lane());
        }
        // Never left: what comes now goes past the cache.
    });
}

/// Returns how many lanes threads have, a power of two: two to four for each processor, so that threads that run at the
/// same time seldom share one. With one for each thread, what a thread has freed would lie where no other begins.
fn lanes() -> usize {
    static LANES: AtomicUsize = AtomicUsize::new(0);
    // Relaxed, here and below: all threads find the same number, and nothing is published with it.
    match LANES.load(Ordering::Relaxed) {
        0 => {
            let lanes = 2 * processors().clamp(1, 512).next_power_of_two();
            LANES.store(lanes, Ordering::Relaxed);
            lanes
        }
        lanes => lanes,
    }
}

/// Returns a number of processors, as nothing tells it here without memory.
#[cfg(not(target_os = "linux"))]
fn processors() -> usize {
    8
}

/// Returns the calling thread's lane. The first thread of a process has lane 0, which begins at the front of a heap, so
/// that what it uses does not divide the memory.
pub fn lane() -> usize {
    // A thread that is being torn down, or that has no thread-locals, still gets a valid lane.
    LOCAL.try_with(Local::lane).unwrap_or(0)
}

impl Local {
    /// Returns the thread's lane, which is drawn when it is first asked for.
    fn lane(&self) -> usize {
        if self.lane.get() == UNSET {
            // Relaxed: only the number matters, nothing is published with it.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // A program of one thread need not know how many lanes there are.
            self.lane.set(if number == 0 { 0 } else { number & (lanes() - 1) });
        }
        self.lane.get()
    }

    /// Makes the cache that of the heap, if it belongs to nobody.
    fn become_that_of(&self, memory: Memory<'static>, regions: &Regions) {
        // A thread that cannot announce itself would give nothing back. Neither does one that does so in the last round
        // of its keys' destructors, which the C library does not tell.
        if self.regions.get().is_null() && ends::announce() {
            self.memory.set(Some(memory));
            self.regions.set(regions);
        }
    }
}

/// Makes the calling thread's cache that of the heap, if it belongs to nobody.
pub fn claim(regions: &'static Regions, memory: Memory<'static>) {
    _ = LOCAL.try_with(|local| {
        if local.turn.enter_nested() {
            local.become_that_of(memory, regions);
            local.turn.leave_nested();
        }
    });
}

/// Calls `visit` with the calling thread's cache. Returns `None` if the cache is not this heap's, or in use by what the
/// caller has interrupted, or the thread is ending.
#[inline]
pub fn with<R>(regions: &'static Regions, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    LOCAL
        .try_with(|local| {
            if !eq(local.regions.get(), regions) || !local.turn.enter_nested() {
                return None;
            }
            // SAFETY: `enter_nested` said that nobody else uses the cache.
            let found = visit(unsafe { &mut *local.cache.get() });
            local.turn.leave_nested();
            Some(found)
        })
        .ok()
        .flatten()
}
