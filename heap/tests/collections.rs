//! Collections in each kind of heap, by the trait of `allocator-api2`.
#![cfg(feature = "allocator-api2")]

mod support;

use std::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec;
use hashbrown::HashMap;
use nbbs_heap::{Heap, PlacedSmall, Small};
use support::{layout, memory, placed};

const BYTES: usize = 1 << 20;

/// Fills a map with texts, which grow, and drops half of them.
fn fill<A: Allocator + Copy>(heap: A, contains: impl Fn(*const u8) -> bool) {
    let mut texts = HashMap::new_in(heap);
    for number in (0..500_u32).step_by(if cfg!(miri) { 49 } else { 1 }) {
        let mut text = Vec::new_in(heap);
        (0..number % 300).for_each(|byte| text.push(byte as u8));
        text.shrink_to_fit();
        texts.insert(number, text);
    }
    texts.retain(|number, _| number % 2 == 1);
    for (number, text) in &texts {
        assert!(text.iter().copied().eq((0..number % 300).map(|byte| byte as u8)));
        assert!(text.is_empty() || contains(text.as_ptr()));
    }
    let mut large: Vec<u8, _> = Vec::new_in(heap);
    assert!(large.try_reserve(2 * BYTES).is_err());
}

/// Changes a block's size and alignment, up and down.
fn relayout<A: Allocator>(heap: A) {
    let mut held = layout(40, 8);
    let mut at: NonNull<u8> = heap.allocate_zeroed(held).unwrap().cast();
    // SAFETY: the block is ours, has so many bytes, and is given up for what is returned.
    unsafe {
        assert!((0..40).all(|byte| at.add(byte).read() == 0));
        (0..40).for_each(|byte| at.add(byte).write(byte as u8));
        for larger in
            [layout(40, 512), layout(3000, 512), layout(100_000, 512), layout(100_001, 4096)]
        {
            let block = heap.grow(at, held, larger).unwrap();
            assert_eq!(block.len(), larger.size());
            (at, held) = (block.cast(), larger);
            assert!(at.addr().get().is_multiple_of(held.align()));
        }
        for smaller in [layout(100_001, 1), layout(2000, 64), layout(40, 64)] {
            (at, held) = (heap.shrink(at, held, smaller).unwrap().cast(), smaller);
            assert!(at.addr().get().is_multiple_of(held.align()));
        }
        assert!((0..40).all(|byte| at.add(byte).read() == byte as u8));
        heap.deallocate(at, held);
    }
}

/// Asks for more alignment at the same size: of nine blocks in a MiB at most eight have it where they are.
fn realign<A: Allocator>(heap: A) {
    let [some, more] = [1, 1 << 17].map(|align| layout(40_000, align));
    for at in [(); 9].map(|()| heap.allocate(some).unwrap().cast::<u8>()) {
        // SAFETY: the block is ours, and given up for what is returned.
        unsafe {
            let Ok(moved) = heap.grow(at, some, more) else {
                heap.deallocate(at, some);
                continue;
            };
            assert!(moved.cast::<u8>().addr().get().is_multiple_of(more.align()));
            heap.deallocate(moved.cast(), more);
        }
    }
}

#[test]
fn in_a_heap() {
    static HEAP: Heap<BYTES> = Heap::new();
    fill(&HEAP, |at| HEAP.contains(at));
    relayout(&HEAP);
    realign(&HEAP);
    HEAP.trim();
    assert_eq!((HEAP.stats().free, HEAP.refused()), (HEAP.stats().bytes, 0));
}

#[test]
fn in_given_memory() {
    let heap = placed(2, BYTES);
    // SAFETY: no other thread uses this heap.
    for on in [heap.on(0), unsafe { heap.on_nested(1) }] {
        fill(on, |at| heap.contains(at));
        relayout(on);
        realign(on);
        on.trim();
    }
    assert_eq!((heap.stats().free, heap.refused()), (heap.stats().bytes, 0));
}

#[test]
fn in_little_memory() {
    static SMALL: Small<BYTES> = Small::new();
    fill(&SMALL, |at| SMALL.contains(at));
    relayout(&SMALL);
    realign(&SMALL);
    assert_eq!(SMALL.count_free_bytes(), SMALL.bytes());
}

#[test]
fn in_little_given_memory() {
    // SAFETY: the memory is leaked.
    let heap = unsafe { PlacedSmall::<16>::new(memory(BYTES), BYTES) }.unwrap();
    fill(heap, |at| heap.contains(at));
    relayout(heap);
    realign(heap);
    assert_eq!(heap.count_free_bytes(), heap.bytes());
}
