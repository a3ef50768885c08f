//! Free blocks of a CPU's or thread's own, in front of a buddy allocator.
//!
//! ```text
//! owned     a cache as a value, for one owner
//! cpus      one for each CPU, in borrowed words: safe where an interrupt handler comes in between
//! frees     what a CPU frees into it
//! threads   one for each thread, with nothing to do for the user (with `std`)
//! turn      whose turn it is in a CPU's cache, and how it is given back
//! front     what goes to and fro between a cache and the buddy allocator
//! stacks    the blocks in a cache, in plain words     caps    how many there may be
//! audit     what is cached, and whether it is in order
//! ```
//!
//! To the buddy allocator a cached block is an allocated one: nothing in its protocol knows of caches. A hit takes no
//! read-modify-write.

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
