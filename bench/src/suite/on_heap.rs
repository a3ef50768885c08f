//! Adapts heaps to the workloads.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, with_exposed_provenance_mut};

use testkit::BackEnd;

use super::worker::Setting;
use crate::clock::Clock;
use crate::market::Heap;
use crate::trace::HeapTrace;

/// A heap that names blocks by their addresses, as numbers, which can be passed through tables and atomics.
#[derive(Clone, Copy)]
pub struct ByAddress<'h>(&'h dyn Heap);

#[allow(unsafe_code)]
impl<'h> ByAddress<'h> {
    /// Wraps a heap.
    ///
    /// # Safety
    /// A caller that frees, resizes or rewrites a block got it from this heap, with that layout, and holds it.
    pub unsafe fn new(heap: &'h dyn Heap) -> Self {
        Self(heap)
    }

    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<u64> {
        self.0.alloc(layout).map(exposed)
    }

    #[inline]
    pub fn free(&self, at: u64, layout: Layout) {
        // SAFETY: the creator of this value promised that the caller holds the block.
        unsafe { self.0.free(pointer(at), layout) };
    }

    #[inline]
    pub fn resize(&self, at: u64, layout: Layout, size: usize) -> Option<u64> {
        // SAFETY: the creator of this value promised that the caller holds the block.
        unsafe { self.0.resize(pointer(at), layout, size) }.map(exposed)
    }

    /// Writes to every byte of a block, `times` times, what it holds: an owner map may have filled the block.
    #[inline]
    pub fn rewrite(&self, at: u64, layout: Layout, times: usize) {
        for _ in 0..times {
            for byte in 0..layout.size() {
                // SAFETY: the creator of this value promised that the caller holds the block, which has this byte. It
                // need not have been written to yet.
                unsafe {
                    let byte = pointer(at).cast::<MaybeUninit<u8>>().add(byte);
                    byte.write_volatile(byte.read_volatile());
                }
            }
        }
    }
}

fn exposed(at: NonNull<u8>) -> u64 {
    at.as_ptr().expose_provenance() as u64
}

fn pointer(at: u64) -> NonNull<u8> {
    NonNull::new(with_exposed_provenance_mut(at as usize)).expect("no block is at address 0")
}

/// The bytes of the smallest block, which the paper calls a unit.
pub const UNIT: u64 = 8;

/// The largest order: 1 MiB, beyond what heaps serve from slots or bins.
pub const MAX_ORDER: u32 = 17;

/// The most blocks that a thread of those workloads holds.
pub const MOST_HELD: usize = 10_000;

/// A heap as a back-end, for workloads that know blocks by order. A block has `8 << order` bytes and is named by its
/// address.
struct Sizes<'h> {
    heap: ByAddress<'h>,
    bytes: u64,
}

/// Calls `visit` with the heap as a back-end.
pub fn with_sizes<R>(heap: &dyn Heap, bytes: u64, visit: impl FnOnce(&dyn BackEnd) -> R) -> R {
    #[allow(unsafe_code)]
    // SAFETY: the workloads free blocks that they hold, and hold what they were given.
    let heap = unsafe { ByAddress::new(heap) };
    visit(&Sizes { heap, bytes })
}

fn layout(order: u32) -> Layout {
    Layout::from_size_align((UNIT << order) as usize, UNIT as usize).expect("a small size")
}

impl BackEnd for Sizes<'_> {
    fn units(&self) -> u64 {
        self.bytes / UNIT
    }

    fn max_order(&self) -> u32 {
        MAX_ORDER
    }

    fn metadata_bytes(&self) -> usize {
        self.heap.0.metadata_bytes().unwrap_or(0)
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        self.heap.alloc(layout(order))
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.heap.free(index, layout(order));
        Ok(())
    }
}

/// A round of a workload that only runs on heaps.
pub struct HeapRound<'a> {
    pub heap: ByAddress<'a>,
    /// The bytes of the heap, or those that a heap that gets its memory itself may use.
    pub bytes: u64,
    pub setting: Setting,
    pub clock: &'a Clock,
    pub trace: Option<&'a HeapTrace>,
}

impl HeapRound<'_> {
    /// Returns the bytes of a block, if the workload has blocks of one size.
    pub fn block_bytes(&self) -> usize {
        layout(self.setting.order).size()
    }

    /// Returns the layout of the allocation at a place of the trace.
    pub fn layout(&self, place: u32) -> Layout {
        self.trace.expect("a replay has a trace").places[place as usize]
    }
}
