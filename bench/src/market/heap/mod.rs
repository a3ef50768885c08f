//! Heaps: memory by size and alignment.
//!
//! ```text
//! region    memory for a heap to manage        locked   a heap for one thread at a time, behind a spin lock
//! chunks    the chunk allocator                crates   heaps of crates.io, over a region
//! global    heaps that get memory themselves   checked  a heap with an owner map beside it
//! own       this project's heap                table    the contenders
//! ```

mod checked;
mod chunks;
#[cfg(feature = "suite")]
mod crates;
mod global;
mod locked;
mod own;
pub(super) mod region;
pub(super) mod table;

use std::alloc::Layout;
use std::ptr::NonNull;

pub use checked::CheckedHeap;

/// An allocator of memory by size and alignment, for any number of threads.
///
/// # Safety
/// What `alloc` and `resize` return is memory of the layout, which nobody else uses until it is freed.
/// (An implementation may fail to keep this because it is wrong: [`CheckedHeap`] is there to find that out.)
#[allow(unsafe_code)]
pub unsafe trait Heap: Sync {
    /// Bytes of bookkeeping, if they lie apart from the blocks.
    fn metadata_bytes(&self) -> Option<usize>;

    /// Allocates memory of a layout, of a byte at least.
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees it.
    ///
    /// # Safety
    /// The caller holds `at`, with this very layout, and gives it up.
    unsafe fn free(&self, at: NonNull<u8>, layout: Layout);

    /// Makes it larger or smaller, perhaps in another place; what fits of its contents stays. If it is refused
    /// the block is as it was.
    ///
    /// # Safety
    /// The caller holds `at`, with this very layout, and gives it up unless it is refused. The size is not 0,
    /// and no more than a layout may have.
    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>>;
}
