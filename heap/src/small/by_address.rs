//! Blocks of which only the address is known.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::Small;
use super::codes::{self, Use};
use super::placed::PlacedSmall;
use super::row::Row;
use super::word::Word;
use crate::class::GRAIN;
use crate::error::FreeError;
use crate::operations::relocate;

impl<const BYTES: usize, const UNIT: usize> Small<BYTES, UNIT> {
    /// Returns how many bytes may be used of what is allocated at an address: those of its units.
    ///
    /// Cost: a load for each word in which the block lies, and one or two.
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, Small};
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(HEAP.usable(block), Ok(128));
    /// assert!(matches!(HEAP.usable(NonNull::from(&0_u8)), Err(FreeError::Foreign { .. })));
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there.
    pub fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        self.placed().usable(at)
    }

    /// Frees memory of which only the address is known, and returns how many bytes it had. [`free`](Self::free) is
    /// cheaper, and sees if the length is wrong.
    ///
    /// Cost: that of `free`, and that of [`usable`](Self::usable).
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, Small};
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// // SAFETY: the block is ours.
    /// assert_eq!(unsafe { HEAP.free_at(block) }, Ok(128));
    /// // SAFETY: it is not any more, which the heap sees.
    /// assert!(matches!(unsafe { HEAP.free_at(block) }, Err(FreeError::NotAllocated { .. })));
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there; then nothing has changed.
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up.
    pub unsafe fn free_at(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { self.placed().free_at(at) }
    }

    /// Makes memory of which only the address is known larger or smaller, in place as [`resize`](Self::resize) does,
    /// and otherwise moves its contents. Returns `None` if there is no memory; then nothing has changed. Memory that is
    /// moved is aligned to 16 bytes.
    ///
    /// Cost: that of [`usable`](Self::usable), and that of `resize`.
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, Small};
    /// # use std::alloc::Layout;
    /// static HEAP: Small<{ 16 << 10 }> = Small::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// // SAFETY: the block is ours, and so is what replaces it.
    /// unsafe {
    ///     assert_eq!(HEAP.resize_at(block, 1000), Ok(Some(block))); // in place
    ///     assert_eq!(HEAP.resize_at(block, 16 << 10), Ok(None)); // more than there is
    ///     assert_eq!(HEAP.free_at(block), Ok(1024));
    ///     assert!(matches!(HEAP.resize_at(block, 1), Err(FreeError::NotAllocated { .. })));
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there; then nothing has changed.
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up for what is returned.
    pub unsafe fn resize_at(
        &self,
        at: NonNull<u8>,
        size: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: as the caller promises.
        unsafe { self.placed().resize_at(at, size) }
    }
}

impl<const UNIT: usize> PlacedSmall<'_, UNIT> {
    /// Returns how many bytes may be used of what is allocated at an address, as
    /// [`Small::usable`](crate::Small::usable) does, at the same cost.
    ///
    /// ```
    /// # use nbbs_heap::{FreeError, PlacedSmall};
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(heap.usable(block), Ok(128));
    /// assert!(matches!(heap.usable(memory), Err(FreeError::Foreign { .. }))); // the bookkeeping
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there.
    pub fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        self.find(at).map(|(_, units)| units * UNIT)
    }

    /// Frees memory of which only the address is known, as [`Small::free_at`](crate::Small::free_at) does, at the same
    /// cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(unsafe { heap.free_at(block) }, Ok(128)); // SAFETY: the block is ours
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there.
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up.
    pub unsafe fn free_at(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        let (unit, units) = self.find(at)?;
        if !self.row.cut(unit, units, 0) {
            return Err(FreeError::NotAllocated { address: at.addr().get() });
        }
        Ok(units * UNIT)
    }

    /// Makes memory of which only the address is known larger or smaller, as
    /// [`Small::resize_at`](crate::Small::resize_at) does, at the same cost.
    ///
    /// ```
    /// # use nbbs_heap::PlacedSmall;
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// # let memory = NonNull::from(Box::leak(Box::new([0_u8; 1024]))).cast();
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { PlacedSmall::<32>::new(memory, 1024).unwrap() };
    /// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// assert_eq!(unsafe { heap.resize_at(block, 500) }, Ok(Some(block))); // SAFETY: the block is ours
    /// ```
    ///
    /// # Errors
    /// [`FreeError`] if nothing is allocated there; then nothing has changed.
    ///
    /// # Safety
    /// The caller holds what this heap allocated at `at`, if anything, and gives it up for what is returned.
    pub unsafe fn resize_at(
        &self,
        at: NonNull<u8>,
        size: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        let bytes = self.usable(at)?;
        let layout = |size| Layout::from_size_align(size, GRAIN);
        let Ok((old, new)) = layout(bytes).and_then(|old| Ok((old, layout(size)?))) else {
            return Ok(None);
        };
        if self.resize_in_place(at, bytes, size) {
            return Ok(Some(at));
        }
        let nothing = FreeError::NotAllocated { address: at.addr().get() };
        // What becomes shorter stays in place, unless somebody else has freed it.
        if size <= bytes {
            return Err(nothing);
        }
        let mut is_freed = true;
        // SAFETY: as the caller promises.
        let free = || is_freed = unsafe { self.free(at, old) };
        // SAFETY: the caller holds what is there, if it is not freed meanwhile, and nobody else what is allocated.
        let moved = unsafe { relocate(at, old, new, |new| self.alloc(new), free) };
        if is_freed {
            return Ok(moved);
        }
        if let Some(moved) = moved {
            // SAFETY: nobody has been told of it.
            unsafe { self.free(moved, new) };
        }
        Err(nothing)
    }

    /// Returns the first unit of the block at an address, and how many it has.
    fn find(&self, at: NonNull<u8>) -> Result<(usize, usize), FreeError> {
        let address = at.addr().get();
        if !self.contains(at.as_ptr()) {
            return Err(FreeError::Foreign { address, regions: 1 });
        }
        let offset = self.offset(at.as_ptr());
        let (unit, inside) = (offset / UNIT, offset % UNIT);
        match self.row.run_at(unit) {
            Ok(units) if inside == 0 => Ok((unit, units)),
            Ok(_) => Err(FreeError::Inside { address, begins: address - inside }),
            Err(Use::Rests) => Err(FreeError::InsideRun { address }),
            Err(_) => Err(FreeError::NotAllocated { address }),
        }
    }
}

impl<W: Word> Row<'_, W> {
    /// Returns how many units the run has that begins at a unit of the row. `Err` is what the unit is used for instead:
    /// `Run` if the run is held, so that somebody else is changing it.
    ///
    /// Cost: a load for each word of the run, one more, and another if the run reaches the end of its last word.
    pub fn run_at(&self, unit: usize) -> Result<usize, Use> {
        let (idx, at) = Self::place(unit);
        let word = self.read(idx);
        if word & codes::bits(at, 1) != codes::run(at, 1) {
            return Err(codes::first_use(word, at).0);
        }
        let mut end = unit + 1;
        loop {
            let (idx, at) = Self::place(end);
            let rests = codes::rests_from(self.read(idx), at);
            end += rests as usize;
            if rests == 0 || at + rests < W::UNITS {
                return Ok(end - unit);
            }
        }
    }
}
