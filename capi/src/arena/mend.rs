//! Repair: what a thread or process that died left behind.

use super::{Arena, run};
use crate::error::{Code, Error};
use crate::function::told;

/// Finishes what threads or processes that died in a call have left in the bookkeeping. Units that they were freeing
/// become available. A block that they were allocating becomes visible, as allocated, so that it can be freed; if a
/// larger block has been allocated over it, only by a call after that one is freed. The caller must know whose the
/// blocks are.
///
/// Of runs that they were allocating, changing or freeing across words of 32 units, what they had in hand stays in use.
/// A run whose holder died in `nbbs_grow` must not be freed: whoever is given the units behind it next might not be able
/// to free them.
///
/// A few loads for each word, and a read-modify-write or two for each that is put in order. May run while others use the
/// arena, and several times at once. Refuses only handles that were never made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_mend(arena: *const Arena, error: *mut Error) -> Code {
    let error = told!(nbbs_mend, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.buddy().mend();
            Ok(())
        })
    }
}
