//! Sources: where the memory of chunks comes from.
//!
//! ```text
//! global   the global allocator                 region   a static array, for no_std
//! heap     any heap that is a GlobalAlloc       pages    blocks of the buddy allocator
//! ```

mod global;
mod heap;
#[cfg(feature = "nbbs")]
mod pages;
mod region;

use core::alloc::Layout;
use core::ptr::NonNull;

pub use global::Global;
pub use heap::FromHeap;
#[cfg(feature = "nbbs")]
pub use pages::Pages;
pub use region::Region;

/// A source of memory for a pool's chunks, to which it is also given back.
///
/// The pool asks for a chunk's slots, for its bitmaps and for its table of chunks, each as a block; all but the first
/// kind stay until the pool is dropped. Any thread may call it, several at once if the source is `Sync`. It should not
/// panic: slots that the caller has just claimed would be lost, or a chunk that it is giving back.
///
/// # Safety
/// A block is `layout.size()` bytes at an address that is a multiple of `layout.align()`, readable and writable, and
/// belongs to nobody else until it is given back or the source is dropped, whichever comes first. Moving the source
/// moves no block.
///
/// ```
/// use nbbs_pool::{ChunkSource, Config, Global, Pool};
/// use std::{alloc::Layout, cell::Cell, ptr::NonNull};
///
/// /// Takes no more than so many bytes.
/// struct AtMost(Cell<usize>);
///
/// // SAFETY: the blocks are those of `Global`.
/// unsafe impl ChunkSource for AtMost {
///     fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
///         self.0.set(self.0.get().checked_sub(layout.size())?);
///         Global.alloc(layout)
///     }
///
///     unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
///         // SAFETY: passed on from the caller.
///         unsafe { Global.free(block, layout) };
///         self.0.set(self.0.get() + layout.size());
///     }
/// }
///
/// let pool = Pool::<u32, _>::with_source(AtMost(Cell::new(100)), Config::new());
/// assert!(pool.alloc(7).is_err());
/// ```
pub unsafe trait ChunkSource {
    /// Allocates a block for `layout`, whose size is not zero; `None` if there is none.
    ///
    /// ```
    /// use nbbs_pool::{ChunkSource, Region};
    /// use std::alloc::Layout;
    ///
    /// static MEMORY: Region<1024> = Region::new();
    /// assert!((&MEMORY).alloc(Layout::new::<[u8; 1000]>()).is_some());
    /// assert!((&MEMORY).alloc(Layout::new::<[u8; 1000]>()).is_none());
    /// ```
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Is told that the memory of a chunk, which came for `layout`, is about to be given back. Nobody has an object in it
    /// any more, and none of the chunk's slots can get other memory before this returns. Does nothing by default.
    ///
    /// ```
    /// use nbbs_pool::{ChunkSource, Config, Global, Pool};
    /// use std::{alloc::Layout, cell::Cell, ptr::NonNull};
    ///
    /// /// Counts the chunks that go.
    /// struct Counted(Cell<u32>);
    ///
    /// // SAFETY: the blocks are those of `Global`.
    /// unsafe impl ChunkSource for Counted {
    ///     fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
    ///         Global.alloc(layout)
    ///     }
    ///
    ///     fn retire(&self, _: Layout) {
    ///         self.0.set(self.0.get() + 1);
    ///     }
    ///
    ///     unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
    ///         // SAFETY: passed on from the caller.
    ///         unsafe { Global.free(block, layout) };
    ///     }
    /// }
    ///
    /// let pool = Pool::<u32, _>::with_source(Counted(Cell::new(0)), Config::new().chunk_size(64));
    /// pool.reserve(128)?;
    /// assert_eq!((pool.shrink(), pool.source().0.get()), (128, 2));
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    fn retire(&self, layout: Layout) {
        let _ = layout;
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// The block came from [`alloc`](Self::alloc) of this source with this `layout`, has not been given
    /// back, and is not used any more.
    ///
    /// ```
    /// use nbbs_pool::{ChunkSource, Region};
    /// use std::alloc::Layout;
    ///
    /// static MEMORY: Region<1024> = Region::new();
    /// let layout = Layout::new::<[u8; 1000]>();
    /// let block = (&MEMORY).alloc(layout).unwrap();
    /// // SAFETY: the block is ours, and came with this layout.
    /// unsafe { (&MEMORY).free(block, layout) };
    /// assert_eq!((&MEMORY).alloc(layout), Some(block));
    /// ```
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);
}

// SAFETY: all methods are those of the source referred to, which outlives the reference.
unsafe impl<S: ChunkSource + ?Sized> ChunkSource for &S {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        (**self).alloc(layout)
    }

    fn retire(&self, layout: Layout) {
        (**self).retire(layout);
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on from the caller.
        unsafe { (**self).free(block, layout) }
    }
}
