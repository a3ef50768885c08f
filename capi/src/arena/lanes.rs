//! Lanes of an arena's own, for more CPUs than its metadata has lanes.

use core::ffi::c_void;

use nbbs::lane_words;

use super::{Arena, Handle, derive};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

/// Returns the bytes that so many lanes take: 256 each. For static arrays there is `NBBS_LANE_BYTES`.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_lane_bytes(lanes: usize) -> usize {
    lane_words(lanes).checked_mul(8).unwrap_or(0)
}

/// How many lanes an arena of `units` units should be given for `cpus` CPUs, by `nbbs_set_lanes`: 0 where those in its
/// metadata suffice, otherwise the next power of two, but no more than one for each 1,024 units.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_lanes_for(units: u64, cpus: usize) -> usize {
    nbbs::lanes_for(units, cpus)
}

/// Gives the handle at `arena`, and copies made of it from now on, lanes in `memory`, whatever that holds, in place of
/// those in the metadata: the largest power of two of them for which its `bytes` suffice.
///
/// Metadata has 16 lanes at 2^18 units, 256 from 2^22 on, 4 from 2^12 on, and fewer below. Two CPUs that share a lane
/// claim in the same words, which costs them ten times as much. Lanes are hints: handles with other lanes, in other
/// processes too, share the arena as before.
///
/// `memory` is on an 8-byte boundary, better on one of 64. It is the arena's until the last handle with these lanes is
/// done with it. For a handle that nobody else is using yet. Refuses with `NULL`, `POINTER_MISALIGNED`, `NO_ARENA`,
/// `TOO_SHORT`, `SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_set_lanes(
    arena: *mut Arena,
    memory: *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_set_lanes, error);
    let given = |handle: Handle| {
        // SAFETY: the caller's promise about pointers.
        let words = unsafe { pointer::words(memory, bytes, lane_words(1), 2) }?;
        Ok(Handle { caches: handle.caches.with_lanes(words)?, ..handle })
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { derive(arena, (arena, 1), error, given) }
}
