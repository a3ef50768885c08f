//! Looking at a heap (all but the audit while others use it), and giving memory back.

use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::ptr::NonNull;

use nbbs_heap::{ClassStats, LiveBlock, Placed, Stats};

use super::Heap;
use crate::error::{Code, Cut, Error};
use crate::function::told;
use crate::handle::{ask, run};
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
    /// Blocks that have no size class, and those for which there was no room in a slab, in use or kept by a cache; also
    /// units that somebody is claiming for such a block, or freeing.
    pub runs: usize,
    /// Slots that are in use, or kept by a cache, and what is left of slabs behind their last slots.
    pub slots: usize,
    /// Slots of slabs that are free.
    pub free_slots: usize,
    /// The most bytes that are free in one piece whose size is a power of two.
    pub largest_free: usize,
    /// Frees that were refused.
    pub refused: usize,
    /// Slots that were found written to while they were free, before they were to be handed out, which they never are
    /// again. 0 unless the library was built with the check `poison`. Once no slot of a slab is in use and its memory
    /// is given back, what was written there goes unnoticed.
    pub damaged: usize,
    /// The slots of each size class.
    pub classes: [HeapClass; HEAP_CLASSES],
}

impl From<ClassStats> for HeapClass {
    fn from(class: ClassStats) -> Self {
        let ClassStats { size, used, free, slabs, .. } = class;
        Self { size, used, free, slabs }
    }
}

impl HeapStatistics {
    fn of(heap: &Placed) -> Self {
        let (stats, damaged) = (heap.stats(), heap.damaged());
        let Stats { bytes, free, runs, slots, free_slots, largest_free, refused, .. } = stats;
        let classes = core::array::from_fn(|class| HeapClass::from(stats.classes()[class]));
        Self { bytes, free, runs, slots, free_slots, largest_free, refused, damaged, classes }
    }
}

/// Writes what the memory is used for to `statistics`. While others use the heap, each part was so at some moment of
/// the call.
///
/// Reads all of the bookkeeping.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_stats(
    heap: *const Heap,
    statistics: *mut HeapStatistics,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_stats, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(statistics, 2)?;
            place.write(HeapStatistics::of(heap.placed));
            Ok(())
        })
    }
}

/// A block of a heap that is in use, or that a cache keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeapBlock {
    /// Where it begins.
    pub address: *mut c_void,
    /// How many bytes it has.
    pub size: usize,
    /// The number of its size class in `nbbs_heap_statistics`; `NBBS_HEAP_CLASSES`: it has none.
    pub size_class: usize,
}

impl From<LiveBlock> for HeapBlock {
    fn from(live: LiveBlock) -> Self {
        let size_class = live.class.unwrap_or(HEAP_CLASSES);
        Self { address: live.at.as_ptr().cast(), size: live.size, size_class }
    }
}

/// Gets a block from `nbbs_heap_walk`.
pub type VisitBlock = Option<unsafe extern "C" fn(context: *mut c_void, block: *const HeapBlock)>;

/// Takes back free pages, as `nbbs_heap_discard` says.
pub type Discard =
    Option<unsafe extern "C" fn(context: *mut c_void, pages: *mut c_void, bytes: usize) -> bool>;

/// Calls `visit` with every block that is in use, in no order. Those that a cache keeps are shown, too:
/// `nbbs_heap_trim` empties the CPU's. `visit` may free the block.
///
/// Reads all of the bookkeeping. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_walk(
    heap: *const Heap,
    visit: VisitBlock,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_walk, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let visit = visit.ok_or(Error::of(Code::Null, 2, 0))?;
            heap.placed.walk(|live| visit(context, &live.into()));
            Ok(())
        })
    }
}

/// Writes what is in use by size as a file of DHAT, which Valgrind's `dh_view.html` opens, cut off after `bytes - 1`
/// characters, with a 0 behind it. Returns the length of the whole text, like `snprintf`; 0 if there is no heap.
///
/// Reads all of the bookkeeping. `text` may be null if `bytes` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_profile(
    heap: *const Heap,
    text: *mut c_char,
    bytes: usize,
) -> usize {
    // SAFETY: the caller's buffer; characters have no invalid values.
    let text = unsafe { pointer::array_mut(text.cast::<u8>(), bytes, 2) }.unwrap_or(&mut []);
    let mut cut = Cut::new(text);
    // SAFETY: the caller's promise about pointers. Writing to a `Cut` never fails.
    unsafe { ask(heap, |heap| _ = write!(cut, "{}", heap.placed.profile())) };
    cut.end()
}

/// Calls `discard` with free memory that has been in use since it was last zero: whole pages of `page` bytes, a power
/// of two, and 1 MiB at most at a time. Nobody else can allocate them meanwhile. `discard` may have the operating
/// system take them back (`madvise`), as long as they can be written to later, and returns whether they are zero from
/// then on: those bytes must be zero. The function returns of how many bytes `discard` said that; 0, without a call, if
/// `page` is no power of two or more than 64 KiB, or `discard` is null.
///
/// Reads all of the bookkeeping; two read-modify-writes for each call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_discard(
    heap: *const Heap,
    page: usize,
    discard: Discard,
    context: *mut c_void,
) -> usize {
    let Some(discard) = discard else { return 0 };
    // SAFETY: the caller's promise about pointers, and about the function.
    unsafe {
        ask(heap, |heap| {
            let discard = |at: NonNull<u8>, bytes| discard(context, at.as_ptr().cast(), bytes);
            heap.here().discard(page, discard).unwrap_or(0)
        })
    }
}

/// Makes the memory of slabs of which no slot is in use available for other sizes, and returns how many bytes that is,
/// and the blocks above 32 KiB, or without a slab, that the calling CPU's cache gives back. It gives back what it keeps
/// at once; the others do when they next take slots or give some back, or are given a block above 32 KiB.
///
/// A read-modify-write or two for each slab that is looked at: all slabs of a size of which one may be empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_trim(heap: *const Heap) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(heap, |heap| heap.here().trim()) }
}

/// Checks that the bookkeeping is in order, and that no cache keeps what is not allocated, or what another keeps.
///
/// Reads all of the bookkeeping. Refuses with `BROKEN`, `HEAP_BROKEN`. Only while nobody else is using the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_audit(heap: *const Heap, error: *mut Error) -> Code {
    let error = told!(nbbs_heap_audit, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| Ok(heap.placed.audit()?)) }
}
