//! Memory that was slots of one size serves another before that is refused.

mod support;

use nbbs_heap::Heap;
use support::{Block, assert_whole, layout};

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
