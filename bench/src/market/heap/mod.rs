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
use std::ops::Range;
use std::ptr::NonNull;

pub use checked::CheckedHeap;

/// An allocator of memory by size and alignment, for any number of threads.
///
/// # Safety
/// What `alloc` and `resize` return is memory of the layout, which nobody else uses until it is freed. (A wrong
/// implementation may break this promise: [`CheckedHeap`] is there to find out.)
#[allow(unsafe_code)]
pub unsafe trait Heap: Sync {
    /// Returns the bytes of bookkeeping, if it lies apart from the blocks.
    fn metadata_bytes(&self) -> Option<usize>;

    /// Returns the addresses of the memory that it manages, unless it gets its memory itself.
    fn region(&self) -> Option<Range<usize>> {
        None
    }

    /// Gives up what it keeps for later requests, as far as it can. Nothing is held.
    fn settle(&self) {}

    /// Allocates memory of a layout of at least one byte.
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees memory.
    ///
    /// # Safety
    /// The caller holds `at`, with this very layout, and gives it up.
    unsafe fn free(&self, at: NonNull<u8>, layout: Layout);

    /// Makes a block larger or smaller, perhaps in another place; its contents stay as far as they fit. If it is
    /// refused, the block is unchanged.
    ///
    /// # Safety
    /// The caller holds `at`, with this very layout, and gives it up unless it is refused. The size is not 0,
    /// and no more than a layout may have.
    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>>;
}
