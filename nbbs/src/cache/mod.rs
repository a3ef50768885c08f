//! Caches: free blocks for one CPU or thread, in front of a buddy allocator.
//!
//! ```text
//! owned     a cache as a value, for one owner
//! cpus      a cache for each CPU, in borrowed words: safe where an interrupt handler comes in between
//! frees     frees into a CPU's cache
//! threads   a cache for each thread, made and drained automatically (with `std`)
//! turn      which operation may use a CPU's cache, and how the cache is drained
//! front     refills, drains and checks, between a cache and the buddy allocator
//! stacks    the blocks in a cache, in plain words     caps    how many there may be
//! look      what is cached, statistics, the audit
//! ```
//!
//! To the buddy allocator a cached block is an allocated one: its protocol knows nothing of caches. A hit takes no
//! read-modify-write.

mod caps;
mod cpus;
mod frees;
mod front;
mod look;
mod owned;
mod stacks;
#[cfg(feature = "std")]
mod threads;
mod turn;

pub use caps::Caps;
pub use cpus::{Caches, cache_words};
pub use look::Cached;
pub use owned::Cache;
#[cfg(feature = "std")]
pub use threads::ThreadCaches;
