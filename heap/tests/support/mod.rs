//! Blocks filled with patterns of their own, and the check that a heap is whole.
#![allow(dead_code, reason = "no test needs all of it")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use nbbs_heap::{Cpu, Heap};

/// Memory that blocks come from.
pub trait Memory {
    fn alloc(&'static self, layout: Layout) -> Option<NonNull<u8>>;
    /// # Safety
    /// As [`GlobalAlloc::dealloc`].
    unsafe fn free(&'static self, at: NonNull<u8>, layout: Layout);
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    unsafe fn resize(
        &'static self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>>;
    /// Returns whether a byte may be part of a block.
    fn contains(&'static self, at: *const u8) -> bool;
}

impl<const B: usize, const N: usize, C: Cpu> Memory for Heap<B, N, C> {
    fn alloc(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc(layout)
    }

    unsafe fn free(&'static self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.free(at, layout) };
    }

    unsafe fn resize(
        &'static self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { self.resize(at, layout, size) }
    }

    fn contains(&'static self, at: *const u8) -> bool {
        self.contains(at)
    }
}

/// A heap, used as the global allocator is.
pub struct Global<A: 'static>(pub &'static A);

impl<A: GlobalAlloc> Memory for Global<A> {
    fn alloc(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: tests ask for at least one byte.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    unsafe fn free(&'static self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(at.as_ptr(), layout) };
    }

    unsafe fn resize(
        &'static self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        NonNull::new(unsafe { self.0.realloc(at.as_ptr(), layout, size) })
    }

    fn contains(&'static self, _at: *const u8) -> bool {
        true
    }
}

/// A held block, filled with a pattern that identifies it.
#[derive(Debug)]
pub struct Block {
    pub at: NonNull<u8>,
    pub layout: Layout,
    seed: u64,
}

// SAFETY: the owner of this value holds the block.
unsafe impl Send for Block {}

pub fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

impl Block {
    pub fn alloc(heap: &'static impl Memory, layout: Layout, seed: u64) -> Option<Self> {
        let at = heap.alloc(layout)?;
        assert_eq!(at.addr().get() % layout.align(), 0, "{layout:?}: handed out, not aligned");
        assert!(heap.contains(at.as_ptr()));
        // SAFETY: the block is ours.
        assert!(heap.contains(unsafe { at.add(layout.size().saturating_sub(1)) }.as_ptr()));
        let block = Self { at, layout, seed };
        block.fill(0);
        Some(block)
    }

    fn byte(&self, at: usize) -> u8 {
        self.seed.rotate_left(at as u32 * 8) as u8 ^ (at >> 3) as u8
    }

    /// The bytes from there on; under Miri, which is slow, some of them.
    fn places(&self, from: usize) -> impl Iterator<Item = usize> + use<> {
        let step = if cfg!(miri) { 509 } else { 1 };
        (from.next_multiple_of(step)..self.layout.size()).step_by(step)
    }

    fn fill(&self, from: usize) {
        for at in self.places(from) {
            // SAFETY: the block has this many bytes, and is ours.
            unsafe { self.at.add(at).write(self.byte(at)) };
        }
    }

    pub fn check(&self) {
        for at in self.places(0) {
            // SAFETY: as above.
            let found = unsafe { self.at.add(at).read() };
            assert_eq!(found, self.byte(at), "byte {at} of {self:?}: handed out twice");
        }
    }

    /// Resizes the block. Returns whether it has that size now.
    pub fn resize(&mut self, heap: &'static impl Memory, size: usize) -> bool {
        self.check();
        // SAFETY: the block is ours.
        let Some(at) = (unsafe { heap.resize(self.at, self.layout, size) }) else {
            self.check();
            return false;
        };
        let kept = self.layout.size().min(size);
        *self = Self { at, layout: layout(kept, self.layout.align()), ..*self };
        assert_eq!(at.addr().get() % self.layout.align(), 0, "handed out, not aligned");
        self.check();
        self.layout = layout(size, self.layout.align());
        self.fill(kept);
        true
    }

    pub fn free(self, heap: &'static impl Memory) {
        self.check();
        // SAFETY: the block is ours, and we give it up.
        unsafe { heap.free(self.at, self.layout) };
    }
}

/// Checks that all of a heap is free, once the caller's cache is empty.
#[track_caller]
pub fn assert_whole<const B: usize, const N: usize, C: Cpu>(heap: &'static Heap<B, N, C>) {
    heap.trim();
    assert_eq!(heap.audit(), Ok(()));
    let stats = heap.stats();
    let used: Vec<_> = stats.classes.iter().filter(|class| class.slabs > 0).collect();
    let (free, bytes, runs) = (stats.free, stats.bytes, stats.runs);
    assert_eq!(free, bytes, "not whole: {runs} bytes of runs, and {used:?}");
}
