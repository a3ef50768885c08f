//! Heaps that get their memory themselves: the system's, and those that replace it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use super::Heap;

/// A global allocator, called by name.
#[derive(Debug)]
pub(crate) struct Global<A>(pub A);

// SAFETY: a global allocator promises the same.
unsafe impl<A: GlobalAlloc + Sync> Heap for Global<A> {
    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    #[inline]
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has a byte at least.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    #[inline]
    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(at.as_ptr(), layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        NonNull::new(unsafe { self.0.realloc(at.as_ptr(), layout, size) })
    }
}
