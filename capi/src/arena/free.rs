//! Giving blocks and runs back, and reserving units.

use super::{Arena, run};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

/// Frees the block or run at `index`, whatever its size, and writes its number of units to `units`, unless that is
/// null.
///
/// One read-modify-write in the steady state, and the merges that it makes possible. Refuses with `OUT_OF_RANGE`,
/// `NOT_ALLOCATED` (also a double free, until the units are allocated again), `NOT_A_BLOCK`, `RESERVED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free(
    arena: *const Arena,
    index: u64,
    units: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let freed = match arena.cpu() {
                None => arena.lane().free(index)?,
                Some(cpu) => arena.caches.free(cpu, index)?,
            };
            pointer::write_if_given(units, freed);
            Ok(())
        })
    }
}

/// Frees the block of `2^order` units at `index`.
///
/// Costs what `nbbs_free` does; for blocks of 32 units or more without the load for each level by which that finds
/// them. Refuses as `nbbs_free`, and with `ORDER_TOO_LARGE`, `MISALIGNED`, `WRONG_ORDER`, and `WRONG_LENGTH` for a run
/// of other length. A wrong order may go unnoticed while another thread is allocating just there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free_sized(
    arena: *const Arena,
    index: u64,
    order: u32,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free_sized, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            match arena.cpu() {
                None => arena.lane().free_sized(index, order)?,
                Some(cpu) => arena.caches.free_sized(cpu, index, order)?,
            }
            Ok(())
        })
    }
}

/// Frees the block or run of exactly `units` units at `index`.
///
/// Costs what `nbbs_free_sized` does for a block; otherwise two read-modify-writes for the first word of the run, one
/// for each further word, and two or three for each word at any level that this empties. Refuses as `nbbs_free`, and
/// with `WRONG_LENGTH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free_units(
    arena: *const Arena,
    index: u64,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free_units, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().free_units(index, units)?;
            Ok(())
        })
    }
}

/// Frees `count` blocks of `2^order` units, and writes how many have been freed to `done`, unless that is null.
///
/// One read-modify-write for neighbours in the array that lie in one word. Refuses as `nbbs_free_sized`, at the first
/// block that cannot be freed: those before it have been, no other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free_batch(
    arena: *const Arena,
    order: u32,
    blocks: *const u64,
    count: usize,
    done: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free_batch, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            pointer::write_if_given(done, 0);
            let blocks = pointer::array(blocks, count, 3)?;
            let freed = arena.lane().free_batch(order, blocks);
            pointer::write_if_given(done, freed.map_or_else(|refused| refused.done, |()| count));
            Ok(freed?)
        })
    }
}

/// Frees units `start` to `end - 1` of the block or run at `index`. What is left before and behind them stays
/// allocated, as a run each.
///
/// Costs what two calls of `nbbs_split_off` and a free do. Refuses as `nbbs_split_off`, but with `OUTSIDE_RUN` if the
/// units are not of that run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free_part(
    arena: *const Arena,
    index: u64,
    start: u64,
    end: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free_part, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().free_part(index, start..end)?;
            Ok(())
        })
    }
}

/// Reserves units `start` to `end - 1`: they are not handed out until `nbbs_release`. All or nothing; meanwhile others
/// may see a part of it taken.
///
/// A read-modify-write for every 32 units, one for each slot above, at any level, that this splits, and for every 512
/// units two or three at each level where a bound falls. Refuses with `OUT_OF_RANGE`, `IN_USE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_reserve(
    arena: *const Arena,
    start: u64,
    end: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_reserve, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.buddy().reserve(start..end)?;
            Ok(())
        })
    }
}

/// Gives units `start` to `end - 1`, all of them reserved, to the allocator: the end of a reservation, or memory that
/// arrived later.
///
/// One read-modify-write for every 32 units, and merges. Refuses with `OUT_OF_RANGE`, `NOT_RESERVED`. The units must be
/// the caller's. Units that another thread is just then reserving, releasing, freeing or resizing, or allocating as a
/// run across words, look reserved meanwhile: a caller that names them may be refused after a part was released, or may
/// release what is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_release(
    arena: *const Arena,
    start: u64,
    end: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_release, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.buddy().release(start..end)?;
            Ok(())
        })
    }
}
