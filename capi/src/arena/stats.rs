//! Looking at an arena. All but the audit may run while others use it; `nbbs_has_free` alone writes, to bounds.

use core::ffi::c_void;

use nbbs::{MAX_ORDERS, Piece as Found};

use super::{Arena, Handle, run};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

/// Orders that an arena may have: 0 to 40.
pub const ORDERS: usize = 41;
const _: () = assert!(ORDERS == MAX_ORDERS);

/// What a walk over an arena counted. The four unit counts add up to `units`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// Units in the arena.
    pub units: u64,
    /// Units that are free.
    pub free_units: u64,
    /// Units in blocks and runs in use.
    pub used_units: u64,
    /// Units that are reserved.
    pub reserved_units: u64,
    /// Units in blocks that the CPUs' caches keep.
    pub cached_units: u64,
    /// Runs in use that are no blocks.
    pub used_runs: u64,
    /// Free blocks of each order. Every unit counts once, in the largest free block that contains it.
    pub free_blocks: [u64; ORDERS],
    /// Blocks in use of each order.
    pub used_blocks: [u64; ORDERS],
    /// The largest order of which a block is free; -1: nothing is free.
    pub largest_free_order: i32,
    /// Thousandths of the free units that lie outside the largest free block.
    pub fragmentation_permille: u32,
}

/// What an audit found in order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AuditReport {
    /// Words read.
    pub words: u64,
    /// Slots that are split over an empty word: merges left for the allocation that needs them.
    pub waiting_merges: u64,
    /// Words with the mark of an inspection that never ended; the next to pass clears it.
    pub stale_marks: u64,
}

/// What a stretch of an arena is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// Free units: a power of two of them, as large as they go.
    Free,
    /// A block in use.
    Block,
    /// A run in use that is no block.
    Run,
    /// Reserved units, at most 32 at a time.
    Reserved,
}

/// A stretch of an arena, as `nbbs_walk` meets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// First unit.
    pub index: u64,
    /// Units.
    pub units: u64,
}

/// Gets a piece from `nbbs_walk`.
pub type Visit = Option<unsafe extern "C" fn(context: *mut c_void, piece: *const Piece)>;

impl From<Found> for Piece {
    fn from(found: Found) -> Self {
        let (kind, index, units) = match found {
            Found::Free { index, order } => (PieceKind::Free, index, 1 << order),
            Found::Used { index, order } => (PieceKind::Block, index, 1 << order),
            Found::Run { index, len } => (PieceKind::Run, index, len),
            Found::Reserved { index, len } => (PieceKind::Reserved, index, len),
            _ => (PieceKind::Run, 0, 0),
        };
        Self { kind, index, units }
    }
}

/// Writes the order of the block at `index` to `order`; of a run that is no block, the order of the smallest block that
/// it would fit into.
///
/// A load for each level. Refuses as `nbbs_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_order_of(
    arena: *const Arena,
    index: u64,
    order: *mut u32,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_order_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(order, 3)?;
            place.write(arena.buddy().order_of(index)?);
            Ok(())
        })
    }
}

/// Writes the number of units of the block or run at `index` to `units`.
///
/// A load for each level, and a few for each word of a run across words. Refuses as `nbbs_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_len_of(
    arena: *const Arena,
    index: u64,
    units: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_len_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(units, 3)?;
            place.write(arena.buddy().len_of(index)?);
            Ok(())
        })
    }
}

/// Returns how many units are free; 0 if the handle is of no arena. While others use the arena, each piece was so at some
/// time during the call.
///
/// A load for each word in use, of 32 units each where memory is broken up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_count_free(arena: *const Arena) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.map_or(0, |handle| handle.buddy().count_free())
}

/// The largest order of which a block may be free now, an upper bound. -1: nothing is free, or the handle is of no
/// arena.
///
/// One load. The bound may be too high, but never too low, save for frees that have not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_order_bound(arena: *const Arena) -> i32 {
    // SAFETY: the caller's promise about pointers.
    let handle = unsafe { Handle::at(arena) };
    handle.ok().and_then(|handle| handle.buddy().order_bound()).map_or(-1, |order| order as i32)
}

/// Looks whether a block of `2^order` units is free, at one instant of the call: not one in the hands of a call that
/// has not returned, nor one in a cache. False if the handle is of no arena.
///
/// Where the bound of `nbbs_order_bound` promises a block that is not there, it is lowered. Costs a load and a look at
/// up to 16 words for each level if the bounds are true, otherwise what a refused `nbbs_alloc` does. If others raise
/// the bounds again and again meanwhile, it gives up, and is true although there may be none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_has_free(arena: *const Arena, order: u32) -> bool {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.is_ok_and(|handle| handle.lane().has_free(order))
}

/// Counts the units of the arena that are free, in use and reserved, and the blocks of each order. While others use the
/// arena, each piece was so at some time during the call.
///
/// A load for each word in use, of 32 units each where memory is broken up. For the free units alone `nbbs_count_free` is ten
/// times as fast; for the largest free block `nbbs_order_bound` takes one load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_stats(
    arena: *const Arena,
    statistics: *mut Statistics,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_stats, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(statistics, 2)?;
            let stats = arena.caches.stats();
            place.write(Statistics {
                units: stats.units,
                free_units: stats.free_units,
                used_units: stats.used_units,
                reserved_units: stats.reserved_units,
                cached_units: stats.cached_units,
                used_runs: stats.used_runs,
                free_blocks: stats.free_blocks,
                used_blocks: stats.used_blocks,
                largest_free_order: stats.largest_free_order().map_or(-1, |order| order as i32),
                fragmentation_permille: stats.fragmentation_permille(),
            });
            Ok(())
        })
    }
}

/// Fills `map` with one byte for each aligned stretch of `2^order` units: 0 if all of it is free, otherwise the share
/// of it that is in use or reserved, from 1 to 255 (all). `map` has `bytes` bytes; how many were filled, the arena's
/// units divided by `2^order` and rounded up or `bytes` if that is less, goes to `filled`, unless that is null.
///
/// Costs what `nbbs_stats` does. Refuses with `ORDER_TOO_LARGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_occupancy_map(
    arena: *const Arena,
    order: u32,
    map: *mut u8,
    bytes: usize,
    filled: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_occupancy_map, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let map = pointer::array_mut(map, bytes, 3)?;
            let stretches = arena.buddy().occupancy_map(order, map)?;
            pointer::write_if_given(filled, stretches);
            Ok(())
        })
    }
}

/// Calls `visit` with every piece of the arena, in ascending order. Each piece was so at some time during the call.
/// `visit` may use the arena.
///
/// Costs what `nbbs_stats` does. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_walk(
    arena: *const Arena,
    visit: Visit,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_walk, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let visit = visit.ok_or(Error::of(Code::Null, 2, 0))?;
            arena.buddy().walk(|found| {
                let piece = Piece::from(found);
                visit(context, &raw const piece);
            });
            Ok(())
        })
    }
}

/// Checks every invariant of the metadata. `report` may be null.
///
/// Up to four loads a word. Refuses with `BROKEN`, which `nbbs_message` turns into the name of the invariant and the
/// place. Only while no other call is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_audit(
    arena: *const Arena,
    report: *mut AuditReport,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_audit, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let audit = arena.buddy().audit()?;
            let (words, stale_marks) = (audit.words, audit.stale_marks);
            let waiting_merges = audit.waiting_merges;
            pointer::write_if_given(report, AuditReport { words, waiting_merges, stale_marks });
            Ok(())
        })
    }
}
