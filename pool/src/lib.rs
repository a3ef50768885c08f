//! A typed pool: objects of one type, allocated and freed in O(1) by any number of threads.
//!
//! [`Pool`] keeps objects of one type in chunks. Bitmaps, with one bit per slot, are the only record of which slots are
//! taken: there is no pointer in a slot and no list, and so no ABA. Objects are made and destroyed in place, outside
//! any synchronisation, and no operation waits for another thread.
//!
//! ```
//! use nbbs_pool::{Config, Pool};
//! use std::thread;
//!
//! let pool = Pool::<[u64; 6]>::with_config(Config::new().limit(10_000));
//! thread::scope(|scope| {
//!     for number in 0..4 {
//!         let pool = &pool;
//!         scope.spawn(move || {
//!             let mut local = pool.local(); // claims 64 slots at a time
//!             let item = local.alloc([number; 6]).expect("there is room");
//!             assert_eq!(item[0], number);
//!             local.free(item);
//!         });
//!     }
//! });
//! assert_eq!(pool.len(), 0);
//! ```
//!
//! # Ways to hold an object
//!
//! | | owns | freed | costs, per pair |
//! |---|---|---|---|
//! | [`Local::alloc`] | a [`PoolBox`] | [`Local::free`] | one read-modify-write for 64 objects |
//! | [`Pool::alloc_box`] | a [`PoolBox`] | when dropped, by any thread | two read-modify-writes |
//! | [`Pool::alloc`] | nobody: a pointer | [`Pool::free`], which checks it | four |
//! | [`Handles::insert`] | nobody: a number | [`Handles::remove`], which detects a stale one | three |
//!
//! # Where it may be called
//!
//! Methods that take `&self` may be called from interrupt and signal handlers, whatever these interrupt, also in the
//! middle of the same method, but for two things. A pool that has to grow calls its [`ChunkSource`], and so do
//! [`Pool::grow`], [`reserve`](Pool::reserve), [`tend`](Pool::tend) and [`shrink`](Pool::shrink): [`Global`] is the
//! program's allocator, which a handler usually may not call, so reserve enough, or let a helper grow the pool
//! ([`Config::by_helper`]). And the values' own destructors run where they are freed. A [`Local`] is its owner's alone; a
//! handler allocates from the pool. In a library that `dlopen` loads, [`Pool::alloc_on`] needs no thread-local.
//!
//! # Layers
//!
//! ```text
//! pool      alloc, free, count, grow and shrink, iterate      local    slots that one thread keeps
//! handles   generational handles                              boxed    an owned object
//! marked    slots without objects, and a byte for each
//! table     chunks by number            index    chunks by address
//! claim     claiming and releasing      chunk    bitmaps and memory of a chunk
//! source    where memory comes from     lane     hints and counts of a thread
//! config    error                       arrays   arrays in a block
//! sync      what an atomic is
//! ```
#![no_std]
#![warn(missing_debug_implementations)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

#[cfg(test)]
extern crate std;
// As the words of checkers name it, which unit tests share with those in `tests`.
#[cfg(test)]
extern crate self as nbbs_pool;

mod arrays;
mod boxed;
mod chunk;
mod claim;
mod config;
mod error;
mod handles;
mod index;
mod lane;
mod local;
mod marked;
mod pool;
mod source;
pub mod sync;
mod table;

pub use boxed::PoolBox;
pub use config::Config;
pub use error::{Exhausted, FreeError, Full, HandleError};
pub use handles::{Guard, Handle, Handles, Key, SmallHandle};
pub use local::Local;
pub use marked::Slots;
pub use pool::{Pointers, Pool, SinglePool, Stats};
#[cfg(feature = "nbbs")]
pub use source::Pages;
pub use source::{ChunkSource, FromHeap, Global, Region};

/// Runs the README's examples as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
