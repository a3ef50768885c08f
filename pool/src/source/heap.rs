//! Chunks from a heap.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use super::ChunkSource;

/// A heap that implements [`GlobalAlloc`], without being the global one.
///
/// ```
/// use nbbs_pool::{Config, Heap, Pool};
/// use std::alloc::System;
///
/// let pool = Pool::<u32, _>::with_source(Heap(&System), Config::new());
/// let one = pool.alloc(1)?;
/// pool.free(one)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Heap<'h, A>(pub &'h A);

impl<A> Clone for Heap<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Heap<'_, A> {}

// SAFETY: a block is from the heap, which promises the same, and which the reference keeps in place.
unsafe impl<A: GlobalAlloc> ChunkSource for Heap<'_, A> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero, by the trait's contract.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from `alloc` with this layout, by the trait's contract.
        unsafe { self.0.dealloc(block.as_ptr(), layout) }
    }
}
