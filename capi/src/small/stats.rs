//! Looking at a small heap while others use it.

use core::ffi::c_void;

use nbbs_heap::SmallStats;

use super::{Placed, Small, on};
use crate::error::{Code, Error};
use crate::function::told;
use crate::handle::run;
use crate::heap::VisitBlock;
use crate::pointer;

/// What the memory of a small heap is used for, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SmallStatistics {
    /// What the heap can hand out: its memory without the bookkeeping.
    pub bytes: usize,
    /// Units that are free.
    pub free: usize,
    /// The most bytes that are free in one piece.
    pub largest_free: usize,
    /// How many blocks are in use.
    pub blocks: usize,
}

impl From<SmallStats> for SmallStatistics {
    fn from(stats: SmallStats) -> Self {
        let SmallStats { bytes, free, largest_free, blocks, .. } = stats;
        Self { bytes, free, largest_free, blocks }
    }
}

/// Writes what the memory is used for to `statistics`. While others use the heap, each word of the bookkeeping was so at
/// some moment of the call: of a block that lies in several, a part may be counted as free.
///
/// A load for each word of the bookkeeping. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_stats(
    heap: *const Small,
    statistics: *mut SmallStatistics,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_stats, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(statistics, 2)?;
            place.write(on!(heap, heap => heap.stats()).into());
            Ok(())
        })
    }
}

/// Calls `visit` with every block that is in use, in the order of addresses; its `size_class` is `NBBS_HEAP_CLASSES`.
/// `visit` may free the block.
///
/// A block that nobody changes meanwhile is shown once, as it is; any other perhaps with a part of its bytes, or more of
/// them. A load for each word of the bookkeeping. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_walk(
    heap: *const Small,
    visit: VisitBlock,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_walk, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let visit = visit.ok_or(Error::of(Code::Null, 2, 0))?;
            on!(heap, heap => heap.walk(|live| visit(context, &live.into())));
            Ok(())
        })
    }
}
