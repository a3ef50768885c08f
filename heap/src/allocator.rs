//! `Allocator`, for collections in a given heap: the trait of the crate `allocator-api2`, and that of nightly Rust's
//! standard library.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::heap::relocate;
use crate::{Cpu, Heap};

/// Implements the trait of `$api`.
macro_rules! implement {
    ($($api:ident)::+) => {
        // SAFETY: memory stays where it is and valid until it is freed, as the heap exists for ever, and copies of the
        // reference are the same heap.
        unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> $($api)::+::Allocator
            for &'static Heap<BYTES, CPUS, C>
        {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                let at = Heap::alloc(self, layout).ok_or($($api)::+::AllocError)?;
                Ok(NonNull::slice_from_raw_parts(at, layout.size()))
            }

            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                let at = Heap::alloc_zeroed(self, layout).ok_or($($api)::+::AllocError)?;
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
            ) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                // SAFETY: as the caller promises.
                unsafe { self.resize_to(at, old, new) }.ok_or($($api)::+::AllocError)
            }

            unsafe fn shrink(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                // SAFETY: as the caller promises.
                unsafe { self.resize_to(at, old, new) }.ok_or($($api)::+::AllocError)
            }
        }
    };
}

#[cfg(feature = "allocator-api2")]
implement!(allocator_api2::alloc);
#[cfg(feature = "nightly")]
implement!(core::alloc);

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// # Safety
    /// Those of `grow` or `shrink` of the trait.
    unsafe fn resize_to(
        &'static self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<[u8]>> {
        let moved = if old.align() == new.align() {
            // SAFETY: as the caller promises.
            unsafe { self.resize(at, old, new.size()) }?
        } else {
            // SAFETY: as the caller promises.
            unsafe { relocate(self, at, old, new) }?
        };
        Some(NonNull::slice_from_raw_parts(moved, new.size()))
    }
}
