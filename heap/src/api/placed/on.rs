//! A heap in given memory as seen from a CPU: what allocates, resizes and frees.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use super::Placed;
use crate::cache::Cache;
use crate::error::{FreeError, PageError};
use crate::operations::{ByAddress, Operations, Resize};
use crate::region::Memory;

/// A [`Placed`] heap as seen from a CPU: see [`Placed::on`].
///
/// Cost: for each method that of the same one of [`Heap`](crate::Heap), plus one read-modify-write where the cache is
/// used, unless this is from [`Placed::on_nested`]. All may be called from interrupt and signal handlers, whatever
/// these interrupt.
///
/// ```
/// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
/// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
/// assert!(heap.on(0).alloc(std::alloc::Layout::new::<u64>()).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct On<'h> {
    pub(super) heap: &'h Placed,
    pub(super) cpu: usize,
    pub(super) is_nested: bool,
}

impl<'h> Operations<'h> for On<'h> {
    #[inline]
    fn memory(self) -> Memory<'h> {
        self.heap.memory()
    }

    #[inline]
    fn with_cache<R>(self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        if !self.is_nested {
            return self.heap.cache(self.cpu % self.heap.count)?.with(visit);
        }
        // SAFETY: as the caller of `on_nested` promised. Numbers that share no cache may overlap, and have none.
        unsafe { self.heap.cache(self.cpu)?.with_nested(visit) }
    }

    #[inline]
    fn lane(self) -> usize {
        self.cpu
    }
}

impl On<'_> {
    /// Allocates memory of a layout; returns `None` if there is none. Cost: that of
    /// [`Heap::alloc`](crate::Heap::alloc), as [`On`] says.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// assert_eq!(on.alloc(std::alloc::Layout::new::<[u8; 64 << 10]>()), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        Operations::alloc(self, layout)
    }

    /// Allocates memory of a layout that is all zero; returns `None` if there is none. Cost: that of
    /// [`Heap::alloc_zeroed`](crate::Heap::alloc_zeroed).
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0xff_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let number = on.alloc_zeroed(std::alloc::Layout::new::<u64>()).unwrap().cast::<u64>();
    /// assert_eq!(unsafe { number.read() }, 0); // SAFETY: it is ours
    /// ```
    #[must_use]
    pub fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        Operations::alloc_zeroed(self, layout)
    }

    /// Frees memory. A free that is found to be wrong changes nothing, and is counted, but the cache may hand out first
    /// what it was given: see [`Heap::free`](crate::Heap::free). Cost: that of `Heap::free`.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let layout = std::alloc::Layout::new::<u64>();
    /// let block = on.alloc(layout).unwrap();
    /// unsafe { on.free(block, layout) }; // SAFETY: the block is ours
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Operations::free(self, at, layout) };
    }

    /// Makes memory larger or smaller, and moves its contents if necessary, as
    /// [`Heap::resize`](crate::Heap::resize) does, at the same cost.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let layout = std::alloc::Layout::new::<u64>();
    /// let block = on.alloc(layout).unwrap();
    /// assert_eq!(unsafe { on.resize(block, layout, 16) }, Some(block)); // SAFETY: the block is ours
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    #[must_use = "the memory may have moved"]
    pub unsafe fn resize(
        self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { Resize::resize(self, at, layout, size) }
    }

    /// Allocates memory of a layout that may be longer, and is freed and resized by its address alone, as
    /// [`Heap::alloc_at_least`](crate::Heap::alloc_at_least) does, at the same cost.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let block = on.alloc_at_least(std::alloc::Layout::new::<[u8; 100]>()).unwrap();
    /// assert!(on.usable(block).unwrap() >= 100);
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc_at_least(self, layout: Layout) -> Option<NonNull<u8>> {
        ByAddress::alloc_at_least(self, layout)
    }

    /// Frees memory of which only the address is known, and returns how many bytes it has. Cost: that of
    /// [`Heap::free_at`](crate::Heap::free_at).
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let block = on.alloc(std::alloc::Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(unsafe { on.free_at(block) }, Ok(112)); // SAFETY: the block is ours
    /// ```
    ///
    /// # Errors
    /// Those of [`Heap::free_at`](crate::Heap::free_at).
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up.
    #[inline]
    pub unsafe fn free_at(self, at: NonNull<u8>) -> Result<usize, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::free_at(self, at, |_| 0..0) }
    }

    /// [Frees](Self::free_at) memory, and calls `last` with its bytes before it is given up, if that is more than 32
    /// KiB. `last` returns which of the bytes are zero now, as for
    /// [`Heap::free_at_after`](crate::Heap::free_at_after). Cost: that of `free_at`, and what `last` takes.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 256 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 256 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let block = on.alloc(std::alloc::Layout::new::<[u8; 100_000]>()).unwrap();
    /// let clear = |bytes| {
    ///     unsafe { block.write_bytes(0, bytes) }; // SAFETY: the block is still ours, and this long
    ///     0..bytes
    /// };
    /// assert_eq!(unsafe { on.free_at_after(block, clear) }, Ok(98 << 10)); // SAFETY: ours, and zero as it says
    /// ```
    ///
    /// # Errors
    /// Those of [`Heap::free_at_after`](crate::Heap::free_at_after).
    ///
    /// # Safety
    /// That of [`Heap::free_at_after`](crate::Heap::free_at_after).
    pub unsafe fn free_at_after(
        self,
        at: NonNull<u8>,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<usize, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::free_at(self, at, last) }
    }

    /// Returns how many bytes may be used of what is allocated at an address. Cost: that of
    /// [`Heap::usable`](crate::Heap::usable); the cache is not used.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// assert!(on.usable(memory).is_err()); // there the heap itself begins
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there. What a cache keeps counts as allocated.
    pub fn usable(self, at: NonNull<u8>) -> Result<usize, FreeError> {
        self.find(at).map(|held| held.bytes())
    }

    /// Makes memory of which only the address is known larger or smaller, and moves its contents if necessary. Returns
    /// `None` if there is no memory; then nothing has changed. Memory that is moved is aligned to 16 bytes. Cost: that
    /// of [`Heap::resize_at`](crate::Heap::resize_at).
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let block = on.alloc(std::alloc::Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(unsafe { on.resize_at(block, 110) }, Ok(Some(block))); // SAFETY: the block is ours
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there.
    ///
    /// # Safety
    /// That of [`Heap::resize_at`](crate::Heap::resize_at).
    pub unsafe fn resize_at(
        self,
        at: NonNull<u8>,
        size: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::resize_at(self, at, size, |_| 0..0) }
    }

    /// [Resizes](Self::resize_at) memory. If that moves it, `last` is called with the bytes that it had, as
    /// [`free_at_after`](Self::free_at_after) does. Cost: that of `resize_at`, and what `last` takes.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 512 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 512 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// let block = on.alloc(std::alloc::Layout::new::<[u8; 300_000]>()).unwrap();
    /// let mut left = 0;
    /// let last = |bytes| {
    ///     left = bytes;
    ///     0..0
    /// };
    /// // SAFETY: the block is ours, and nothing is said to be zero.
    /// assert!(unsafe { on.resize_at_after(block, 50_000, last) }.unwrap().is_some());
    /// assert_eq!(left, 293 << 10);
    /// ```
    ///
    /// # Errors
    /// Those of [`resize_at`](Self::resize_at).
    ///
    /// # Safety
    /// Those of [`resize_at`](Self::resize_at) and [`free_at_after`](Self::free_at_after).
    pub unsafe fn resize_at_after(
        self,
        at: NonNull<u8>,
        size: usize,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { ByAddress::resize_at(self, at, size, last) }
    }

    /// Makes the memory of slabs of which no slot is in use available for other sizes. Returns how many bytes these
    /// are, and the runs that this CPU's cache gives back. It gives back what it keeps at once; others do when they
    /// next take slots or give some back, or are given a run. Cost: that of [`Heap::trim`](crate::Heap::trim), without
    /// its system calls.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// assert_eq!(on.trim(), 0); // there are no slabs yet
    /// ```
    pub fn trim(self) -> usize {
        Operations::trim(self)
    }

    /// Empties this CPU's cache, as [`Heap::drain`](crate::Heap::drain) does, unless the cache is in use: before the
    /// CPU is taken off. Returns the bytes of the runs and whole slabs that were given back. Cost: that of
    /// `Heap::drain`.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// # let on = heap.on(0);
    /// let block = on.alloc(std::alloc::Layout::new::<u64>()).unwrap();
    /// unsafe { on.free_at(block) }?; // SAFETY: the block is ours
    /// on.drain(); // the cache may keep it
    /// assert!(heap.stats().classes().iter().all(|class| class.used == 0));
    /// # Ok::<(), nbbs_heap::FreeError>(())
    /// ```
    pub fn drain(self) -> usize {
        Operations::drain(self)
    }

    /// Calls `discard` for whole pages of free memory, which it may take back, as
    /// [`Heap::discard`](crate::Heap::discard) does, at the same cost.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let on = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }.on(0); // SAFETY: it is leaked
    /// assert!(unsafe { on.discard(1000, |_, _| true) }.is_err()); // SAFETY: it is not called
    /// ```
    ///
    /// # Errors
    /// [`PageError`] if `page` is no power of two, or more than 64 KiB.
    ///
    /// # Safety
    /// That of [`Heap::discard`](crate::Heap::discard).
    pub unsafe fn discard(
        self,
        page: usize,
        discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Result<usize, PageError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().discard(true, page, self.lane(), discard) }
    }
}
