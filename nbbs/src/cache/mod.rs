//! Free blocks of a CPU's or thread's own, in front of a back-end.
//!
//! ```text
//! owned     a cache as a value, for whoever has one to himself
//! cpus      one for each CPU, in borrowed words: safe where an interrupt handler comes in between
//! frees     what a CPU frees into it
//! threads   one for each thread, with nothing to do for the user (with `std`)
//! turn      whose turn it is in a CPU's cache, and how it is given back
//! front     what goes to and fro between a cache and the back-end
//! stacks    the blocks in a cache, in plain words     caps    how many there may be
//! audit     what is cached, and whether it is in order
//! ```
//!
//! A cached block is an allocated one to the back-end: nothing in its protocol knows of caches. No access on the way of a
//! hit is a read-modify-write.

mod audit;
mod caps;
mod cpus;
mod frees;
mod front;
mod owned;
mod stacks;
#[cfg(feature = "std")]
mod threads;
mod turn;

pub use audit::Cached;
pub use caps::Caps;
pub use cpus::{Caches, cache_words};
pub use owned::Cache;
#[cfg(feature = "std")]
pub use threads::ThreadCaches;
