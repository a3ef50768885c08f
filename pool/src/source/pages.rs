//! Chunks from the buddy allocator.

use core::alloc::Layout;
use core::ptr::NonNull;

use nbbs::Buddy;

use super::ChunkSource;

/// Blocks of a [`Buddy`] that manages real memory.
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
/// use nbbs_pool::{Config, Pages, Pool};
/// use std::ptr::NonNull;
///
/// let mut memory = vec![0_u64; 64 * 512]; // 64 pages
/// let start = NonNull::new(memory.as_mut_ptr()).unwrap().cast();
/// let metadata = nbbs::Metadata::<{ metadata_words(64) }>::new();
/// let buddy = Buddy::new(metadata.words(), 64)?;
/// // SAFETY: the pages are `memory`'s, which outlives the pool and which nobody else touches.
/// let pages = unsafe { Pages::new(buddy, start, 4096) };
/// let pool = Pool::<[u8; 48], _>::with_source(pages, Config::new().chunk_size(64));
/// pool.alloc([0; 48])?;
/// drop(pool);
/// assert_eq!(buddy.stats().used_units, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pages<'b> {
    buddy: Buddy<'b>,
    start: NonNull<u8>,
    unit_bytes: usize,
}

// SAFETY: `start` is only computed with; the buddy, which is Sync, decides who has which bytes.
unsafe impl Send for Pages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pages<'_> {}

impl<'b> Pages<'b> {
    /// Creates a source of the pages that `buddy` manages: unit `n` is the `unit_bytes` bytes from `start + n *
    /// unit_bytes`.
    ///
    /// # Safety
    /// Those bytes are readable and writable for `'b`, as far as the units are not reserved, and units are released only
    /// where that holds. Nobody touches a unit that `buddy` has handed out to this source, frees it, or makes the run to
    /// which it belongs smaller; and nobody writes to the words of `buddy` but through it.
    ///
    /// ```
    /// use nbbs::{Buddy, Metadata, metadata_words};
    /// use nbbs_pool::{ChunkSource, Pages};
    /// use std::{alloc::Layout, ptr::NonNull};
    ///
    /// let mut memory = vec![0_u64; 64 * 512]; // 64 pages
    /// let start = NonNull::new(memory.as_mut_ptr()).unwrap().cast();
    /// let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// let buddy = Buddy::new(metadata.words(), 64)?;
    /// // SAFETY: the pages are `memory`'s, which nobody else touches.
    /// let pages = unsafe { Pages::new(buddy, start, 4096) };
    /// assert!(pages.alloc(Layout::new::<u64>()).is_some());
    /// assert_eq!(buddy.stats().used_units, 1);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub unsafe fn new(buddy: Buddy<'b>, start: NonNull<u8>, unit_bytes: usize) -> Self {
        Self { buddy, start, unit_bytes }
    }

    /// Returns the order of a block for `layout`. A block is aligned to its size relative to the arena's start; if
    /// `start` is less aligned, the block has room for padding.
    fn order(&self, layout: Layout) -> Option<u32> {
        let slack = if self.start_is_aligned(layout) { 0 } else { layout.align() - 1 };
        let bytes = layout.size().checked_add(slack)?.max(1);
        let units = bytes.div_ceil(self.unit_bytes).max(layout.align() / self.unit_bytes);
        Some(units.next_power_of_two().trailing_zeros())
    }

    fn start_is_aligned(&self, layout: Layout) -> bool {
        let in_step =
            self.unit_bytes.is_multiple_of(layout.align()) || self.unit_bytes.is_power_of_two();
        in_step && (self.start.as_ptr() as usize).is_multiple_of(layout.align())
    }
}

// SAFETY: the buddy hands out no unit twice; a block lies inside its units, by `order`.
unsafe impl ChunkSource for Pages<'_> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let unit = self.buddy.alloc(self.order(layout)?).ok()?;
        // SAFETY: the unit is one of the buddy's, so the place is inside the bytes from `start`.
        let block = unsafe { self.start.add(unit as usize * self.unit_bytes) };
        let padding = (block.as_ptr() as usize).wrapping_neg() & (layout.align() - 1);
        // SAFETY: `order` leaves room for the padding, which is less than the alignment.
        Some(unsafe { block.add(padding) })
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let Some(order) = self.order(layout) else { return };
        let offset = block.as_ptr() as usize - self.start.as_ptr() as usize;
        // The padding is smaller than the block, and the block begins at a multiple of its order.
        let unit = (offset / self.unit_bytes) as u64 >> order << order;
        let freed = self.buddy.free_sized(unit, order);
        debug_assert_eq!(freed, Ok(()), "a block of the pool is a block of the buddy");
    }
}
