//! Measures pairs of the heap, whose caches of the threads have the block.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::hint::black_box;

use nbbs_heap::Heap;

use super::pairs::{Cost, time_by};
use crate::clock::Clock;

/// The sizes of the blocks and their alignments, in bytes: slots of small, middle and the largest size, and a page.
pub const SHAPES: [(usize, usize); 7] = [
    (16, USUAL_ALIGN),
    (64, USUAL_ALIGN),
    (256, USUAL_ALIGN),
    (1024, USUAL_ALIGN),
    (4096, USUAL_ALIGN),
    (32_768, USUAL_ALIGN),
    (4096, 4096),
];

/// The alignment that is not worth mentioning.
pub const USUAL_ALIGN: usize = 8;

/// The bytes of the heap.
pub const BYTES: usize = 64 << 20;

/// Times pairs of blocks of `size` bytes, aligned to `align`, on this number of threads, as [`time_by`] does.
pub fn time((size, align): (usize, usize), threads: usize, rounds: usize, clock: &Clock) -> Cost {
    static HEAP: Heap<BYTES> = Heap::new();
    let layout = Layout::from_size_align(size, align).expect("a small size");
    time_by(threads, rounds, clock, |_| {
        move || {
            // Hidden from the compiler each time, which would otherwise find the class of the size once for all pairs.
            let asked = black_box(layout);
            let block = black_box(HEAP.alloc(asked)).expect("more blocks than threads");
            // SAFETY: the block was just allocated with this layout, and ends here.
            unsafe { HEAP.free(block, black_box(layout)) };
        }
    })
}
