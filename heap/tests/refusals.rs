//! Tests wrong frees: they are counted, at the latest once the cache has given the slots back, and nothing else
//! changes.

mod support;

use std::alloc::Layout;
use std::ptr::NonNull;

use nbbs_heap::{Heap, Stats};
use support::{Block, WATCHED, assert_whole, layout};

type Small = Heap<{ if cfg!(miri) { 256 << 10 } else { 1 << 20 } }>;

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

/// Whether freed slots are handed out again later, or in another order.
const HARDENED: bool = cfg!(any(feature = "quarantine", feature = "shuffle"));

/// The slot that the cache would hand out next is not freed again, and not handed out twice.
#[test]
fn the_newest_twice() {
    static HEAP: Small = Heap::new();
    for size in [16, 100, 3000, 32 << 10] {
        let (of, before) = (layout(size, 8), HEAP.refused());
        let at = HEAP.alloc(of).unwrap();
        // SAFETY: the first free is right, the others are wrong.
        (0..3).for_each(|_| unsafe { HEAP.free(at, of) });
        assert_eq!(HEAP.refused() - before, 2, "refused at once");
        let blocks = [(); 3].map(|()| HEAP.alloc(of).unwrap());
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[2] != blocks[0]);
        // SAFETY: the blocks are ours.
        blocks.into_iter().for_each(|at| unsafe { HEAP.free(at, of) });
        assert_eq!(looks(&HEAP).1 - before, 2);
    }
    assert_whole(&HEAP);
}

/// What nobody looks at before it is in the cache is handed out, as the documentation of `free` says, and counted when
/// it is given back. Where free memory is watched, it is refused at once.
#[test]
fn handed_out_before_it_is_given_back() {
    static HEAP: Small = Heap::new();
    let mut own = [0_u8; 64];
    let block = HEAP.alloc(SMALL).unwrap();
    // SAFETY: it lies in the block.
    let inside = unsafe { block.add(16) };
    for wrong in [NonNull::from(&mut own).cast::<u8>(), inside] {
        let before = HEAP.refused();
        // SAFETY: wrong.
        unsafe { HEAP.free(wrong, SMALL) };
        assert_eq!(HEAP.refused() - before, usize::from(WATCHED));
        let next = [(); 2].map(|()| HEAP.alloc(SMALL).unwrap());
        assert!(HARDENED || (next[0] == wrong) != WATCHED);
        assert!(next[0] != next[1], "handed out twice after one free");
        // SAFETY: the blocks are ours, or not, as above.
        next.into_iter().for_each(|at| unsafe { HEAP.free(at, SMALL) });
        assert_eq!(looks(&HEAP).1 - before, 1);
    }
    // SAFETY: the block is ours.
    unsafe { HEAP.free(block, SMALL) };
    assert_whole(&HEAP);
}

/// A slot that is freed again behind another is handed out once for each free, and counted when both are given back.
#[test]
fn twice_behind_another() {
    static HEAP: Small = Heap::new();
    for (times, of) in [SMALL, layout(3000, 8)].into_iter().enumerate() {
        let [first, second] = [(); 2].map(|()| HEAP.alloc(of).unwrap());
        for at in [first, second, first] {
            // SAFETY: the last is wrong.
            unsafe { HEAP.free(at, of) };
        }
        if WATCHED {
            assert_eq!(HEAP.refused(), times + 1, "refused at once");
        }
        if !HARDENED && !WATCHED {
            let next = [(); 3].map(|()| HEAP.alloc(of).unwrap());
            assert_eq!(next, [first, second, first]);
            // SAFETY: the second free of `first` is wrong.
            next.into_iter().for_each(|at| unsafe { HEAP.free(at, of) });
        }
        assert_eq!(looks(&HEAP).1, times + 1);
    }
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
    assert_eq!(HEAP.stats().classes().iter().map(|class| class.used).sum::<usize>(), 1);
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

/// The cache takes a free slot with all others of its slab, of which it loses none when one of them is freed again.
#[test]
fn a_slot_of_the_slab_that_the_cache_has() {
    static HEAP: Small = Heap::new();
    let blocks = [(); 3].map(|()| HEAP.alloc(SMALL).unwrap().as_ptr());
    // SAFETY: the blocks are ours.
    blocks[1..].iter().for_each(|&at| unsafe { free(&HEAP, at, SMALL) });
    HEAP.trim();
    let again = HEAP.alloc(SMALL).unwrap().as_ptr();
    let other = if again == blocks[1] { blocks[2] } else { blocks[1] };
    // SAFETY: wrong.
    unsafe { free(&HEAP, other, SMALL) };
    HEAP.trim();
    assert_eq!(HEAP.refused(), 1);
    // SAFETY: the blocks are ours.
    [blocks[0], again].into_iter().for_each(|at| unsafe { free(&HEAP, at, SMALL) });
    assert_whole(&HEAP);
}

/// Where free memory is watched, a slot that is a run of its own is not freed again as one of another size of as many
/// units.
#[test]
#[cfg(any(feature = "poison", feature = "asan", feature = "valgrind"))]
fn a_run_twice_by_different_sizes() {
    static HEAP: Heap<{ 64 << 10 }> = Heap::new();
    let small = layout(16, 8);
    let blocks: Vec<_> = core::iter::from_fn(|| HEAP.alloc(small)).collect();
    // Every second unit is free then, so that there is no slab for a larger slot.
    for &at in blocks.iter().filter(|at| at.addr().get() / 1024 % 2 == 0) {
        // SAFETY: ours.
        unsafe { HEAP.free(at, small) };
    }
    HEAP.trim();
    let run = HEAP.alloc(layout(1000, 8)).unwrap();
    assert_eq!(HEAP.usable(run), Ok(1024));
    for size in [1000, 850] {
        // SAFETY: the second is wrong.
        unsafe { HEAP.free(run, layout(size, 8)) };
    }
    assert_eq!(HEAP.refused(), 1);
    assert_ne!(HEAP.alloc(layout(1000, 8)), HEAP.alloc(layout(850, 8)));
}
