//! This project's heaps.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;

use nbbs_heap::PlacedSmall;

use super::Heap;
use super::region::Region;

/// A heap of this project over a region of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    heap: &'static nbbs_heap::Heap<0>,
    region: &'static Region,
}

impl Own {
    /// Lends a heap of `bytes` bytes to `visit`, alone. As a heap exists for ever, it is one that was lent before, and
    /// has been emptied since, if there is one that nobody has.
    pub fn lend<R>(bytes: u64, visit: impl FnOnce(&Self) -> R) -> R {
        static IDLE: Mutex<BTreeMap<u64, Vec<Own>>> = Mutex::new(BTreeMap::new());
        let idle = || IDLE.lock().expect("no panic while the heaps are looked up");
        let lent = idle().get_mut(&bytes).and_then(Vec::pop);
        let own = lent.unwrap_or_else(|| made(bytes));
        own.heap.trim();
        let result = visit(&own);
        idle().entry(bytes).or_default().push(own);
        result
    }
}

fn made(bytes: u64) -> Own {
    let heap: &nbbs_heap::Heap<0> = Box::leak(Box::default());
    let region = Box::leak(Box::new(Region::new(bytes as usize)));
    // SAFETY: the region is leaked, and nobody else has it.
    unsafe { heap.add(region.begin(), region.bytes()) }.expect("room for a unit");
    Own { heap, region }
}

// SAFETY: the heap promises the same.
unsafe impl Heap for Own {
    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn region(&self) -> Option<Range<usize>> {
        Some(self.region.addresses())
    }

    fn settle(&self) {
        self.heap.trim();
    }

    #[inline]
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.heap.alloc(layout)
    }

    #[inline]
    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.heap.free(at, layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.heap.resize(at, layout, size) }
    }
}

/// A small heap of this project over a region of its own, in units of its usual size.
#[derive(Debug)]
pub(crate) struct OwnSmall {
    heap: PlacedSmall<'static>,
    // Dropped after the heap that manages it.
    region: Region,
}

impl OwnSmall {
    /// Creates a heap of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        let region = Region::new(bytes as usize);
        // SAFETY: the region is ours alone, and is dropped after the heap, in which nothing is leaked.
        let heap = unsafe { PlacedSmall::new(region.begin(), region.bytes()) };
        Self { heap: heap.expect("room for a unit"), region }
    }
}

// SAFETY: the heap promises the same.
unsafe impl Heap for OwnSmall {
    fn metadata_bytes(&self) -> Option<usize> {
        None
    }

    fn region(&self) -> Option<Range<usize>> {
        Some(self.region.addresses())
    }

    #[inline]
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.heap.alloc(layout)
    }

    #[inline]
    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.heap.free(at, layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.heap.resize(at, layout, size) }
    }
}
