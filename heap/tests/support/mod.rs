//! Blocks filled with patterns of their own, programs of requests, and the check that a heap is whole.
#![allow(dead_code, reason = "no test needs all of it")]

pub mod programs;
pub mod subjects;

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use nbbs_heap::{Cpu, Heap, Placed};

/// Memory that blocks come from.
pub trait Memory: Copy {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>>;
    /// # Safety
    /// As [`GlobalAlloc::dealloc`].
    unsafe fn free(self, at: NonNull<u8>, layout: Layout);
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>>;
    /// Returns whether a byte may be part of a block.
    fn contains(self, at: *const u8) -> bool;
}

impl<const B: usize, const N: usize, C: Cpu> Memory for &'static Heap<B, N, C> {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        Heap::alloc(self, layout)
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Heap::free(self, at, layout) };
    }

    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { Heap::resize(self, at, layout, size) }
    }

    fn contains(self, at: *const u8) -> bool {
        Heap::contains(self, at)
    }
}

/// A heap, used as the global allocator is.
pub struct Global<A: 'static>(pub &'static A);

impl<A> Clone for Global<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Global<A> {}

impl<A: GlobalAlloc> Memory for Global<A> {
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: tests ask for at least one byte.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(at.as_ptr(), layout) };
    }

    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        NonNull::new(unsafe { self.0.realloc(at.as_ptr(), layout, size) })
    }

    fn contains(self, _at: *const u8) -> bool {
        true
    }
}

/// After so many bytes the pattern of a block repeats.
const PERIOD: usize = 2048;

/// A held block, filled with a pattern that identifies it.
#[derive(Debug)]
pub struct Block {
    pub at: NonNull<u8>,
    pub layout: Layout,
    seed: u64,
}

// SAFETY: the owner of this value holds the block.
unsafe impl Send for Block {}

/// Returns memory that is never freed, and is not zero.
pub fn memory(bytes: usize) -> NonNull<u8> {
    NonNull::from(Box::leak(vec![0xa5_u8; bytes].into_boxed_slice())).cast()
}

/// Returns a heap in such memory, with so many caches, that hands out so many bytes.
pub fn placed(caches: usize, bytes: usize) -> &'static Placed {
    let all = Placed::bytes_for(caches, bytes).unwrap();
    // SAFETY: the memory is leaked.
    unsafe { Placed::new(memory(all), all, caches) }.unwrap()
}

/// Whether a slot is known to be in use when it is freed.
pub const WATCHED: bool = cfg!(any(feature = "poison", feature = "asan", feature = "valgrind"));

pub fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

impl Block {
    pub fn alloc(heap: impl Memory, layout: Layout, seed: u64) -> Option<Self> {
        heap.alloc(layout).map(|at| Self::new(heap, at, layout, seed))
    }

    /// Fills what was allocated, and checks where it is.
    pub fn new(heap: impl Memory, at: NonNull<u8>, layout: Layout, seed: u64) -> Self {
        assert_eq!(at.addr().get() % layout.align(), 0, "{layout:?}: handed out, not aligned");
        assert!(heap.contains(at.as_ptr()));
        // SAFETY: the block is ours.
        assert!(heap.contains(unsafe { at.add(layout.size().saturating_sub(1)) }.as_ptr()));
        let block = Self { at, layout, seed };
        block.fill(0);
        block
    }

    /// What is in a block, again and again; of less than one period as much as the block has.
    fn pattern(&self) -> [u8; PERIOD] {
        let mut pattern = [0; PERIOD];
        let words = pattern.as_chunks_mut().0.iter_mut().zip(0..=u8::MAX);
        for (word, number) in words.take(self.layout.size().div_ceil(8)) {
            *word = (self.seed ^ u64::from_ne_bytes([number; 8])).to_le_bytes();
        }
        pattern
    }

    /// The block from there on, cut where the pattern begins anew: where each piece begins, and what has to be there.
    fn pieces<'p>(
        &self,
        from: usize,
        pattern: &'p [u8; PERIOD],
    ) -> impl Iterator<Item = (NonNull<u8>, &'p [u8])> + use<'p> {
        let (at, size) = (self.at, self.layout.size());
        (from / PERIOD..size.div_ceil(PERIOD)).map(move |number| {
            let (begin, end) = (from.max(number * PERIOD), size.min((number + 1) * PERIOD));
            // SAFETY: the block has this many bytes.
            (unsafe { at.add(begin) }, &pattern[begin % PERIOD..][..end - begin])
        })
    }

    fn fill(&self, from: usize) {
        for (at, bytes) in self.pieces(from, &self.pattern()) {
            // SAFETY: the piece has this many bytes, and is ours.
            unsafe { at.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
    }

    pub fn check(&self) {
        for (at, bytes) in self.pieces(0, &self.pattern()) {
            // SAFETY: as above, and it was filled.
            let found = unsafe { NonNull::slice_from_raw_parts(at, bytes.len()).as_ref() };
            if found != bytes {
                let differs = found.iter().zip(bytes).position(|(found, byte)| found != byte);
                panic!("{self:?}, byte {differs:?} behind {at:?}: changed, or handed out twice");
            }
        }
    }

    /// Resizes the block. Returns whether it has that size now.
    pub fn resize(&mut self, heap: impl Memory, size: usize) -> bool {
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

    pub fn free(self, heap: impl Memory) {
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
    let used: Vec<_> = stats.classes().iter().filter(|class| class.slabs > 0).collect();
    let (free, bytes, runs) = (stats.free, stats.bytes, stats.runs);
    assert_eq!(free, bytes, "not whole: {runs} bytes of runs, and {used:?}");
}
