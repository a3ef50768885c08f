//! Changing what is held, by whoever holds it.

use super::{Arena, run};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

/// Gives back all but the first `units` units of the block or run at `index`, in place.
///
/// One read-modify-write where the run lies in one word and is cut between two of its slots; otherwise one or two for
/// each word that is freed, and for each level that is split for the cut. Refuses with what `nbbs_free` refuses,
/// `LENGTH`, and `CONTENDED`. Only the holder of the run may call it, as with every function that changes one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shrink(
    arena: *const Arena,
    index: u64,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shrink, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().shrink(index, units)?;
            Ok(())
        })
    }
}

/// Takes the units behind the block or run at `index`, so that it has `units` units, in place.
///
/// One read-modify-write where the run stays in one word; otherwise one or two for each word that is taken. Refuses as
/// `nbbs_shrink`, with `OUT_OF_RANGE` beyond the arena's end, and with `IN_USE` if one of these units is not free.
/// The run is then as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_grow(
    arena: *const Arena,
    index: u64,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_grow, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().grow(index, units)?;
            Ok(())
        })
    }
}

/// Splits the block or run at `index` in two: its first `units` units, and the rest. Each is freed by itself. The index
/// of the rest is written to `rest`, unless that is null.
///
/// Costs what `nbbs_shrink` does, without freeing. Refuses as `nbbs_shrink`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_split_off(
    arena: *const Arena,
    index: u64,
    units: u64,
    rest: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_split_off, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let split = arena.lane().split_off(index, units)?;
            pointer::write_if_given(rest, split);
            Ok(())
        })
    }
}

/// Splits the block or run at `index` into blocks of `2^order` units. Each is freed by itself.
///
/// One read-modify-write for each block, and one or two for each word that is split for them. Refuses as `nbbs_shrink`,
/// with `ORDER_TOO_LARGE`, and with `MISALIGNED` if no such block can begin there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_split(
    arena: *const Arena,
    index: u64,
    order: u32,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_split, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().split(index, order)?;
            Ok(())
        })
    }
}
