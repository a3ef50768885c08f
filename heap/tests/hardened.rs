//! Tests freed slots that wait, with the feature `quarantine`, and slots that are drawn by lot, with `shuffle`.
#![cfg(any(feature = "quarantine", feature = "shuffle"))]

mod support;

use nbbs_heap::Heap;
use support::{Block, assert_whole, layout};

#[cfg(feature = "quarantine")]
#[test]
fn a_freed_slot_waits_for_255_others() {
    use nbbs_heap::FreeError;

    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    // Much that has waited before makes no difference.
    (0..40).for_each(|seed| {
        Block::alloc(&HEAP, layout(32 << 10, 8), seed).unwrap().free(&HEAP);
    });
    let of = layout(100, 8);
    let blocks: Vec<_> = (0..600).map(|_| HEAP.alloc(of).unwrap()).collect();
    for (number, &block) in blocks.iter().enumerate() {
        // SAFETY: ours.
        unsafe { HEAP.free(block, of) };
        // SAFETY: it is no longer ours, which the heap notices as long as it waits.
        let again = unsafe { HEAP.free_at(blocks[number.saturating_sub(255)]) };
        assert!(matches!(again, Err(FreeError::NotAllocated { .. })), "{number}: {again:?}");
        let next = HEAP.alloc(of).unwrap();
        let freed_since = blocks[..=number].iter().rev().position(|&freed| freed == next);
        assert!(freed_since.is_none_or(|since| since >= 256), "{number}: {freed_since:?}");
        // It is kept, so that the next waiting slot comes out of the queue, and not this one again.
    }
    assert_eq!(HEAP.audit(), Ok(()));
}

#[cfg(feature = "quarantine")]
#[test]
fn no_more_waits_than_is_said() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let of = layout(32 << 10, 8);
    let blocks: Vec<_> = (0..40).map(|_| HEAP.alloc(of).unwrap()).collect();
    for &block in &blocks {
        // SAFETY: ours.
        unsafe { HEAP.free(block, of) };
    }
    // 256 KiB of them wait, and the cache keeps two more at most: the others are free.
    let mut waiting = 0;
    HEAP.walk(|live| waiting += usize::from(live.size >= 32 << 10));
    assert!((8..=10).contains(&waiting), "{waiting}");
}

#[cfg(feature = "shuffle")]
#[test]
fn a_second_free_is_seen_wherever_the_slot_is() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let of = layout(64, 8);
    for round in 0..50 {
        let blocks: Vec<_> = (0..8).map(|_| HEAP.alloc(of).unwrap()).collect();
        // SAFETY: ours.
        blocks.iter().for_each(|&block| unsafe { HEAP.free(block, of) });
        let next = HEAP.alloc(of).unwrap();
        for &block in blocks.iter().filter(|&&block| block != next) {
            let before = HEAP.refused();
            // SAFETY: wrong.
            unsafe { HEAP.free(block, of) };
            assert_eq!(HEAP.refused(), before + 1, "{round}");
        }
        // SAFETY: ours.
        unsafe { HEAP.free(next, of) };
    }
    HEAP.trim();
    assert_eq!(HEAP.audit(), Ok(()));
}

#[cfg(feature = "shuffle")]
#[test]
fn slots_are_in_no_order() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let of = layout(64, 8);
    let mut orders = Vec::new();
    for _ in 0..4 {
        let order = std::thread::spawn(move || {
            let blocks: Vec<usize> =
                (0..48).map(|_| HEAP.alloc(of).unwrap().addr().get()).collect();
            let rises = blocks.windows(2).filter(|pair| pair[0] < pair[1]).count();
            // Like tosses of 47 coins: fewer than 8 or more than 39 come up once in a million.
            assert!((8..40).contains(&rises), "{rises} of 47");
            let first = blocks.iter().min().copied().unwrap();
            blocks.into_iter().map(|at| at - first).collect::<Vec<_>>()
        });
        orders.push(order.join().unwrap());
    }
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 4, "threads draw different lots");
    // Freed slots are not handed out in order, either.
    let blocks: Vec<_> = (0..30).map(|_| HEAP.alloc(of).unwrap()).collect();
    for &block in &blocks {
        // SAFETY: ours.
        unsafe { HEAP.free(block, of) };
    }
    // All that the cache has.
    let again = (0..256).map(|_| HEAP.alloc(of).unwrap());
    let places: Vec<_> =
        again.filter_map(|at| blocks.iter().position(|&block| block == at)).collect();
    let falls = places.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(falls < 25, "{falls} of 29");
}

/// The slot that was freed last is handed out next no more often than any other that the cache has.
#[cfg(feature = "shuffle")]
#[test]
fn a_freed_slot_is_one_of_all() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let of = layout(64, 8);
    // The cache has dozens of other slots: of so many, none comes up 100 times in 1,000.
    let _held = HEAP.alloc(of).unwrap();
    let mut same = 0;
    for _ in 0..1000 {
        let freed = HEAP.alloc(of).unwrap();
        // SAFETY: ours.
        unsafe { HEAP.free(freed, of) };
        let next = HEAP.alloc(of).unwrap();
        same += usize::from(next == freed);
        // SAFETY: ours.
        unsafe { HEAP.free(next, of) };
    }
    assert!(same < 100, "{same} of 1000");
}

#[test]
fn programs_that_do_nothing_wrong() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let (mut rng, mut held) = (fastrand::Rng::with_seed(1), Vec::<Block>::new());
    for seed in 0..if cfg!(miri) { 100 } else { 5_000 } {
        let most = [300, 5000, 200_000][rng.usize(..3)];
        held.extend(Block::alloc(&HEAP, layout(rng.usize(..most), 8), seed));
        if held.len() > 20 {
            held.swap_remove(rng.usize(..held.len())).free(&HEAP);
        }
        if rng.usize(..500) == 0 {
            assert_eq!(HEAP.audit(), Ok(()));
            HEAP.trim();
        }
    }
    held.into_iter().for_each(|block| block.free(&HEAP));
    assert_whole(&HEAP);
    assert_eq!((HEAP.damaged(), HEAP.refused()), (0, 0));
}
