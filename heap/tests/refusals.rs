//! Tests wrong frees: they are counted once the cache has given the slots back, and nothing else changes.

mod support;

use std::alloc::Layout;
use std::ptr::NonNull;

use nbbs_heap::{Heap, Stats};
use support::{Block, assert_whole, layout};

type Small = Heap<{ 1 << 20 }>;

/// # Safety
/// The free is wrong, and the heap must notice.
unsafe fn free(heap: &'static Small, at: *mut u8, layout: Layout) {
    // SAFETY: as above.
    unsafe { heap.free(NonNull::new(at).unwrap(), layout) };
}

/// Returns how the memory is used, and how many frees were refused.
fn looks(heap: &'static Small) -> (Stats, usize) {
    heap.trim();
    let mut stats = heap.stats();
    let refused = std::mem::take(&mut stats.refused);
    assert_eq!(refused, heap.refused());
    (stats, refused)
}

/// Makes wrong frees, and checks that `count` of them are refused and nothing else has changed.
#[track_caller]
fn refuses(heap: &'static Small, count: usize, wrong: impl FnOnce()) {
    let before = looks(heap);
    wrong();
    let after = looks(heap);
    assert_eq!(after.1 - before.1, count, "so many are refused");
    assert_eq!(after.0, before.0, "a refused free changes nothing");
}

const SMALL: Layout = Layout::new::<[u8; 100]>();
const RUN: Layout = Layout::new::<[u8; 50_000]>();

#[test]
fn twice_at_once() {
    static HEAP: Small = Heap::new();
    let [first, second] = [1, 2].map(|seed| Block::alloc(&HEAP, SMALL, seed).unwrap());
    let at = first.at.as_ptr();
    first.free(&HEAP);
    // SAFETY: wrong.
    unsafe { free(&HEAP, at, SMALL) };
    assert_eq!(looks(&HEAP).1, 1);
    second.free(&HEAP);
    assert_whole(&HEAP);
}

#[test]
fn twice_with_others_between() {
    static HEAP: Small = Heap::new();
    let mut blocks: Vec<_> = (0..5).map(|seed| Block::alloc(&HEAP, SMALL, seed)).collect();
    let first = blocks.remove(0).unwrap();
    let at = first.at.as_ptr();
    first.free(&HEAP);
    // SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, at, SMALL) });
    // A refused slot does not affect the rest of its batch.
    blocks.drain(..3).flatten().for_each(|block| block.free(&HEAP));
    // SAFETY: wrong.
    unsafe { free(&HEAP, at, SMALL) };
    assert_eq!(looks(&HEAP).1, 2);
    assert_eq!(HEAP.stats().classes.iter().map(|class| class.used).sum::<usize>(), 1);
    blocks.into_iter().flatten().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    // Its slab is gone. SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, at, SMALL) });
}

#[test]
fn twice_a_run() {
    static HEAP: Small = Heap::new();
    let run = Block::alloc(&HEAP, RUN, 1).unwrap();
    let at = run.at.as_ptr();
    // SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, at, layout(40_000, 1)) });
    // SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, at, SMALL) });
    run.free(&HEAP);
    // SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, at, RUN) });
    assert_whole(&HEAP);
}

#[test]
fn memory_of_others() {
    static HEAP: Small = Heap::new();
    static OTHER: Small = Heap::new();
    let mut own = [0_u8; 64];
    let [near, far] = [1, usize::MAX].map(std::ptr::without_provenance_mut);
    let other = OTHER.alloc(SMALL).unwrap().as_ptr();
    for at in [own.as_mut_ptr(), other, near, far] {
        for layout in [SMALL, RUN, layout(2000, 8), layout(100, 1 << 16)] {
            // SAFETY: wrong.
            refuses(&HEAP, 1, || unsafe { free(&HEAP, at, layout) });
        }
    }
    // The address of the heap itself, which it never hands out. SAFETY: wrong.
    refuses(&HEAP, 1, || unsafe { free(&HEAP, (&raw const HEAP).cast_mut().cast(), SMALL) });
    assert_whole(&HEAP);
}

#[test]
fn places_where_nothing_begins() {
    static HEAP: Small = Heap::new();
    let blocks =
        [SMALL, RUN, layout(3000, 8)].map(|layout| Block::alloc(&HEAP, layout, 7).unwrap());
    for block in &blocks {
        for by in [1, 8, 16, 50, 1024] {
            let at = block.at.as_ptr().wrapping_add(by);
            // SAFETY: wrong.
            refuses(&HEAP, 1, || unsafe { free(&HEAP, at, block.layout) });
        }
    }
    blocks.into_iter().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
}

/// Also where the layout is that of a run as long as the slab.
#[test]
fn another_layout() {
    static HEAP: Small = Heap::new();
    let sizes = [128, 3000, 16, 1024, 10_000, 32 << 10];
    for size in sizes.into_iter().take(if cfg!(miri) { 2 } else { 6 }) {
        let of = layout(size, 8);
        let block = Block::alloc(&HEAP, of, 3).unwrap();
        for wrong in (0..10).map(|log2| 1024 << log2).chain([200, 100, 600, 5000, 70_000]) {
            // Each of these sizes has a class of its own.
            if wrong != size {
                // SAFETY: wrong.
                refuses(&HEAP, 1, || unsafe { free(&HEAP, block.at.as_ptr(), layout(wrong, 1)) });
            }
        }
        block.free(&HEAP);
        assert_whole(&HEAP);
    }
}

/// A thread whose cache belongs to another heap is refused at once.
#[test]
fn past_the_cache() {
    static FIRST: Small = Heap::new();
    static HEAP: Small = Heap::new();
    Block::alloc(&FIRST, SMALL, 1).unwrap().free(&FIRST);
    for of in [SMALL, RUN, layout(3000, 8)] {
        let block = Block::alloc(&HEAP, of, 2).unwrap();
        let at = block.at.as_ptr();
        let before = HEAP.refused();
        block.free(&HEAP);
        assert_eq!(HEAP.refused(), before);
        // SAFETY: wrong.
        unsafe { free(&HEAP, at, of) };
        assert_eq!(HEAP.refused(), before + 1);
        // SAFETY: wrong.
        unsafe { free(&HEAP, at.wrapping_add(1), of) };
        assert_eq!(HEAP.refused(), before + 2);
        // SAFETY: wrong.
        unsafe { free(&HEAP, (&raw const FIRST).cast_mut().cast(), of) };
        assert_eq!(HEAP.refused(), before + 3);
    }
    assert_whole(&HEAP);
    assert_eq!(HEAP.refused(), 9);
}
