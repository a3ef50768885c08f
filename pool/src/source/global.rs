//! Chunks from the global allocator.

/// Chunks from the global allocator. Without the feature `alloc` there is none, and this source has no memory.
///
/// ```
/// use nbbs_pool::{Config, Global, Pool};
///
/// let pool = Pool::<u32>::with_source(Global, Config::new());
/// assert_eq!(pool.capacity(), 0); // nothing is asked for before it is needed
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Global;

#[cfg(feature = "alloc")]
mod source {
    extern crate alloc;

    use alloc::alloc::{alloc, dealloc};
    use core::alloc::Layout;
    use core::ptr::NonNull;

    use super::Global;
    use crate::source::ChunkSource;

    // SAFETY: a block is from the global allocator, which promises the same.
    unsafe impl ChunkSource for Global {
        fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
            // SAFETY: the size is not zero, by the trait's contract.
            NonNull::new(unsafe { alloc(layout) })
        }

        unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
            // SAFETY: the block came from `alloc` with this layout, by the trait's contract.
            unsafe { dealloc(block.as_ptr(), layout) }
        }
    }
}

#[cfg(not(feature = "alloc"))]
mod source {
    use core::alloc::Layout;
    use core::ptr::NonNull;

    use super::Global;
    use crate::source::ChunkSource;

    // SAFETY: there are no blocks.
    unsafe impl ChunkSource for Global {
        fn alloc(&self, _layout: Layout) -> Option<NonNull<u8>> {
            None
        }

        unsafe fn free(&self, _block: NonNull<u8>, _layout: Layout) {}
    }
}
