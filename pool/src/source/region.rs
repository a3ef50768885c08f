//! Chunks from a static array.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::ChunkSource;

/// An array of `BYTES` bytes from which blocks are cut off at the front, for a pool without a heap.
///
/// All of it may lie in `.bss`. Bytes that are given back are reused only if they are the last that were cut off, so
/// let the pool keep its chunks: its size is fixed by the region's.
///
/// ```
/// use nbbs_pool::{Config, Pool, Region};
///
/// static MEMORY: Region<{ 16 << 10 }> = Region::new();
/// static ITEMS: Pool<[u64; 6], &Region<{ 16 << 10 }>> =
///     Pool::with_source(&MEMORY, Config::new().chunk_size(256).limit(256));
///
/// let item = ITEMS.alloc([7; 6])?;
/// ITEMS.free(item)?;
/// assert_eq!(ITEMS.capacity(), 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C, align(64))]
pub struct Region<const BYTES: usize> {
    bytes: UnsafeCell<MaybeUninit<[u8; BYTES]>>,
    cut: AtomicUsize,
}

// SAFETY: no byte is in two blocks (`cut` only ever grows by a compare-and-swap, and shrinks by one that
// proves that the block is the last), and the bytes are reached through blocks only.
unsafe impl<const BYTES: usize> Sync for Region<BYTES> {}

impl<const BYTES: usize> Region<BYTES> {
    /// Creates a region from which nothing has been cut off.
    ///
    /// ```
    /// use nbbs_pool::{ChunkSource, Region};
    /// use std::alloc::Layout;
    ///
    /// static MEMORY: Region<1024> = Region::new();
    /// assert!((&MEMORY).alloc(Layout::new::<[u8; 1024]>()).is_some());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: UnsafeCell::new(MaybeUninit::uninit()), cut: AtomicUsize::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }
}

// SAFETY: a block lies inside `bytes`, which are as long-lived as the region. A source is used by
// reference or moved before its first block, since a block's borrow is the reference's.
unsafe impl<const BYTES: usize> ChunkSource for &'static Region<BYTES> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let start = self.start();
        // Relaxed: the exchange fails if it has changed.
        let mut cut = self.cut.load(Ordering::Relaxed);
        loop {
            let padding = (start as usize + cut).wrapping_neg() & (layout.align() - 1);
            let begin = cut.checked_add(padding)?;
            let end = begin.checked_add(layout.size()).filter(|&end| end <= BYTES)?;
            // Acquire pairs with the Release in `free`: the former holder of the bytes has finished with them.
            match self.cut.compare_exchange_weak(cut, end, Ordering::Acquire, Ordering::Relaxed) {
                // SAFETY: `begin` is at most BYTES, the size of what `start` points to.
                Ok(_) => return NonNull::new(unsafe { start.add(begin) }),
                Err(found) => cut = found,
            }
        }
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let begin = block.as_ptr() as usize - self.start() as usize;
        let end = begin + layout.size();
        // Release pairs with the Acquire in `alloc`. A failure means that the block was not the last.
        _ = self.cut.compare_exchange(end, begin, Ordering::Release, Ordering::Relaxed);
    }
}

impl<const BYTES: usize> Default for Region<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for Region<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a number that publishes nothing.
        let cut = self.cut.load(Ordering::Relaxed);
        f.debug_struct("Region").field("bytes", &BYTES).field("cut", &cut).finish()
    }
}
