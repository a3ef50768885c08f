//! The standard library's collections in a given heap, by the trait of nightly Rust.
#![cfg(feature = "nightly")]
#![feature(allocator_api)]

use std::alloc::{Allocator, Layout};
use std::collections::VecDeque;

use nbbs_heap::Heap;

#[test]
fn collections_of_std() {
    static HEAP: Heap<{ 4 << 20 }> = Heap::new();
    let mut numbers = Vec::new_in(&HEAP);
    numbers.extend(0..100_000);
    numbers.shrink_to_fit();
    assert!(HEAP.contains(numbers.as_ptr().cast()));
    assert!(numbers.iter().copied().eq(0..100_000));
    let mut queue = VecDeque::new_in(&HEAP);
    for number in 0..10_000 {
        queue.push_front(Box::new_in(number, &HEAP));
    }
    assert!(queue.iter().rev().map(|number| **number).eq(0..10_000));
    drop((numbers, queue));
    let zeroed = (&HEAP).allocate_zeroed(Layout::new::<[u8; 1000]>()).unwrap();
    // SAFETY: it was just allocated.
    unsafe {
        assert!(zeroed.as_ref().iter().all(|&byte| byte == 0));
        (&HEAP).deallocate(zeroed.cast(), Layout::new::<[u8; 1000]>());
    }
    assert!((&HEAP).allocate(Layout::new::<[u8; 8 << 20]>()).is_err());
    HEAP.trim();
    assert_eq!((HEAP.stats().free, HEAP.refused()), (HEAP.stats().bytes, 0));
}
