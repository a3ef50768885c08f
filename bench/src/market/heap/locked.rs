//! A spin lock around a heap that has no lock.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;

use spin::mutex::SpinMutex;

use super::Heap;
use super::region::Region;

/// A heap for one thread at a time.
///
/// # Safety
/// That of [`Heap`], for one caller at a time.
pub(crate) unsafe trait Sequential: Send {
    /// Creates a heap that manages the region.
    ///
    /// # Safety
    /// The region outlives the heap, and nobody else uses its memory.
    unsafe fn new(region: &Region) -> Self;

    /// As [`Heap::metadata_bytes`].
    fn metadata_bytes(&self) -> Option<usize>;

    /// As [`Heap::alloc`].
    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>>;

    /// As [`Heap::free`].
    ///
    /// # Safety
    /// That of [`Heap`].
    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout);

    /// As [`Heap::resize`]: allocates, copies and frees, unless the heap has a better way.
    ///
    /// # Safety
    /// That of [`Heap`].
    unsafe fn resize(
        &mut self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { move_block(self, at, layout, size) }
    }
}

/// Allocates, copies what fits, and frees.
///
/// # Safety
/// As [`Heap::resize`].
pub(crate) unsafe fn move_block<S: Sequential + ?Sized>(
    heap: &mut S,
    at: NonNull<u8>,
    layout: Layout,
    size: usize,
) -> Option<NonNull<u8>> {
    let moved = heap.alloc(Layout::from_size_align(size, layout.align()).ok()?)?;
    // SAFETY: the caller holds `at`, we hold `moved`, and both have this many bytes.
    unsafe { moved.copy_from_nonoverlapping(at, layout.size().min(size)) };
    // SAFETY: the caller gives `at` up.
    unsafe { heap.free(at, layout) };
    Some(moved)
}

/// A heap behind one test-and-test-and-set spin lock, over a region of its own.
#[derive(Debug)]
pub(crate) struct Locked<S> {
    inner: SpinMutex<S>,
    // Dropped after the heap that manages it.
    region: Region,
}

impl<S: Sequential> Locked<S> {
    /// Creates a heap of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        let region = Region::new(bytes as usize);
        // SAFETY: the region is ours alone, and is dropped after the heap.
        let inner = SpinMutex::new(unsafe { S::new(&region) });
        Self { inner, region }
    }
}

// SAFETY: one caller at a time is what the lock is for.
unsafe impl<S: Sequential> Heap for Locked<S> {
    fn metadata_bytes(&self) -> Option<usize> {
        self.inner.lock().metadata_bytes()
    }

    fn region(&self) -> Option<Range<usize>> {
        Some(self.region.addresses())
    }

    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.inner.lock().alloc(layout)
    }

    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.inner.lock().free(at, layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.lock().resize(at, layout, size) }
    }
}
