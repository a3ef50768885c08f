//! Tests writes to free memory, with the feature `poison`.
#![cfg(feature = "poison")]

mod support;

use nbbs_heap::Heap;
use support::{Block, assert_whole, layout, placed};

#[test]
fn a_write_after_a_free_is_seen() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    for (size, place) in [(100, 0), (100, 99), (1000, 512), (16, 8), (30_000, 29_999)] {
        let before = HEAP.damaged();
        let of = layout(size, 8);
        let [block, other] = [1, 2].map(|seed| Block::alloc(&HEAP, of, seed).unwrap());
        let at = block.at;
        block.free(&HEAP);
        assert_eq!(HEAP.damaged(), before);
        // SAFETY: wrong, although it is memory.
        unsafe { at.add(place).write(1) };
        let next = Block::alloc(&HEAP, of, 3).unwrap();
        assert_eq!(HEAP.damaged(), before + 1, "byte {place} of {size}");
        assert_ne!(next.at, at, "it is nobody's any more");
        [next, other].into_iter().for_each(|block| block.free(&HEAP));
    }
    HEAP.trim();
    assert_eq!(HEAP.audit(), Ok(()));
    let mut kept = 0;
    HEAP.walk(|_| kept += 1);
    assert_eq!(kept, 5);
}

#[test]
fn a_write_after_a_free_is_seen_in_given_memory() {
    let heap = placed(1, 1 << 18);
    let [block, _other] = [(); 2].map(|()| heap.on(0).alloc(layout(100, 8)).unwrap());
    // SAFETY: the block is ours.
    unsafe { heap.on(0).free(block, layout(100, 8)) };
    // SAFETY: wrong, although it is memory.
    unsafe { block.add(50).write(1) };
    assert_ne!(heap.on(0).alloc(layout(100, 8)), Some(block));
    assert_eq!(heap.damaged(), 1);
}

#[test]
fn programs_that_do_nothing_wrong() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let (mut rng, mut held) = (fastrand::Rng::with_seed(1), Vec::<Block>::new());
    for seed in 0..if cfg!(miri) { 100 } else { 20_000 } {
        let most = [300, 5000, 200_000][rng.usize(..3)];
        held.extend(Block::alloc(&HEAP, layout(rng.usize(..most), 8), seed));
        if held.len() > 20 {
            held.swap_remove(rng.usize(..held.len())).free(&HEAP);
        }
        if let Some(block) = held.last_mut().filter(|_| rng.usize(..4) == 0) {
            block.resize(&HEAP, rng.usize(..most));
        }
        if rng.usize(..500) == 0 {
            HEAP.trim();
        }
    }
    held.into_iter().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    assert_eq!((HEAP.damaged(), HEAP.refused()), (0, 0));
}

#[test]
fn wrong_frees_touch_nothing() {
    static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    let block = Block::alloc(&HEAP, layout(100, 8), 1).unwrap();
    let mut own = [7_u8; 100];
    for (at, size) in [(own.as_mut_ptr(), 100), (block.at.as_ptr(), 300)] {
        // SAFETY: wrong, and the heap notices before it writes there.
        unsafe { HEAP.free(std::ptr::NonNull::new(at).unwrap(), layout(size, 8)) };
    }
    assert_eq!((own, HEAP.refused()), ([7; 100], 2));
    block.free(&HEAP);
    assert_whole(&HEAP);
}
