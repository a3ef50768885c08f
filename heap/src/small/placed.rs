//! The small form of the heap, in memory that is given at run time.

use core::alloc::{GlobalAlloc, Layout};
use core::cmp::Ordering;
use core::fmt;
use core::ptr::{NonNull, null_mut};
use core::slice;

use super::bounds::Bounds;
use super::codes::Use;
use super::find::Wanted;
use super::look::SmallStats;
use super::row::Row;
use crate::class::is_aligned;
use crate::error::AddError;
use crate::look::LiveBlock;
use crate::operations::relocate;
use crate::words::AtomicUsize;

/// The alignment of the heap.
const ALIGN: usize = 64;

/// A [`Small`](crate::Small) heap in memory that is given at run time. Copies are the same heap.
///
/// Cost: for each method that of the same one of `Small`. All may be called from interrupt and signal handlers.
///
/// ```
/// use nbbs_heap::PlacedSmall;
/// use std::alloc::Layout;
/// use std::ptr::NonNull;
///
/// let memory = Box::leak(Box::new([0xff_u8; 16 << 10])); // whatever it holds
/// // SAFETY: nobody else ever uses the memory.
/// let heap = unsafe { PlacedSmall::<32>::new(NonNull::from(memory).cast(), 16 << 10)? };
/// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
/// // SAFETY: the block is ours.
/// assert!(unsafe { heap.free(block, Layout::new::<[u8; 100]>()) });
/// # Ok::<(), nbbs_heap::AddError>(())
/// ```
#[derive(Clone, Copy)]
pub struct PlacedSmall<'m, const UNIT: usize = 32> {
    pub(super) row: Row<'m, AtomicUsize>,
    /// The first unit.
    base: NonNull<u8>,
}

// SAFETY: the bookkeeping is atomic, and memory is handed out once.
unsafe impl<const UNIT: usize> Send for PlacedSmall<'_, UNIT> {}
// SAFETY: as above.
unsafe impl<const UNIT: usize> Sync for PlacedSmall<'_, UNIT> {}

impl<'m, const UNIT: usize> PlacedSmall<'m, UNIT> {
    /// Returns how many bytes of memory, at any address, make a heap that hands out `bytes` bytes, rounded up to units;
    /// `None` if there is no such heap: `bytes` is 0, or there are not so many addresses. Cost: some arithmetic, none
    /// in a constant.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// let bytes = PlacedSmall::<16>::bytes_for(1000).unwrap();
    /// let memory = Box::leak(vec![0_u8; bytes].into_boxed_slice());
    /// // SAFETY: nobody else ever uses the memory.
    /// let heap = unsafe { PlacedSmall::<16>::new(std::ptr::NonNull::from(memory).cast(), bytes)? };
    /// assert!(heap.bytes() >= 1000);
    /// # Ok::<(), nbbs_heap::AddError>(())
    /// ```
    #[must_use]
    pub const fn bytes_for(bytes: usize) -> Option<usize> {
        if bytes == 0 || bytes > isize::MAX as usize {
            return None;
        }
        let units = bytes.div_ceil(UNIT);
        let all = Self::begin(units) + units * UNIT + ALIGN - 1;
        if all <= isize::MAX as usize { Some(all) } else { None }
    }

    /// Makes a heap of `bytes` bytes at `start`, which may have any content. Its bookkeeping lies at their front. Cost:
    /// a store for each word of that.
    ///
    /// ```
    /// # use nbbs_heap::{AddError, PlacedSmall};
    /// # use std::ptr::NonNull;
    /// let memory = NonNull::from(Box::leak(Box::new([0xff_u8; 1024]))).cast();
    /// // SAFETY: nobody else ever uses the memory.
    /// let heap = unsafe { PlacedSmall::<32>::new(memory, 1024)? };
    /// assert!(heap.contains(memory.as_ptr().wrapping_add(1000)));
    /// // SAFETY: it has not changed the memory.
    /// let refused = unsafe { PlacedSmall::<32>::new(memory, 10) };
    /// assert!(matches!(refused, Err(AddError::TooSmall { bytes: 10, .. })));
    /// # Ok::<(), AddError>(())
    /// ```
    ///
    /// # Errors
    /// [`AddError::TooSmall`] if there is no room for a unit.
    ///
    /// # Safety
    /// The memory belongs to the heap for as long as any copy of the heap is used, or anything refers to memory that it
    /// handed out (a box in it, leaked, for `'m`). All of it may be written to.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize) -> Result<Self, AddError> {
        let skip = start.addr().get().wrapping_neg() % ALIGN;
        let units = Self::units_in(bytes.saturating_sub(skip));
        if units == 0 {
            return Err(AddError::TooSmall { bytes, needed: skip + Self::begin(1) + UNIT });
        }
        // SAFETY: fewer bytes are skipped than there are.
        let start = unsafe { start.add(skip) };
        // SAFETY: the bookkeeping fits behind them.
        unsafe { start.write_bytes(0, Self::begin(units)) };
        // SAFETY: by the contract; `start` is aligned, and the bookkeeping is zero.
        Ok(unsafe { Self::of(start, units) })
    }

    /// Creates the heap of this many units at `start`.
    ///
    /// # Safety
    /// `start` is aligned to 64 bytes, and the units and their bookkeeping belong to the heap for as long as any copy
    /// of it is used. The bookkeeping is zero, or that of this same heap.
    #[inline]
    pub(crate) unsafe fn of(start: NonNull<u8>, units: usize) -> Self {
        let (first, len) = (start.cast::<AtomicUsize>(), Row::<AtomicUsize>::words_for(units));
        // SAFETY: the words lie in the memory, which is aligned for them, and are reached as atomics only.
        let words = unsafe { slice::from_raw_parts(first.as_ptr(), len) };
        // SAFETY: the bounds lie behind them.
        let bounds = unsafe { first.add(len) };
        // SAFETY: as for the words.
        let bounds = unsafe { slice::from_raw_parts(bounds.as_ptr(), Bounds::of_words(len)) };
        // SAFETY: the units lie behind the bounds.
        let base = unsafe { start.add(Self::begin(units)) };
        Self { row: Row { words, bounds: Bounds(bounds), units }, base }
    }

    /// Returns the most units that fit into this many bytes, beside their bookkeeping.
    pub(crate) const fn units_in(bytes: usize) -> usize {
        const { assert!(UNIT == 16 || UNIT == 32 || UNIT == 64, "a unit has 16, 32 or 64 bytes") }
        let (mut fit, mut above) = (0, bytes / UNIT + 1);
        while above - fit > 1 {
            let units = fit + (above - fit) / 2;
            if Self::begin(units) + units * UNIT <= bytes {
                fit = units;
            } else {
                above = units;
            }
        }
        fit
    }

    /// Returns where the first of this many units begins.
    const fn begin(units: usize) -> usize {
        let words = Row::<AtomicUsize>::words_for(units);
        (size_of::<AtomicUsize>() * (words + Bounds::of_words(words))).next_multiple_of(ALIGN)
    }

    /// Returns whether an address lies in memory that the heap hands out. Cost: no load of shared memory.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let block = heap.alloc(Layout::new::<u64>()).unwrap();
    /// assert!(heap.contains(block.as_ptr()));
    /// assert!(!heap.contains(memory.as_ptr())); // the bookkeeping
    /// ```
    #[must_use]
    pub fn contains(&self, at: *const u8) -> bool {
        self.offset(at) < self.bytes()
    }

    /// Returns how many bytes behind the first unit an address lies.
    pub(super) fn offset(&self, at: *const u8) -> usize {
        at.addr().wrapping_sub(self.base.addr().get())
    }

    /// Returns the number of units that hold this many bytes.
    fn units_of(size: usize) -> usize {
        size.div_ceil(UNIT).max(1)
    }

    /// Returns how many bytes the heap can hand out: all but its bookkeeping. Cost: no load of shared memory.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::ptr::NonNull;
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// assert!(heap.bytes() < 1024 && heap.bytes().is_multiple_of(32));
    /// ```
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.row.units * UNIT
    }

    /// Returns how many bytes are free, as [`Small::count_free_bytes`](crate::Small::count_free_bytes) does, at the
    /// same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// assert!(heap.alloc(Layout::new::<[u8; 100]>()).is_some());
    /// assert_eq!(heap.bytes() - heap.count_free_bytes(), 128); // four units
    /// ```
    #[must_use]
    pub fn count_free_bytes(&self) -> usize {
        self.row.free_units() * UNIT
    }

    /// Returns what the memory is used for, as [`Small::stats`](crate::Small::stats) does, at the same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// assert!(heap.alloc(Layout::new::<[u8; 100]>()).is_some());
    /// let stats = heap.stats();
    /// assert_eq!((stats.blocks, stats.bytes - stats.largest_free), (1, 128));
    /// ```
    #[must_use]
    pub fn stats(&self) -> SmallStats {
        SmallStats::of(&self.row, UNIT)
    }

    /// Calls `visit` for every block in use, as [`Small::walk`](crate::Small::walk) does, at the same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// heap.walk(|live| assert_eq!((live.at, live.size), (block, 128)));
    /// ```
    pub fn walk(&self, mut visit: impl FnMut(LiveBlock)) {
        self.row.walk(|used_for, units| {
            if used_for == Use::Run {
                // SAFETY: the unit lies in the heap's memory.
                let at = unsafe { self.base.add(units.start * UNIT) };
                visit(LiveBlock { at, size: units.len() * UNIT, class: None });
            }
        });
    }

    /// Allocates memory of a layout; returns `None` if there is none in one piece. Cost: that of
    /// [`Small::alloc`](crate::Small::alloc).
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// assert!(heap.alloc(Layout::new::<[u64; 100]>()).is_some());
    /// assert_eq!(heap.alloc(Layout::new::<[u64; 100]>()), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (units, align) = (Self::units_of(layout.size()), (layout.align() / UNIT).max(1));
        // Alignment is counted from address 0.
        let unit =
            self.row.alloc(Wanted { units, align, offset: self.base.addr().get() / UNIT })?;
        // SAFETY: the unit lies in the heap's memory.
        Some(unsafe { self.base.add(unit * UNIT) })
    }

    /// Allocates memory of a layout that is all zero, as [`Small::alloc_zeroed`](crate::Small::alloc_zeroed) does, at
    /// the same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0xff_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let number = heap.alloc_zeroed(Layout::new::<u64>()).unwrap().cast::<u64>();
    /// // SAFETY: the memory is ours.
    /// assert_eq!(unsafe { number.read() }, 0);
    /// ```
    #[must_use]
    pub fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        let at = self.alloc(layout)?;
        // SAFETY: the block is the caller's, and holds the layout.
        unsafe { at.write_bytes(0, layout.size()) };
        Some(at)
    }

    /// Frees memory. Returns whether there was a block of as many units at `at`; if not, nothing has changed. Cost:
    /// that of [`Small::free`](crate::Small::free).
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = heap.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// assert!(unsafe { heap.free(block, layout) });
    /// // SAFETY: it is not any more, which the heap sees.
    /// assert!(!unsafe { heap.free(block, layout) });
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(&self, at: NonNull<u8>, layout: Layout) -> bool {
        self.unit_of(at).is_some_and(|unit| self.row.cut(unit, Self::units_of(layout.size()), 0))
    }

    /// Returns the unit that begins at an address.
    fn unit_of(&self, at: NonNull<u8>) -> Option<usize> {
        let offset = self.offset(at.as_ptr());
        offset.is_multiple_of(UNIT).then_some(offset / UNIT)
    }

    /// Makes memory smaller, or larger if the units behind it are free. Returns whether it was.
    pub(super) fn resize_in_place(&self, at: NonNull<u8>, from: usize, to: usize) -> bool {
        let Some(unit) = self.unit_of(at) else { return false };
        let (from, to) = (Self::units_of(from), Self::units_of(to));
        match to.cmp(&from) {
            Ordering::Less => self.row.cut(unit, from, to),
            Ordering::Equal => true,
            Ordering::Greater => self.row.grow(unit, from, to),
        }
    }

    /// Makes memory larger or smaller, as [`Small::resize`](crate::Small::resize) does, at the same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = heap.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// assert_eq!(unsafe { heap.resize(block, layout, 500) }, Some(block)); // in place
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
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, layout, new) }
    }

    /// Changes the layout of memory, as [`resize`](Self::resize) does.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    pub(crate) unsafe fn resize_to(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        let is_aligned = is_aligned(at.addr().get(), new.align());
        if is_aligned && self.resize_in_place(at, old.size(), new.size()) {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        let free = || _ = unsafe { self.free(at, old) };
        // SAFETY: as the caller promises.
        unsafe { relocate(at, old, new, |new| self.alloc(new), free) }
    }
}

impl<const UNIT: usize> fmt::Debug for PlacedSmall<'_, UNIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlacedSmall")
            .field("bytes", &self.bytes())
            .field("unit", &UNIT)
            .finish_non_exhaustive()
    }
}

// SAFETY: memory of a layout is handed out once, as the run that its bookkeeping says. It neither unwinds nor calls
// itself. The memory that it hands out is outside of it, so the heap may be moved.
unsafe impl<const UNIT: usize> GlobalAlloc for PlacedSmall<'_, UNIT> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.alloc(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if let Some(at) = NonNull::new(at) {
            // SAFETY: as the caller promises.
            unsafe { self.free(at, layout) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let moved = NonNull::new(at).and_then(|at| unsafe { self.resize(at, layout, size) });
        moved.map_or(null_mut(), NonNull::as_ptr)
    }
}
