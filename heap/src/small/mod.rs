//! The small form of the heap: only runs of units, and two bits for each unit.
//!
//! ```text
//! placed    the heap over given memory: layouts and addresses       by_address    without layouts
//! find      the first place for a run            bounds  where it need not look
//! row       claims, frees and resizes runs       codes   the bits of units in a word
//! look      what units are used for
//! ```

mod bounds;
mod by_address;
mod codes;
mod find;
mod look;
mod placed;
mod row;
#[cfg(test)]
mod tests;
mod word;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;

use crate::look::LiveBlock;
pub use look::SmallStats;
pub use placed::PlacedSmall;

/// A heap for little memory: `BYTES` bytes with their bookkeeping, each block a run of units of `UNIT` bytes.
///
/// There are no caches, no slabs and no headers: two bits for each unit, and a word for each 16 words of them, 0.8 % of
/// the memory with units of 32 bytes. A block lies in the first place that has room for it, so that free memory stays
/// in large pieces. `UNIT` is 16, 32 or 64.
///
/// Nobody waits: an interrupt handler may allocate in the middle of an allocation. If the units of a block lie in one
/// word, which has 16 or 32 of them, allocating and freeing take one read-modify-write each (freeing two if they reach
/// the end of the word); otherwise one for each word and one more. The search reads a word for each 16 words without a
/// piece that is long enough, and each word before it refuses.
///
/// ```
/// use nbbs_heap::Small;
///
/// #[global_allocator]
/// static HEAP: Small<{ 256 << 10 }> = Small::new();
///
/// let numbers: Vec<u64> = (0..1000).collect();
/// assert!(HEAP.contains(numbers.as_ptr().cast()));
/// ```
#[repr(C, align(64))]
pub struct Small<const BYTES: usize, const UNIT: usize = 32> {
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the bytes are reached through `PlacedSmall`, whose bookkeeping is atomic, and through what it hands out.
unsafe impl<const BYTES: usize, const UNIT: usize> Sync for Small<BYTES, UNIT> {}

impl<const BYTES: usize, const UNIT: usize> Small<BYTES, UNIT> {
    const UNITS: usize = {
        let units = PlacedSmall::<UNIT>::units_in(BYTES);
        assert!(units > 0, "no unit fits beside the bookkeeping");
        units
    };

    /// Creates an empty heap: all zero.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// static HEAP: Small<{ 16 << 10 }, 16> = Small::new(); // units of 16 bytes
    ///
    /// assert_eq!(HEAP.count_free_bytes(), HEAP.bytes());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        _ = Self::UNITS;
        Self { bytes: UnsafeCell::new([0; BYTES]) }
    }

    /// Returns the heap at its present address.
    #[inline]
    fn placed(&self) -> PlacedSmall<'_, UNIT> {
        let start = NonNull::from(&self.bytes).cast();
        // SAFETY: the bytes are aligned as the heap is, zero at first, and nobody else reaches them.
        unsafe { PlacedSmall::of(start, Self::UNITS) }
    }

    /// Returns whether an address lies in memory that the heap hands out. Cost: no load of shared memory.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<u64>()).unwrap();
    /// assert!(HEAP.contains(block.as_ptr()));
    /// assert!(!HEAP.contains((&raw const block).cast()));
    /// ```
    #[must_use]
    pub fn contains(&self, at: *const u8) -> bool {
        self.placed().contains(at)
    }

    /// Returns how many bytes the heap can hand out: all but its bookkeeping. Cost: none, it is a constant.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// assert_eq!(HEAP.bytes(), (16 << 10) - 192);
    /// ```
    #[must_use]
    pub const fn bytes(&self) -> usize {
        Self::UNITS * UNIT
    }

    /// Returns how many bytes are free: the `free` of [`stats`](Self::stats), for less. Callable from anywhere, handlers
    /// included, while others use the heap. Cost: a load for each word.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// assert!(HEAP.alloc(Layout::new::<[u8; 100]>()).is_some());
    /// assert_eq!(HEAP.bytes() - HEAP.count_free_bytes(), 128); // four units
    /// ```
    #[must_use]
    pub fn count_free_bytes(&self) -> usize {
        self.placed().count_free_bytes()
    }

    /// Returns what the memory is used for. Callable from anywhere, handlers included, while others use the heap.
    ///
    /// Cost: a load for each word, and some instructions for each block and each free piece.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let layout = Layout::new::<[u8; 100]>();
    /// let [first, _second] = [(); 2].map(|()| HEAP.alloc(layout).unwrap());
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(first, layout) };
    /// let stats = HEAP.stats();
    /// assert_eq!((stats.bytes - stats.free, stats.blocks), (128, 1));
    /// assert_eq!(stats.free - stats.largest_free, 128); // in front of the second
    /// ```
    #[must_use]
    pub fn stats(&self) -> SmallStats {
        self.placed().stats()
    }

    /// Calls `visit` for every block in use, in the order of addresses. Callable from anywhere, handlers included,
    /// while others use the heap; `visit` may do so, too, and free what it is shown.
    ///
    /// A block that nobody changes during the walk is shown once, as it is. Any other is shown, if at all, as its units
    /// are when their words are read: if it lies in several, perhaps with a part of its bytes, or with units behind it
    /// that were allocated after it had been freed. What is shown lies in the heap and does not overlap.
    ///
    /// Cost: a load for each word, and some instructions for each block and each free piece.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// HEAP.walk(|live| assert_eq!((live.at, live.size), (block, 128)));
    /// ```
    pub fn walk(&self, visit: impl FnMut(LiveBlock)) {
        self.placed().walk(visit);
    }

    /// Allocates memory of a layout, in the first place that has room; returns `None` if there is none in one piece.
    ///
    /// Cost: one read-modify-write if the run lies in one word, of 32 units or 16, otherwise one more than the words it
    /// lies in. The search takes a load for each stretch of 16 words that has no room, and at most two for each word
    /// and each free piece of the others.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// assert!(HEAP.alloc(Layout::new::<[u64; 100]>()).is_some());
    /// assert_eq!(HEAP.alloc(Layout::new::<[u8; 16 << 10]>()), None); // the bookkeeping takes some
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.placed().alloc(layout)
    }

    /// Allocates memory of a layout that is all zero; returns `None` if there is none in one piece.
    ///
    /// Cost: that of [`alloc`](Self::alloc), and a store for each word, also of memory that was never used: the heap
    /// does not know which that is.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let number = HEAP.alloc_zeroed(Layout::new::<u64>()).unwrap().cast::<u64>();
    /// // SAFETY: the memory is ours.
    /// assert_eq!(unsafe { number.read() }, 0);
    /// ```
    #[must_use]
    pub fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.placed().alloc_zeroed(layout)
    }

    /// Frees memory. Returns whether there was a block of as many units at `at`; if not, nothing has changed. A wrong
    /// call for memory that is just then allocated or resized may make its holder's next call fail.
    ///
    /// Cost: one read-modify-write if the run lies in one word, two if it reaches to the word's end, otherwise one more
    /// than the words it lies in.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// assert!(unsafe { HEAP.free(block, layout) });
    /// // SAFETY: it is not any more, which the heap sees.
    /// assert!(!unsafe { HEAP.free(block, layout) });
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(&self, at: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.placed().free(at, layout) }
    }

    /// Makes memory larger or smaller: in place if it gets smaller, or the units behind it are free; otherwise its
    /// contents are moved. Returns `None` if there is no memory; then nothing has changed. In place it costs a
    /// read-modify-write for each word of what changes, and two more at most; otherwise an allocation, a copy and a
    /// free.
    ///
    /// ```
    /// # use nbbs_heap::Small;
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// assert_eq!(unsafe { HEAP.resize(block, layout, 1000) }, Some(block)); // in place
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    #[must_use = "the memory may have moved"]
    pub unsafe fn resize(
        &self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.placed().resize(at, layout, size) }
    }

    /// Changes the layout of memory, as [`resize`](Self::resize) changes its size.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    #[cfg(any(feature = "allocator-api2", feature = "nightly"))]
    pub(crate) unsafe fn resize_to(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.placed().resize_to(at, old, new) }
    }
}

impl<const BYTES: usize, const UNIT: usize> Default for Small<BYTES, UNIT> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize, const UNIT: usize> fmt::Debug for Small<BYTES, UNIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Small").field("bytes", &BYTES).field("unit", &UNIT).finish_non_exhaustive()
    }
}

// SAFETY: memory of a layout is handed out once, as the run that its bookkeeping says. It neither unwinds nor calls
// itself. The memory that it hands out is its own: a heap that has handed out some stays where it is, as a static does.
unsafe impl<const BYTES: usize, const UNIT: usize> GlobalAlloc for Small<BYTES, UNIT> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { GlobalAlloc::alloc(&self.placed(), layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.placed().dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { self.placed().realloc(at, layout, size) }
    }
}
