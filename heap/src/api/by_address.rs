//! What is done to memory of which only the address is known, as `free` of C does it.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use super::{Cpu, Heap};
use crate::error::FreeError;
use crate::operations::{ByAddress, Operations};

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// Allocates memory of a layout, as [`alloc`](Self::alloc) does, that may be longer: what is larger than 32 KiB may be
    /// a run that the cache keeps, of up to an eighth more. It is freed and resized [by its address](Self::free_at) alone.
    ///
    /// Cost: that of [`alloc`](Self::alloc), but the cache more often keeps what is asked for.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc_at_least(Layout::new::<[u8; 90_000]>()).unwrap();
    /// assert!((88 << 10..=99 << 10).contains(&HEAP.usable(block).unwrap()));
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free_at(block) }.unwrap();
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc_at_least(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        ByAddress::alloc_at_least(self, layout)
    }

    /// Frees memory of which only the address is known, and returns how many bytes it has.
    ///
    /// Cost: that of [`free`](Self::free), and that of [`usable`](Self::usable). For a run of at most 32 KiB the
    /// caller's cache is asked once for each class that the run may serve as a slot of: up to 26.
    ///
    /// ```
    /// use nbbs_heap::{FreeError, Heap};
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(HEAP.usable(block), Ok(112));
    /// // SAFETY: the block is ours.
    /// assert_eq!(unsafe { HEAP.free_at(block) }, Ok(112));
    /// // SAFETY: it is not any more, which the heap sees.
    /// assert!(matches!(unsafe { HEAP.free_at(block) }, Err(FreeError::NotAllocated { .. })));
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there; then nothing has changed. A second free is detected if the slot has
    /// been given back to its slab, or is the last that was freed through the caller's cache, and that of a larger run
    /// if it has been given back, or the caller's cache keeps it; until then the cache may hand it out, once for each
    /// free. Each detected one is counted: see [`refused`](Self::refused).
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up.
    pub unsafe fn free_at(&'static self, at: NonNull<u8>) -> Result<usize, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::free_at(self, at, |_| 0..0) }
    }

    /// [Frees](Self::free_at) memory, and calls `last` with its bytes before it is given up, if that is more than 32
    /// KiB: so that its pages can go back to the system while they are the caller's. `last` returns which of the bytes are
    /// zero now, counted from the first: [`alloc_zeroed`](Self::alloc_zeroed) does not clear those again.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100_000]>()).unwrap();
    /// let clear = |bytes| {
    ///     assert_eq!(bytes, 98 << 10);
    ///     // SAFETY: the block is still ours, and this long.
    ///     unsafe { block.write_bytes(0, bytes) }; // as if a system had taken the pages, and given new ones
    ///     0..bytes
    /// };
    /// // SAFETY: the block is ours, and zero as `clear` says.
    /// assert!(unsafe { HEAP.free_at_after(block, clear) }.is_ok());
    /// ```
    ///
    /// # Errors
    /// Those of [`free_at`](Self::free_at). A run that the caller's cache keeps is refused only after the call.
    ///
    /// # Safety
    /// That of [`free_at`](Self::free_at); what `last` says is zero, is. If `last` panics, the process is aborted.
    pub unsafe fn free_at_after(
        &'static self,
        at: NonNull<u8>,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<usize, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::free_at(self, at, last) }
    }

    /// Returns how many bytes may be used of what is allocated at an address: those of its slot, or of its run of
    /// units.
    ///
    /// Cost: up to three loads of the bookkeeping, one of each region up to the block's own, and for a run what
    /// [`nbbs::Buddy::len_of`] takes.
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, Heap};
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(HEAP.usable(block), Ok(112));
    /// assert!(matches!(HEAP.usable(NonNull::from(&0_u8)), Err(FreeError::Foreign { .. })));
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there. What a cache keeps counts as allocated.
    pub fn usable(&'static self, at: NonNull<u8>) -> Result<usize, FreeError> {
        self.find(at).map(|held| held.bytes())
    }

    /// Makes memory of which only the address is known larger or smaller, and moves its contents if necessary. Returns
    /// `None` if there is no memory; then nothing has changed. Memory that is moved is aligned to 16 bytes.
    ///
    /// What grows in place to 64 KiB or more gets up to a sixteenth more than it asks for, unless memory is short, so that
    /// most small steps change nothing; what is to be shorter by as little stays as it is, and so does what cannot become
    /// shorter in a full heap. What becomes less than half as long moves, as it would leave a hole that nothing as long
    /// fits into again.
    ///
    /// Cost: that of [`usable`](Self::usable), and that of [`resize`](Self::resize) where the bytes do not suffice.
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, Heap};
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// // SAFETY: the block is ours, and so is what replaces it.
    /// unsafe {
    ///     assert_eq!(HEAP.resize_at(block, 110), Ok(Some(block)));
    ///     assert_eq!(HEAP.resize_at(block, 2 << 20), Ok(None)); // more than there is
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there.
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up for what is returned. That may be
    /// longer than memory of any layout of `size` bytes, and is freed and resized [by its address](Self::free_at) alone.
    pub unsafe fn resize_at(
        &'static self,
        at: NonNull<u8>,
        size: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::resize_at(self, at, size, |_| 0..0) }
    }

    /// [Resizes](Self::resize_at) memory. If that moves it, `last` is called with the bytes that it had, as
    /// [`free_at_after`](Self::free_at_after) does.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 300_000]>()).unwrap();
    /// let mut left = 0;
    /// let last = |bytes| {
    ///     left = bytes;
    ///     0..0
    /// };
    /// // SAFETY: the block is ours, and nothing is said to be zero.
    /// assert!(unsafe { HEAP.resize_at_after(block, 50_000, last) }.unwrap().is_some());
    /// assert_eq!(left, 293 << 10);
    /// ```
    ///
    /// # Errors
    /// Those of [`resize_at`](Self::resize_at).
    ///
    /// # Safety
    /// Those of [`resize_at`](Self::resize_at) and [`free_at_after`](Self::free_at_after).
    pub unsafe fn resize_at_after(
        &'static self,
        at: NonNull<u8>,
        size: usize,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::resize_at(self, at, size, last) }
    }
}
