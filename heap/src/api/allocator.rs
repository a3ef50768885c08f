//! `Allocator`, for collections in a given heap: the trait of the crate `allocator-api2`, and that of nightly Rust's
//! standard library.

#[cfg(feature = "nightly")]
use core::alloc as nightly;
use core::alloc::Layout;
use core::ptr::NonNull;

#[cfg(feature = "allocator-api2")]
use allocator_api2::alloc as api2;

use crate::operations::Resize;
use crate::{Cpu, Heap, On, PlacedSmall, Small};

fn found<E>(at: Option<NonNull<u8>>, layout: Layout, refused: E) -> Result<NonNull<[u8]>, E> {
    at.map(|at| NonNull::slice_from_raw_parts(at, layout.size())).ok_or(refused)
}

/// Implements the trait of `$api` for a heap, or a view of one.
macro_rules! implement {
    ($api:ident, [$($generics:tt)*] $heap:ty) => {
        // SAFETY: memory stays where it is and valid until it is freed: it lies outside of what the trait is
        // implemented for, which is a reference, or a view of memory that is the heap's as long as anything refers to
        // it. Copies are the same heap.
        unsafe impl<$($generics)*> $api::Allocator for $heap {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $api::AllocError> {
                found(self.alloc(layout), layout, $api::AllocError)
            }

            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $api::AllocError> {
                found(self.alloc_zeroed(layout), layout, $api::AllocError)
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
            ) -> Result<NonNull<[u8]>, $api::AllocError> {
                // SAFETY: as the caller promises.
                let moved = unsafe { self.resize_to(at, old, new) };
                found(moved, new, $api::AllocError)
            }

            unsafe fn shrink(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $api::AllocError> {
                // SAFETY: as the caller promises.
                let moved = unsafe { self.resize_to(at, old, new) };
                found(moved, new, $api::AllocError)
            }
        }
    };
}

/// Implements the trait of `$api` for all heaps.
macro_rules! implement_all {
    ($api:ident) => {
        implement!(
            $api,
            [const BYTES: usize, const CPUS: usize, C: Cpu] &'static Heap<BYTES, CPUS, C>
        );
        implement!($api, [] On<'_>);
        implement!($api, [const BYTES: usize, const UNIT: usize] &Small<BYTES, UNIT>);
        implement!($api, [const UNIT: usize] PlacedSmall<'_, UNIT>);
    };
}

#[cfg(feature = "allocator-api2")]
implement_all!(api2);
#[cfg(feature = "nightly")]
implement_all!(nightly);
