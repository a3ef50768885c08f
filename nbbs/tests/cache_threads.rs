//! Tests that a thread gets a cache, which takes memory, when it allocates or frees, and not when it only asks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nbbs::{Buddy, Metadata, ThreadCaches, metadata_words};

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
    static PAGES: ThreadCaches = match Buddy::new(METADATA.words(), 64) {
        Ok(buddy) => ThreadCaches::new(buddy),
        Err(_) => panic!("metadata_words() and new() disagree"),
    };
    let before = ALLOCATIONS.get();
    assert_eq!(PAGES.cached().units, 0);
    PAGES.drain();
    assert_eq!(ALLOCATIONS.get(), before);

    let block = PAGES.alloc(0).unwrap();
    assert_eq!(ALLOCATIONS.get(), before + 1, "the cache, by which it is seen that this counts");
    assert_eq!(PAGES.cached().units, 31);
    PAGES.free_sized(block, 0).unwrap();
    PAGES.drain();
    assert_eq!(PAGES.buddy().stats().used_units, 0);
}
