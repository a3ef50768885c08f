//! Blocks and runs of units.

use nbbs::Request as Wanted;

use super::{Arena, run};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

/// What is asked for, when it is more than a block of some order anywhere. All zero but `units`: exactly so many
/// units anywhere.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Exactly so many units.
    pub units: u64,
    /// The first unit of the place to look in.
    pub start: u64,
    /// The unit after the last of that place; 0: the arena's end.
    pub end: u64,
    /// The index of the first unit, plus `offset`, must be a multiple of `2^order`.
    pub order: u32,
    /// Whether to take the last place that will do, instead of the first.
    pub top_down: bool,
    /// The index that unit 0 stands for. An order above the arena's largest aligns one unit at most, and is refused if it
    /// aligns none at which so many units begin: if `offset` is 0, always.
    pub offset: u64,
}

/// Allocates a block of `2^order` units, aligned to its size, and writes its first unit to `index`.
///
/// One read-modify-write in the steady state. Refuses with `ORDER_TOO_LARGE`, or `EXHAUSTED`: at one instant of the
/// call, no block of that order was free, save for those in the hands of a call that had not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc(
    arena: *const Arena,
    order: u32,
    index: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(index, 3)?;
            place.write(match arena.cpu() {
                None => arena.lane().alloc(order)?,
                Some(cpu) => arena.caches.alloc(cpu, order)?,
            });
            Ok(())
        })
    }
}

/// Allocates exactly `units` units side by side, no unit more, and writes the first to `index`. A power of two of
/// them is a block, aligned to its size, as long as there is one.
///
/// One read-modify-write for up to 31 units, if a leaf word has room for them; for more, one for each word of 32 units,
/// or of larger slots, that is claimed. Refuses with `LENGTH`, `EXHAUSTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc_units(
    arena: *const Arena,
    units: u64,
    index: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc_units, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(index, 3)?;
            place.write(arena.lane().alloc_units(units)?);
            Ok(())
        })
    }
}

/// Allocates units `index` to `index + units - 1`, if all are free.
///
/// Costs what `nbbs_alloc_units` does, without a search. Refuses with `LENGTH`, `OUT_OF_RANGE`, `IN_USE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc_at(
    arena: *const Arena,
    index: u64,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc_at, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.lane().alloc_at(index, units)?;
            Ok(())
        })
    }
}

/// Allocates what `request` describes, at the first place that will do, or the last, and writes its first unit to
/// `index`. Without a range, and not from the top, any place may do.
///
/// Costs what `nbbs_alloc_units` does, and a search from that end of the range. Refuses with `LENGTH`,
/// `ORDER_TOO_LARGE`, `OUT_OF_RANGE`, `NO_PLACE` if the range has no place for so many units whatever is free,
/// `EXHAUSTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc_request(
    arena: *const Arena,
    request: *const Request,
    index: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc_request, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let request = pointer::checked(request, 2)?;
            let place = pointer::checked(index, 3)?;
            // Field by field: in C, `top_down` may hold any byte.
            let request = request.as_ptr();
            let (units, order) = ((*request).units, (*request).order);
            let (start, end) = ((*request).start, (*request).end);
            let top_down = (&raw const (*request).top_down).cast::<u8>().read() != 0;
            let mut wanted = Wanted::units(units).aligned(order);
            if (*request).offset != 0 {
                wanted = wanted.offset((*request).offset);
            }
            if (start, end) != (0, 0) {
                wanted = wanted.within(start..if end == 0 { arena.buddy().units() } else { end });
            }
            let wanted = if top_down { wanted.top_down() } else { wanted };
            place.write(arena.lane().request(wanted)?);
            Ok(())
        })
    }
}

/// Allocates blocks of `2^order` units into `blocks`, up to `count` of them, and writes how many to `got`: fewer only
/// if no further block is free.
///
/// One read-modify-write for each word that has room, up to 32 blocks. Refuses as `nbbs_alloc`, if there is not one
/// block; `got` is 0 then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc_batch(
    arena: *const Arena,
    order: u32,
    blocks: *mut u64,
    count: usize,
    got: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc_batch, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let got = pointer::checked(got, 5)?;
            got.write(0);
            let blocks = pointer::array_mut(blocks, count, 3)?;
            got.write(arena.lane().alloc_batch(order, blocks)?);
            Ok(())
        })
    }
}
