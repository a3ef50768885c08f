//! Heaps from crates.io, each over a region except [`Rusty`].
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use buddy_alloc::buddy_alloc::{BuddyAlloc, BuddyAllocParam};
use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;

use super::locked::{Sequential, move_block};
use super::region::Region;

/// A free list in the order of addresses, first fit.
pub(crate) type LinkedList = linked_list_allocator::Heap;

// SAFETY: the crate's promise.
unsafe impl Sequential for LinkedList {
    unsafe fn new(region: &Region) -> Self {
        // SAFETY: the region is the heap's, as the caller promises.
        unsafe { Self::new(region.begin().as_ptr(), region.bytes()) }
    }

    fn metadata_bytes(&self) -> Option<usize> {
        Some(size_of::<Self>())
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.allocate_first_fit(layout).ok()
    }

    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.deallocate(at, layout) };
    }
}

/// Bins by size and alignment. Boxed: it must not move.
pub(crate) type Galloc = Box<good_memory_allocator::Allocator>;

// SAFETY: the crate's promise.
unsafe impl Sequential for Galloc {
    unsafe fn new(region: &Region) -> Self {
        let mut heap = Box::new(good_memory_allocator::Allocator::empty());
        // SAFETY: the region is the heap's, as the caller promises, and the box stays where it is.
        unsafe { heap.init(region.begin().as_ptr().expose_provenance(), region.bytes()) };
        heap
    }

    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has a byte at least.
        NonNull::new(unsafe { (**self).alloc(layout) })
    }

    unsafe fn free(&mut self, at: NonNull<u8>, _layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.dealloc(at.as_ptr()) };
    }

    unsafe fn resize(
        &mut self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        NonNull::new(unsafe { self.realloc(at.as_ptr(), layout, size) })
    }
}

/// Bins by size, of chunks with a tag.
pub(crate) type Talck = Talc<Manual, DefaultBinning>;

// SAFETY: the crate's promise.
unsafe impl Sequential for Talck {
    unsafe fn new(region: &Region) -> Self {
        let mut heap = Self::new(Manual);
        // SAFETY: the region is the heap's, as the caller promises.
        let claimed = unsafe { heap.claim(region.begin().as_ptr(), region.bytes()) };
        assert!(claimed.is_some(), "{} bytes are too few", region.bytes());
        heap
    }

    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has a byte at least.
        unsafe { self.allocate(layout) }
    }

    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.deallocate(at.as_ptr(), layout) };
    }

    unsafe fn resize(
        &mut self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises; the size is not 0.
        if unsafe { self.try_realloc_in_place(at.as_ptr(), layout, size) } {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        unsafe { move_block(self, at, layout, size) }
    }
}

/// Two-level segregated fit: blocks of up to 8 GiB.
pub(crate) type Tlsf = rlsf::Tlsf<'static, u32, u32, 28, 32>;

// SAFETY: the crate's promise.
unsafe impl Sequential for Tlsf {
    unsafe fn new(region: &Region) -> Self {
        let mut heap = Self::new();
        let bytes = NonNull::slice_from_raw_parts(region.begin(), region.bytes());
        // SAFETY: the region is the heap's and outlives it, as the caller promises.
        let taken = unsafe { heap.insert_free_block_ptr(bytes) };
        assert!(taken.is_some(), "{} bytes are too few", region.bytes());
        heap
    }

    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.allocate(layout)
    }

    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.deallocate(at, layout.align()) };
    }

    unsafe fn resize(
        &mut self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises; the alignment is the same.
        unsafe { self.reallocate(at, layout) }
    }
}

/// A buddy allocator: a list of free blocks for each power of two.
pub(crate) type BuddySystem = buddy_system_allocator::Heap<40>;

// SAFETY: the crate's promise.
unsafe impl Sequential for BuddySystem {
    unsafe fn new(region: &Region) -> Self {
        let mut heap = Self::empty();
        // SAFETY: the region is the heap's, as the caller promises.
        unsafe { heap.init(region.begin().as_ptr().expose_provenance(), region.bytes()) };
        heap
    }

    fn metadata_bytes(&self) -> Option<usize> {
        Some(size_of::<Self>())
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        Self::alloc(self, layout).ok()
    }

    unsafe fn free(&mut self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.dealloc(at, layout) };
    }
}

/// A buddy allocator: lists of free blocks, and bits that say what is split and what is in use.
pub(crate) struct Buddy {
    heap: BuddyAlloc,
    metadata_bytes: usize,
}

impl Buddy {
    /// The bytes of its smallest blocks, and the largest alignment that it gives.
    const LEAF: usize = 128;
}

// SAFETY: the region belongs to the owner of this value, on any thread.
unsafe impl Send for Buddy {}

// SAFETY: the crate's promise.
unsafe impl Sequential for Buddy {
    unsafe fn new(region: &Region) -> Self {
        let bytes = region.bytes();
        let parameters = BuddyAllocParam::new(region.begin().as_ptr(), bytes, Self::LEAF);
        // SAFETY: the region is the heap's, as the caller promises.
        let heap = unsafe { BuddyAlloc::new(parameters) };
        let metadata_bytes = size_of::<Self>() + bytes - heap.available_bytes();
        Self { heap, metadata_bytes }
    }

    fn metadata_bytes(&self) -> Option<usize> {
        Some(self.metadata_bytes)
    }

    fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let serves = layout.align() <= Self::LEAF;
        serves.then(|| NonNull::new(self.heap.malloc(layout.size()))).flatten()
    }

    unsafe fn free(&mut self, at: NonNull<u8>, _layout: Layout) {
        self.heap.free(at.as_ptr());
    }
}

/// mimalloc's segments and pages, with a heap for each thread. It gets its memory itself.
#[derive(Debug)]
pub(crate) struct Rusty;

// SAFETY: the crate's promise.
unsafe impl GlobalAlloc for Rusty {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            return rusty_alloc::alloc::malloc(layout.size().next_multiple_of(layout.align()));
        }
        rusty_alloc::alloc::malloc_aligned(layout.size(), layout.align())
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { rusty_alloc::alloc::free(at) };
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { rusty_alloc::alloc::realloc_aligned(at, size, layout.align()) }
    }
}
