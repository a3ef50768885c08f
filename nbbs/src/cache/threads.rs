//! A cache for each thread, made when it first allocates or frees and drained when it ends.

use core::cell::RefCell;
use core::mem::{ManuallyDrop, forget, take};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};
use std::vec::Vec;

use super::caps::Caps;
use super::owned::Cache;
use crate::api::{Buddy, default_lane, process};
use crate::error::{AllocError, FreeError};

/// A cache of free blocks for each thread, in front of a [`Buddy`], made and drained automatically.
///
/// A thread gets a [`Cache`] of 3 KiB when it first allocates or frees. It is drained when the thread ends. If it does
/// not end in order, as at the end of a process, the blocks in it are lost. With every operation a thread searches its
/// caches, one for each `ThreadCaches` that it uses, so there should be few.
///
/// An idle thread keeps what is in its cache, also when others are refused. All threads together keep at most an eighth
/// of the arena: each may keep a quarter of what those before it have left, and no more than the [`Caps`] allow. With
/// caps of the caller's own ([`with_caps`](Self::with_caps)) each thread keeps as much as they say.
///
/// A signal handler that interrupts an operation uses the buddy allocator directly. A handler that may be the first in
/// its thread to use the caches must use [`buddy`](Self::buddy) instead, as the first use allocates memory.
///
/// A process made by `fork` has a copy of what the thread kept that called `fork`. If it shares the arena with its
/// parent, it must not use these caches. If its arena is a copy, too, it may, but what that thread keeps there is lost
/// when the thread ends, unless it calls [`drain`](Self::drain) before: a copy is not given back at the end, if the
/// process has another number than its parent.
///
/// Refusals, and wrong and double frees, are as for a [`Cache`]. In a handler that interrupts an operation a free is
/// checked against the arena only. A refusal asks the other threads to give back what they keep with their next
/// operation, so another attempt may succeed. [`Caches::drain_all`](crate::Caches::drain_all) also drains those that
/// are idle.
///
/// ```
/// use nbbs::{Metadata, ThreadCaches, metadata_words};
///
/// static METADATA: Metadata<{ metadata_words(1 << 12) }> = Metadata::new();
/// static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(1 << 12));
///
/// std::thread::spawn(|| {
///     let page = PAGES.alloc(0)?;
///     assert_eq!(PAGES.cached().units, 7);
///     PAGES.free(page)?;
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// }).join().unwrap().unwrap();
/// assert_eq!(PAGES.buddy().stats().used_units, 0);
/// ```
#[derive(Debug)]
pub struct ThreadCaches {
    buddy: Buddy<'static>,
    /// What each thread may keep, at most.
    caps: Caps,
    /// The units that further threads may keep; [`ALL`]: as many as the caps say.
    left: AtomicUsize,
    /// How often the threads have been asked to give back.
    asks: AtomicUsize,
    /// How many blocks were not taken back from any of them.
    refused: AtomicUsize,
}

/// The units that further threads may keep if they are not counted.
const ALL: usize = usize::MAX;

/// A thread's cache in front of one arena.
struct Own {
    of: &'static ThreadCaches,
    /// How many of these requests it has seen.
    seen: usize,
    /// The process of the thread. A child of it has a copy, of which nothing may come back to an arena that both share.
    process: u32,
    /// How many refused blocks of the cache have been counted.
    counted: u64,
    cache: Cache<'static>,
}

impl Own {
    /// Gives back what is in the cache, then what it might keep.
    fn end(mut self) {
        if self.process != process() {
            return forget(self);
        }
        let share = self.cache.caps().all_units() as usize;
        self.cache.drain();
        self.count_refused();
        // Relaxed, here and below: only the number matters.
        if self.of.left.load(Ordering::Relaxed) != ALL {
            self.of.left.fetch_add(share, Ordering::Relaxed);
        }
    }

    /// Gives back what is in the cache if that was requested since the last time, and counts what was not taken back.
    fn answer(&mut self, asked: usize) {
        if self.seen != asked {
            self.seen = asked;
            self.cache.drain();
        }
        self.count_refused();
    }

    /// Adds what was not taken back since the last call to the number for all threads.
    fn count_refused(&mut self) {
        let refused = self.cache.refused();
        if refused != self.counted {
            let more = refused.wrapping_sub(self.counted) as usize;
            // Relaxed: only a number; partner: the load in `refused`.
            self.of.refused.fetch_add(more, Ordering::Relaxed);
            self.counted = refused;
        }
    }
}

/// A thread's caches, given back when it ends. Later operations bypass them, or, where thread-locals are keys of the C
/// library, begin anew, and the key's destructor runs again.
struct Mine(ManuallyDrop<RefCell<Vec<Own>>>);

impl Drop for Mine {
    fn drop(&mut self) {
        // If a thread ends in a handler that interrupts an operation, the caches are half changed: they are lost.
        _ = BUSY.try_with(|busy| {
            let own = Turn::begin(busy).map(|_turn| take(self.0.get_mut()));
            own.into_iter().flatten().for_each(Own::end);
        });
    }
}

std::thread_local! {
    /// Whether an operation is under way. The cell's own flag would not do: the compiler decides what a signal handler
    /// sees of it. It has no destructor, for which the first use would allocate memory: a handler that interrupts the
    /// first use of `MINE` must find it.
    static BUSY: AtomicBool = const { AtomicBool::new(false) };
    static MINE: Mine = const { Mine(ManuallyDrop::new(RefCell::new(Vec::new()))) };
}

/// Lends the calling thread's caches to `operation`. `None` means that `operation` returned that, that the call
/// interrupted another operation of the thread, or that the thread has given back its caches.
#[inline(always)]
fn in_turn<R>(operation: impl FnOnce(&mut Vec<Own>) -> Option<R>) -> Option<R> {
    let operate = |mine: &Mine| operation(&mut *mine.0.try_borrow_mut().ok()?);
    let begin = |busy: &AtomicBool| {
        let _turn = Turn::begin(busy)?;
        MINE.try_with(operate).ok()?
    };
    BUSY.try_with(begin).ok()?
}

/// An operation on a thread's caches, until it is dropped.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    #[inline(always)]
    fn begin(busy: &'a AtomicBool) -> Option<Self> {
        // All Relaxed: only handlers on the same thread matter, to which its own accesses are in order; the fences keep
        // the compiler from changing that. A handler between the load and the store is over before the store.
        if busy.load(Ordering::Relaxed) {
            return None;
        }
        busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Self(busy))
    }
}

impl Drop for Turn<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.store(false, Ordering::Relaxed);
    }
}

impl ThreadCaches {
    /// Creates caches in front of `buddy`, which keep an eighth of the arena at most, all together.
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// assert_eq!(PAGES.alloc(6)?, 0);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    #[must_use]
    pub const fn new(buddy: Buddy<'static>) -> Self {
        let eighth = buddy.units() / 8;
        let left = if eighth < ALL as u64 { eighth as usize } else { ALL };
        Self { left: AtomicUsize::new(left), ..Self::with_caps(buddy, Caps::new()) }
    }

    /// Creates caches in front of `buddy`, each with these caps, however many threads there will be.
    ///
    /// ```
    /// # use nbbs::{Caps, Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(64), Caps::new().units(0, 8));
    /// PAGES.alloc(0)?;
    /// assert_eq!(PAGES.cached().units, 3);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    #[must_use]
    pub const fn with_caps(buddy: Buddy<'static>, caps: Caps) -> Self {
        let left = AtomicUsize::new(ALL);
        Self { buddy, caps, left, asks: AtomicUsize::new(0), refused: AtomicUsize::new(0) }
    }

    /// Returns the buddy allocator behind the caches.
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// assert_eq!(PAGES.buddy().units(), 64);
    /// ```
    #[must_use]
    pub const fn buddy(&self) -> &Buddy<'static> {
        &self.buddy
    }

    /// Allocates from the calling thread's cache, as [`Cache::alloc`] does.
    ///
    /// Cost: a thread-local read and a few plain loads and stores, if there is a block in the cache.
    ///
    /// # Errors
    /// Those of [`Cache::alloc`]. After [`AllocError::Exhausted`], the other threads have been asked to give back what
    /// they keep.
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// assert_eq!(PAGES.alloc(3)? % 8, 0);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    #[inline]
    pub fn alloc(&'static self, order: u32) -> Result<u64, AllocError> {
        self.hit(|cache| cache.hit(order)).map_or_else(|| self.alloc_slowly(order), Ok)
    }

    #[inline(never)]
    fn alloc_slowly(&'static self, order: u32) -> Result<u64, AllocError> {
        let answer = self.with(|cache| cache.alloc(order));
        let answer = answer.unwrap_or_else(|| self.buddy.alloc(order));
        if let Err(AllocError::Exhausted { .. }) = answer {
            self.ask_all();
        }
        answer
    }

    /// Frees into the calling thread's cache, as [`Cache::free`] does.
    ///
    /// Cost: a thread-local read, and that of [`Cache::free`].
    ///
    /// # Errors
    /// Those of [`Cache::free`].
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// let block = PAGES.alloc(3)?;
    /// assert_eq!(PAGES.free(block)?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&'static self, index: u64) -> Result<u64, FreeError> {
        self.with(|cache| cache.free(index)).unwrap_or_else(|| self.buddy.free(index))
    }

    /// Frees into the calling thread's cache, as [`Cache::free_sized`] does.
    ///
    /// Cost: a thread-local read, and that of [`Cache::free_sized`].
    ///
    /// # Errors
    /// Those of [`Cache::free_sized`].
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// let block = PAGES.alloc(3)?;
    /// PAGES.free_sized(block, 3)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&'static self, index: u64, order: u32) -> Result<(), FreeError> {
        let kept = self.hit(|cache| cache.keep(index, order).then_some(()));
        kept.map_or_else(|| self.free_slowly(index, order), Ok)
    }

    #[inline(never)]
    fn free_slowly(&'static self, index: u64, order: u32) -> Result<(), FreeError> {
        let freed = self.with(|cache| cache.free_sized(index, order));
        freed.unwrap_or_else(|| self.buddy.free_sized(index, order))
    }

    /// Gives back everything that the calling thread keeps. A handler that interrupts an operation of its thread gives
    /// back nothing. A thread without a cache gets none. Cost: a thread-local read, and that of [`Cache::drain`].
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// PAGES.alloc(3)?;
    /// PAGES.drain();
    /// assert_eq!(PAGES.buddy().stats().used_units, 8);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    pub fn drain(&'static self) {
        self.with_own(Cache::drain);
    }

    /// Asks all threads to give back everything that they keep, with their next operation. Cost: one read-modify-write.
    /// Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    /// PAGES.alloc(0)?;
    /// PAGES.ask_all();
    /// PAGES.alloc(0)?;
    /// assert_eq!(PAGES.cached().units, 0);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    pub fn ask_all(&self) {
        // Relaxed: it only announces a request. The loads in `hit` and `with_or` see it sooner or later.
        self.asks.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of blocks that [`Buddy`] did not take back from any thread's cache, also of threads that have
    /// ended: each was freed twice, or with a wrong order. Cost: a load. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caps, Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// static PAGES: ThreadCaches =
    ///     ThreadCaches::with_caps(METADATA.arena(64), Caps::new().checked(false));
    /// PAGES.free_sized(5, 0)?; // never allocated
    /// PAGES.drain();
    /// assert_eq!(PAGES.refused(), 1);
    /// # Ok::<(), nbbs::FreeError>(())
    /// ```
    #[must_use]
    pub fn refused(&self) -> u64 {
        // Relaxed: only a number, which publishes nothing; partner: the addition in `count_refused`.
        self.refused.load(Ordering::Relaxed) as u64
    }

    /// Lends the calling thread's cache to `look`, if the thread has one, after draining it if that was requested.
    pub(super) fn look<R>(&'static self, look: impl FnOnce(&Cache<'static>) -> R) -> Option<R> {
        in_turn(|own| {
            // Relaxed: as in `ask_all`.
            let asked = self.asks.load(Ordering::Relaxed);
            let own = own.iter_mut().find(|own| core::ptr::eq(own.of, self))?;
            own.answer(asked);
            Some(look(&own.cache))
        })
    }

    /// Lends the calling thread's cache to `operation`. `None` means that `operation` returned that, or that the slow
    /// path is needed.
    #[inline(always)]
    fn hit<R>(
        &'static self,
        operation: impl FnOnce(&mut Cache<'static>) -> Option<R>,
    ) -> Option<R> {
        in_turn(|own| {
            // Relaxed: as in `ask_all`.
            let asked = self.asks.load(Ordering::Relaxed);
            let own = own.iter_mut().find(|own| core::ptr::eq(own.of, self))?;
            if own.seen == asked { operation(&mut own.cache) } else { None }
        })
    }

    /// Lends the calling thread's cache to `operation`, and drains it if that was requested. `None` means that the call
    /// interrupted another operation of the thread, that the thread is ending, or that there is no memory.
    fn with<R>(&'static self, operation: impl FnOnce(&mut Cache<'static>) -> R) -> Option<R> {
        self.with_or(|own, asked| self.begin(own, asked), operation)
    }

    /// Lends the calling thread's cache to `operation`, if the thread has one, and drains it if that was requested.
    fn with_own<R>(&'static self, operation: impl FnOnce(&mut Cache<'static>) -> R) -> Option<R> {
        self.with_or(|_, _| None, operation)
    }

    /// Lends the calling thread's cache to `operation`, and drains it if that was requested. If the thread has none,
    /// uses the one at the position that `begin` returns.
    fn with_or<R>(
        &'static self,
        begin: impl FnOnce(&mut Vec<Own>, usize) -> Option<usize>,
        operation: impl FnOnce(&mut Cache<'static>) -> R,
    ) -> Option<R> {
        in_turn(|own| {
            // Relaxed: as in `ask_all`.
            let asked = self.asks.load(Ordering::Relaxed);
            let at = match own.iter().position(|own| core::ptr::eq(own.of, self)) {
                Some(at) => at,
                None => begin(own, asked)?,
            };
            let own = own.get_mut(at)?;
            let result = operation(&mut own.cache);
            own.answer(asked);
            Some(result)
        })
    }

    /// Makes a cache for the calling thread, and returns its position.
    #[cold]
    fn begin(&'static self, own: &mut Vec<Own>, seen: usize) -> Option<usize> {
        own.try_reserve(1).ok()?;
        let cache = Cache::new(self.buddy, default_lane(), self.share());
        own.push(Own { of: self, seen, process: process(), counted: 0, cache });
        own.len().checked_sub(1)
    }

    /// Takes what another thread may keep from what is left.
    fn share(&self) -> Caps {
        let share = |left: usize| self.caps.lowered(left as u64 / 4);
        let less = |left| Some(left - share(left).all_units() as usize);
        // All Relaxed: only the number matters.
        if self.left.load(Ordering::Relaxed) == ALL {
            return self.caps;
        }
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        share(left.unwrap_or(0))
    }
}
