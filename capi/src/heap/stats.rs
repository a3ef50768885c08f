//! Looking at a heap while others use it, and giving memory back.

use nbbs_heap::{ClassStats, Stats};

use super::{Heap, ask, run};
use crate::error::{Code, Error};
use crate::pointer;

/// Size classes of a heap.
pub const HEAP_CLASSES: usize = 72;

/// Slots of one size in a heap.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeapClass {
    /// Bytes of a slot.
    pub size: usize,
    /// Slots in use, or kept by a cache.
    pub used: usize,
    /// Slots that are free.
    pub free: usize,
    /// Slabs.
    pub slabs: usize,
}

/// What the memory of a heap is used for, in bytes. `free`, `runs`, `slots` and `free_slots` add up to `bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeapStatistics {
    /// What the heap can hand out: its memory without the bookkeeping.
    pub bytes: usize,
    /// Units of 1 KiB that are free.
    pub free: usize,
    /// Blocks that have no size class, and those for which there was no room in a slab.
    pub runs: usize,
    /// Slots that are in use, or kept by a cache, and what their slabs are too large.
    pub slots: usize,
    /// Slots of slabs that are free.
    pub free_slots: usize,
    /// The most bytes that are free in one piece whose size is a power of two.
    pub largest_free: usize,
    /// Frees that were refused.
    pub refused: usize,
    /// The same by size class.
    pub classes: [HeapClass; HEAP_CLASSES],
}

impl From<ClassStats> for HeapClass {
    fn from(class: ClassStats) -> Self {
        let ClassStats { size, used, free, slabs, .. } = class;
        Self { size, used, free, slabs }
    }
}

impl From<Stats> for HeapStatistics {
    fn from(stats: Stats) -> Self {
        let Stats { bytes, free, runs, slots, free_slots, largest_free, refused, .. } = stats;
        let classes = stats.classes.map(HeapClass::from);
        Self { bytes, free, runs, slots, free_slots, largest_free, refused, classes }
    }
}

/// Writes what the memory is used for to `statistics`, as it is at some moments while it is looked at.
///
/// Reads all of the bookkeeping.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_stats(
    heap: *const Heap,
    statistics: *mut HeapStatistics,
    error: *mut Error,
) -> Code {
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(statistics, 2)?;
            place.write(heap.placed.stats().into());
            Ok(())
        })
    }
}

/// Returns the memory of slabs of which no slot is in use, so that it may serve other sizes: how many bytes. The CPU's cache
/// gives back what it keeps at once; the others do when they next take slots or give some back.
///
/// A read-modify-write or two for each slab that is looked at: those of each size of which one may be whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_trim(heap: *const Heap) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(heap, |heap| heap.here().trim()) }
}

/// Checks that the bookkeeping is in order, and that no cache keeps what is not allocated, or what another keeps.
///
/// Reads all of the bookkeeping for each size. Refuses with `BROKEN`, `HEAP_BROKEN`. Only while nobody else is using the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_audit(heap: *const Heap, error: *mut Error) -> Code {
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| Ok(heap.placed.audit()?)) }
}
