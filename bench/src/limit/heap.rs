//! Measures pairs of the heap, whose caches of the threads have the block.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::hint::black_box;

use nbbs_heap::Heap;

use super::pairs::{Cost, time_by};
use crate::clock::Clock;

/// The sizes of the blocks, in bytes.
pub const SIZES: [usize; 3] = [16, 64, 1024];

/// The bytes of the heap.
pub const BYTES: usize = 64 << 20;

/// Times pairs of blocks of `size` bytes on this number of threads, as [`time_by`] does.
pub fn time(size: usize, threads: usize, rounds: usize, clock: &Clock) -> Cost {
    static HEAP: Heap<BYTES> = Heap::new();
    // Hidden from the compiler, as it often is in a program.
    let layout = black_box(Layout::from_size_align(size, 8).expect("a small size"));
    time_by(threads, rounds, clock, |_| {
        move || {
            let block = black_box(HEAP.alloc(layout)).expect("more blocks than threads");
            // SAFETY: the block was just allocated with this layout, and ends here.
            unsafe { HEAP.free(block, layout) };
        }
    })
}
