//! Memory that was slots of one size serves another before that is refused.

mod support;

use nbbs_heap::{Heap, Placed};
use support::{Block, assert_whole, layout, memory};

type Little = Heap<{ 32 << 10 }>;

/// Makes slots of one size of all the memory, and frees them; then slots of 2 KiB can be had.
fn reuse(heap: &'static Little, size: usize) {
    let blocks: Vec<_> =
        (0..).map_while(|seed| Block::alloc(heap, layout(size, 8), seed)).collect();
    assert!(blocks.len() * size > 24 << 10);
    blocks.into_iter().for_each(|block| block.free(heap));
    Block::alloc(heap, layout(2 << 10, 8), 1).expect("cannot be had").free(heap);
    assert_whole(heap);
    assert_eq!(heap.refused(), 0);
}

/// The caller's cache keeps all of them.
#[test]
fn what_the_cache_keeps() {
    static HEAP: Little = Heap::new();
    reuse(&HEAP, 1024);
}

/// A trim counts slabs whose slots the caller's cache gives back all at once, and others.
#[test]
fn a_trim_says_what_it_returns() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    for (size, count) in [(128, 8), (1000, 8), (5000, 12), (16, 63), (100, 9)] {
        let of = layout(size, 8);
        let blocks: Vec<_> = (0..count).map(|_| Block::alloc(&HEAP, of, 1).unwrap()).collect();
        blocks.into_iter().for_each(|block| block.free(&HEAP));
        let before = HEAP.stats().free;
        let said = HEAP.trim();
        assert_eq!(said, HEAP.stats().free - before, "{count} blocks of {size} bytes");
        assert!(said > 0, "{count} blocks of {size} bytes");
    }
}

/// The caller's cache is another heap's. Each unit is a slab of its own, which only a trim returns.
#[test]
fn past_the_cache() {
    static FIRST: Little = Heap::new();
    static HEAP: Little = Heap::new();
    Block::alloc(&FIRST, layout(1, 1), 1).unwrap().free(&FIRST);
    reuse(&HEAP, 128);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn runs_where_a_slab_was() {
    const BYTES: usize = Placed::bytes_for(1, 1 << 20).unwrap();
    // At one of these addresses slabs of 32 units begin at multiples of 32 KiB.
    for page in 0..8 {
        let memory = memory(BYTES + page * 4096);
        // SAFETY: the memory is leaked.
        let heap = unsafe { Placed::new(memory.add(page * 4096), BYTES, 1) }.unwrap();
        let on = heap.on(0);
        let fill = |of| -> Vec<_> { (0..).map_while(|_| on.alloc(of)).collect() };
        let free_all = |all: Vec<_>| {
            // SAFETY: ours.
            all.into_iter().for_each(|at| _ = unsafe { on.free_at(at) }.unwrap());
            on.trim();
        };
        // Slabs of 32 units everywhere; then runs where their insides were, and small slabs where they began.
        free_all(fill(layout(800, 1)));
        let first = fill(layout(1, 32 << 10));
        let runs = fill(layout(28 << 10, 1));
        assert!(first.len() >= 31 && runs.len() >= 31);
        free_all(first);
        let small = fill(layout(128, 1));
        runs.iter().for_each(|&run| assert_eq!(on.usable(run), Ok(28 << 10)));
        free_all(runs);
        free_all(small);
        assert_eq!(heap.audit(), Ok(()));
        assert_eq!(heap.stats().free, heap.stats().bytes);
        assert_eq!(heap.refused(), 0);
    }
}
