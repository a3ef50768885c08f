//! Chunks from a heap.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use super::ChunkSource;

/// Chunks from a heap that implements [`GlobalAlloc`], without being the global one. The heap is a static, or leaked:
/// one with caches may keep what is freed, and refer to itself, after the pool has gone.
///
/// ```
/// use nbbs_pool::{Config, FromHeap, Pool};
/// use std::alloc::System;
///
/// let pool = Pool::<u32, _>::with_source(FromHeap(&System), Config::new());
/// let one = pool.alloc(1)?;
/// pool.free(one)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A heap that ends is refused:
///
/// ```compile_fail,E0597
/// # use nbbs_pool::{Config, FromHeap, Pool};
/// let heap = std::alloc::System;
/// let pool = Pool::<u32, _>::with_source(FromHeap(&heap), Config::new());
/// # drop(pool);
/// ```
#[derive(Debug)]
pub struct FromHeap<A: 'static>(pub &'static A);

impl<A> Clone for FromHeap<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for FromHeap<A> {}

// SAFETY: a block is from the heap, which promises the same, and neither moves nor ends.
unsafe impl<A: GlobalAlloc> ChunkSource for FromHeap<A> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero, by the trait's contract.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from `alloc` with this layout, by the trait's contract.
        unsafe { self.0.dealloc(block.as_ptr(), layout) }
    }
}
