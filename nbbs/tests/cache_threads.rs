//! Tests that a thread gets a cache, which takes memory, when it allocates or frees, and not when it only asks; and how
//! much the caches of idle threads keep from others.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Barrier;

use nbbs::{Caps, Metadata, ThreadCaches, metadata_words};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what the thread has allocated.
struct Counting;

// SAFETY: the system's allocator keeps the contract; the count changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: passed on from the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn asking_makes_no_cache() {
    static METADATA: Metadata<{ metadata_words(64) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(64), Caps::new());
    let before = ALLOCATIONS.get();
    assert_eq!(PAGES.cached().units, 0);
    assert_eq!((PAGES.audit().unwrap().units, PAGES.stats().cached_units), (0, 0));
    PAGES.drain();
    assert_eq!(ALLOCATIONS.get(), before);

    let block = PAGES.alloc(0).unwrap();
    assert_eq!(ALLOCATIONS.get(), before + 1, "the cache, by which it is seen that this counts");
    assert_eq!(PAGES.cached().units, 31);
    PAGES.free_sized(block, 0).unwrap();
    PAGES.drain();
    assert_eq!(PAGES.buddy().stats().used_units, 0);
}

/// What threads keep that have filled their caches and idle: all together, and the one that keeps most.
fn kept_by(threads: usize, caches: &'static ThreadCaches) -> (u64, u64) {
    let idle = Barrier::new(threads + 1);
    let fill = || {
        let mut held = Vec::new();
        for order in 0..10 {
            let blocks = Caps::new().blocks(order);
            held.extend((0..blocks).map_while(|_| Some((caches.alloc(order).ok()?, order))));
        }
        held.into_iter().for_each(|(block, order)| caches.free_sized(block, order).unwrap());
    };
    let work = || {
        fill();
        let kept = caches.cached().units;
        idle.wait();
        idle.wait();
        kept
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        idle.wait();
        let all = caches.buddy().stats().used_units;
        idle.wait();
        let kept = workers.into_iter().map(|worker| worker.join().unwrap());
        (all, kept.max().unwrap())
    })
}

#[test]
fn idle_threads_keep_an_eighth_all_together() {
    const UNITS: u64 = 1 << 14;
    static METADATA: Metadata<{ metadata_words(UNITS) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(UNITS));
    for threads in [2, 8, 40] {
        let (all, most) = kept_by(threads, &PAGES);
        assert!(all <= UNITS / 8, "{threads} threads keep {all}");
        // Those that came before have given back their shares, too.
        assert!(most > UNITS / 64, "{threads} threads: one keeps {most}");
        assert_eq!(PAGES.buddy().stats().used_units, 0);
    }
}

#[test]
fn with_caps_of_the_callers_own_each_thread_keeps_as_much() {
    const UNITS: u64 = 1 << 14;
    static METADATA: Metadata<{ metadata_words(UNITS) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(UNITS), Caps::new());
    let (all, most) = kept_by(4, &PAGES);
    assert!(all > UNITS / 2 && most > UNITS / 8, "all keep {all}, one {most}");
}

/// What a thread is told that it keeps, it keeps.
#[test]
fn who_was_asked_gives_back_before_it_says_what_it_keeps() {
    static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(1024), Caps::new());
    PAGES.alloc(0).unwrap();
    assert!(PAGES.cached().units > 0);
    PAGES.ask_all();
    assert_eq!(PAGES.cached().units, 0);
    assert_eq!(PAGES.buddy().stats().used_units, 1);
}

/// A thread's own cache is told from what is used; what another keeps counts as used.
#[test]
fn each_thread_sees_what_it_keeps_itself() {
    static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(1024), Caps::new());
    let seen = |others: u64| {
        let (stats, kept) = (PAGES.stats(), PAGES.audit().unwrap());
        assert_eq!((stats.cached_units, stats.used_units), (kept.units, 1 + others));
        assert_eq!(stats.free_units, 1024 - kept.units - 1 - others);
        assert_eq!(stats.used_blocks[0], 1 + others);
        kept.units
    };
    PAGES.alloc(0).unwrap();
    let kept = seen(0);
    assert!(kept > 0);
    let other = move || {
        let block = PAGES.alloc(0).unwrap();
        PAGES.free_sized(block, 0).unwrap();
        seen(kept)
    };
    std::thread::spawn(other).join().unwrap();
    PAGES.ask_all();
    assert_eq!(seen(0), 0);
}

/// Refused blocks are those of all threads: of one that ends, that drains, that is asked, and that has no room.
#[test]
fn refused_blocks_are_counted_for_all_threads() {
    static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
    static PAGES: ThreadCaches =
        ThreadCaches::with_caps(METADATA.arena(1024), Caps::new().units(0, 4).checked(false));
    let wrong = || PAGES.free_sized(1000, 0).unwrap();
    std::thread::spawn(wrong).join().unwrap();
    assert_eq!(PAGES.refused(), 1);
    wrong();
    assert_eq!(PAGES.refused(), 1, "nobody was given it");
    PAGES.drain();
    assert_eq!(PAGES.refused(), 2);
    wrong();
    assert_eq!(PAGES.audit().unwrap_err().index, 1000);
    PAGES.ask_all();
    PAGES.audit().unwrap();
    assert_eq!(PAGES.refused(), 3);
    wrong();
    for _ in 0..4 {
        let block = PAGES.buddy().alloc(0).unwrap();
        PAGES.free_sized(block, 0).unwrap();
    }
    assert_eq!(PAGES.refused(), 4);
    PAGES.drain();
    assert_eq!((PAGES.refused(), PAGES.buddy().stats().used_units), (4, 0));
}
