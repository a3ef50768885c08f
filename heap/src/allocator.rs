//! `Allocator`, for collections in a given heap: the trait of the crate `allocator-api2`, and that of nightly Rust's
//! standard library.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::steps::Steps;
use crate::{Cpu, Heap, On, PlacedSmall, Small};

/// A heap, or one as a CPU sees it.
trait Source: Copy {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>>;

    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        let at = self.alloc(layout)?;
        // SAFETY: the memory is the caller's, and has this many bytes.
        unsafe { at.write_bytes(0, layout.size()) };
        Some(at)
    }

    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    unsafe fn free(self, at: NonNull<u8>, layout: Layout);

    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    unsafe fn resize(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>>;
}

/// Implements [`Source`] for heaps with slabs.
macro_rules! with_slabs {
    ([$($generics:tt)*] $heap:ty) => {
        impl<$($generics)*> Source for $heap {
            fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
                Steps::alloc(self, layout)
            }

            fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
                Steps::alloc_zeroed(self, layout)
            }

            unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
                Steps::free(self, at, layout);
            }

            unsafe fn resize(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
                // SAFETY: as the caller promises.
                unsafe { Steps::resize(self, at, old, new) }
            }
        }
    };
}
with_slabs!([const BYTES: usize, const CPUS: usize, C: Cpu] &'static Heap<BYTES, CPUS, C>);
with_slabs!([] On<'_>);

impl<const UNIT: usize> Source for PlacedSmall<'_, UNIT> {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        Self::alloc(&self, layout)
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Self::free(&self, at, layout) };
    }

    unsafe fn resize(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, old, new) }
    }
}

impl<const BYTES: usize, const UNIT: usize> Source for &Small<BYTES, UNIT> {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        Small::alloc(self, layout)
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Small::free(self, at, layout) };
    }

    unsafe fn resize(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.placed()?.resize_to(at, old, new) }
    }
}

fn found<E>(at: Option<NonNull<u8>>, layout: Layout, refused: E) -> Result<NonNull<[u8]>, E> {
    at.map(|at| NonNull::slice_from_raw_parts(at, layout.size())).ok_or(refused)
}

/// Implements the trait of `$api` for a [`Source`].
macro_rules! implement {
    ($($api:ident)::+, [$($generics:tt)*] $heap:ty) => {
        // SAFETY: memory stays where it is and valid until it is freed: it lies outside of what the trait is implemented
        // for, which is a reference, or a view of memory that is the heap's as long as anything refers to it. Copies are
        // the same heap.
        unsafe impl<$($generics)*> $($api)::+::Allocator for $heap {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                found(Source::alloc(*self, layout), layout, $($api)::+::AllocError)
            }

            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                found(Source::alloc_zeroed(*self, layout), layout, $($api)::+::AllocError)
            }

            unsafe fn deallocate(&self, at: NonNull<u8>, layout: Layout) {
                // SAFETY: as the caller promises.
                unsafe { Source::free(*self, at, layout) };
            }

            unsafe fn grow(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                // SAFETY: as the caller promises.
                let moved = unsafe { Source::resize(*self, at, old, new) };
                found(moved, new, $($api)::+::AllocError)
            }

            unsafe fn shrink(
                &self,
                at: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($api)::+::AllocError> {
                // SAFETY: as the caller promises.
                let moved = unsafe { Source::resize(*self, at, old, new) };
                found(moved, new, $($api)::+::AllocError)
            }
        }
    };
}

/// Implements the trait of `$api` for all heaps.
macro_rules! implement_all {
    ($($api:ident)::+) => {
        implement!($($api)::+, [const BYTES: usize, const CPUS: usize, C: Cpu] &'static Heap<BYTES, CPUS, C>);
        implement!($($api)::+, [] On<'_>);
        implement!($($api)::+, [const BYTES: usize, const UNIT: usize] &Small<BYTES, UNIT>);
        implement!($($api)::+, [const UNIT: usize] PlacedSmall<'_, UNIT>);
    };
}

#[cfg(feature = "allocator-api2")]
implement_all!(allocator_api2::alloc);
#[cfg(feature = "nightly")]
implement_all!(core::alloc);
