//! Checks that count the accesses of operations, or choose what happens between them.
//!
//! ```text
//! hits          read-modify-writes of what a cache serves     schedules     whole heaps under shuttle
//! loads         the worst operation of the others             second_frees  frees of slots that are in hand
//! steps         blocks that grow by small steps               sweeps        looks for whole slabs
//! idle          what is counted as idle
//! ```

use core::ptr::NonNull;

use crate::api::Placed;

// The documentation does not say what checks of free memory cost.
#[cfg(not(any(feature = "poison", feature = "quarantine", feature = "shuffle")))]
mod hits;
#[cfg(not(miri))]
mod idle;
#[cfg(not(any(miri, feature = "poison")))]
mod loads;
#[cfg(all(not(miri), target_pointer_width = "64"))]
mod schedules;
mod second_frees;
#[cfg(not(miri))]
mod steps;
#[cfg(not(miri))]
mod sweeps;

/// Makes a heap for one caller, in which at least so many bytes can be allocated, in memory that is leaked.
fn placed(bytes: usize) -> &'static Placed {
    let bytes = Placed::bytes_for(1, bytes).expect("such a heap");
    let memory = NonNull::from(std::vec![0_u8; bytes].leak()).cast();
    // SAFETY: the memory is leaked.
    unsafe { Placed::new(memory, bytes, 1) }.expect("room for it")
}
