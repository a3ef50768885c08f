//! Checks that count the accesses of operations, or choose what happens between them.
//!
//! ```text
//! hits          read-modify-writes of what a cache serves     schedules     whole heaps under shuttle
//! loads         the worst operation of the others             second_frees  frees of slots that are in hand
//! steps         blocks that grow by small steps               sweeps        looks for whole slabs
//! ```

mod hits;
#[cfg(not(miri))]
mod loads;
#[cfg(all(not(miri), target_pointer_width = "64"))]
mod schedules;
mod second_frees;
#[cfg(not(miri))]
mod steps;
#[cfg(not(miri))]
mod sweeps;
