//! A heap with an owner map beside it.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use testkit::{Addresses, Violation};

use super::Heap;

/// A heap that passes every operation on to another, and remembers the first violation: bytes handed out while held, or
/// that are not the heap's, wrong alignments, and changed contents. To notice these it fills every block, so its users
/// must not write to their blocks. At the end it also finds memory that was lost.
///
/// ```
/// use std::alloc::Layout;
/// use nbbs_bench::market::CheckedHeap;
///
/// nbbs_bench::market::find("rlsf").unwrap().with_heap(1 << 20, |heap| {
///     let checked = CheckedHeap::new(heap);
///     let layout = Layout::new::<[u64; 6]>();
///     let block = nbbs_bench::market::Heap::alloc(&checked, layout).unwrap();
///     // SAFETY: the block is ours, of this layout, and not used after this.
///     unsafe { nbbs_bench::market::Heap::free(&checked, block, layout) };
///     assert_eq!(checked.finish(), Ok(()));
/// });
/// ```
pub struct CheckedHeap<'h> {
    heap: &'h dyn Heap,
    addresses: Addresses,
    /// How many large blocks the heap granted when nothing had been allocated.
    large: usize,
    first: Mutex<Option<Violation>>,
}

impl<'h> CheckedHeap<'h> {
    /// Wraps a heap of which nothing is held.
    #[must_use]
    pub fn new(heap: &'h dyn Heap) -> Self {
        let addresses = heap.region().map_or_else(Addresses::default, Addresses::within);
        Self { heap, addresses, large: large_blocks(heap), first: Mutex::new(None) }
    }

    /// Returns the first violation so far.
    pub fn violation(&self) -> Option<Violation> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the check. Must be called when everything has been returned.
    ///
    /// # Errors
    /// The first violation so far, or bytes that are still held, or else two large blocks less than there were at first.
    pub fn finish(&self) -> Result<(), Violation> {
        self.violation().map_or(Ok(()), Err)?;
        self.addresses.check_empty()?;
        let (blocks, expected) = (large_blocks(self.heap), self.large);
        let bytes = large(self.heap).map_or(0, |layout| layout.size());
        // A search that begins where the last one ended can miss one that lies across.
        if blocks + 1 < expected {
            Err(Violation::BytesLost { bytes, blocks, expected })
        } else {
            Ok(())
        }
    }

    fn remember(&self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        }
    }

    /// Records a block, if no one else holds it, and fills it.
    fn take(&self, at: NonNull<u8>, layout: Layout) {
        let taken = self.addresses.take(at.addr().get(), layout);
        if taken.is_ok() {
            // SAFETY: the heap handed out this many bytes, and nobody else holds them.
            unsafe { at.write_bytes(pattern(at), layout.size()) };
        }
        self.remember(taken);
    }
}

/// Returns the layout of a large block: a 16th of the heap's memory, if that is limited.
fn large(heap: &dyn Heap) -> Option<Layout> {
    let bytes = heap.region()?.len() / 16;
    Layout::from_size_align(bytes, 1).ok().filter(|_| bytes > 0)
}

/// Returns how many large blocks a heap grants together, of which nothing is held. It gets them back.
fn large_blocks(heap: &dyn Heap) -> usize {
    let Some(layout) = large(heap) else { return 0 };
    heap.settle();
    let blocks: Vec<NonNull<u8>> = std::iter::from_fn(|| heap.alloc(layout)).take(16).collect();
    // SAFETY: the blocks were granted just now, with this layout, and nobody else has them.
    blocks.iter().for_each(|&at| unsafe { heap.free(at, layout) });
    blocks.len()
}

/// Returns the value that fills the bytes of a block at this address.
fn pattern(at: NonNull<u8>) -> u8 {
    (at.addr().get() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// Checks that the first `bytes` bytes at the address all have the pattern.
///
/// # Safety
/// They are held, and have been filled.
unsafe fn check_contents(at: NonNull<u8>, bytes: usize, expected: u8) -> Result<(), Violation> {
    // SAFETY: as the caller promises.
    let contents = unsafe { std::slice::from_raw_parts(at.as_ptr(), bytes) };
    let changed = contents.iter().position(|&byte| byte != expected);
    changed.map_or(Ok(()), |place| {
        let at = at.addr().get() + place;
        Err(Violation::ContentsChanged { at, expected, got: contents[place] })
    })
}

// SAFETY: the heap's promise.
unsafe impl Heap for CheckedHeap<'_> {
    fn metadata_bytes(&self) -> Option<usize> {
        self.heap.metadata_bytes()
    }

    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = self.heap.alloc(layout);
        block.inspect(|&at| self.take(at, layout))
    }

    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller holds the block. `take` filled it, or found it wrong, and that is remembered first.
        self.remember(unsafe { check_contents(at, layout.size(), pattern(at)) });
        self.remember(self.addresses.give(at.addr().get(), layout));
        // SAFETY: as the caller promises.
        unsafe { self.heap.free(at, layout) };
    }

    unsafe fn resize(&self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as in `free`.
        self.remember(unsafe { check_contents(at, layout.size(), pattern(at)) });
        self.remember(self.addresses.give(at.addr().get(), layout));
        // SAFETY: as the caller promises.
        let Some(moved) = (unsafe { self.heap.resize(at, layout, size) }) else {
            self.remember(self.addresses.take(at.addr().get(), layout));
            return None;
        };
        // SAFETY: the block holds the contents of the old one, as far as they fit.
        let kept = unsafe { check_contents(moved, layout.size().min(size), pattern(at)) };
        self.remember(kept);
        if let Ok(layout) = Layout::from_size_align(size, layout.align()) {
            self.take(moved, layout);
        }
        Some(moved)
    }
}
