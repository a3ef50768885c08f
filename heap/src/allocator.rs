//! `Allocator` of the crate `allocator-api2`, for collections in a given heap.

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::heap::relocate;
use crate::{Cpu, Heap};

// SAFETY: memory stays where it is and valid until it is freed, as the heap is there for ever, and copies of the reference
// are the same heap.
unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> Allocator
    for &'static Heap<BYTES, CPUS, C>
{
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let at = Heap::alloc(self, layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(at, layout.size()))
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let at = Heap::alloc_zeroed(self, layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(at, layout.size()))
    }

    unsafe fn deallocate(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.free(at, layout) };
    }

    unsafe fn grow(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, old, new) }
    }

    unsafe fn shrink(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, old, new) }
    }
}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// # Safety
    /// As [`Allocator::grow`] or [`Allocator::shrink`].
    unsafe fn resize_to(
        &'static self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = if old.align() == new.align() {
            // SAFETY: as the caller promises.
            unsafe { self.resize(at, old, new.size()) }.ok_or(AllocError)?
        } else {
            // SAFETY: as the caller promises.
            unsafe { relocate(self, at, old, new) }.ok_or(AllocError)?
        };
        Ok(NonNull::slice_from_raw_parts(moved, new.size()))
    }
}
