//! A lock-free buddy allocator, and what is built on it: runs of any length, per-CPU caches, and zones.
//!
//! [`Buddy`] hands out blocks of `2^order` *units* by unit index. It never touches the memory: a unit may be a page
//! frame, a stretch of GPU memory or a slot in a file. Its bookkeeping is a borrowed slice of 64-bit atomics outside
//! the memory that it manages, valid when all zero.
//!
//! ```
//! use nbbs::{Buddy, Metadata};
//!
//! const UNITS: u64 = 1 << 18; // 1 GiB in pages of 4 KiB
//! static METADATA: Metadata<{ nbbs::metadata_words(UNITS) }> = Metadata::new(); // in .bss
//!
//! let pages = Buddy::new(METADATA.words(), UNITS)?;
//! let block = pages.alloc(3)?; // 8 pages, aligned to 8 pages
//! assert_eq!(pages.order_of(block)?, 3);
//! assert_eq!(pages.free(block)?, 8); // finds the size itself
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! ```text
//! api        Buddy, Lane, Block: what users call      zones    several arenas behind one handle
//! cache      free blocks for one CPU or thread, in front of an arena
//! look       statistics, walks, the audit             mend     repairs what dead threads left behind
//! run        runs of any number of units: find, claim, cut, resize, reserve
//! block      blocks: allocate, free, search, batches
//! lane       what a lane remembers
//! tree       the protocol: claim, climb, clear, inspect; the only place where its words change
//! layout     levels, orders, slots; where the words of an arena are
//! word       the codes in one word: pure arithmetic, like layout
//! request    allocation requests                      error    what can be refused, and why
//! metadata   storage for the words                    sync     what a word is: an atomic, or a checker's stand-in
//! copy       handles are copied whatever the word is
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

#[macro_use]
mod copy;

mod api;
mod block;
mod cache;
mod error;
mod lane;
mod layout;
mod look;
mod mend;
mod metadata;
mod request;
mod run;
pub mod sync;
mod tree;
mod word;
mod zones;

#[cfg(feature = "std")]
pub use api::next_lane;
pub use api::{Block, Buddy, Lane, default_lane};
#[cfg(feature = "std")]
pub use cache::ThreadCaches;
pub use cache::{Cache, Cached, Caches, Caps, cache_words};
pub use error::{
    AllocError, BatchError, Broken, BrokenCache, FreeError, Invariant, MetadataError, RangeError,
    RequestError, ResizeError,
};
pub use layout::geometry::{MAX_ORDERS, MAX_UNITS, lane_words, lanes_for, metadata_words};
pub use layout::shape::Shape;
pub use look::{Audit, Piece, Stats};
pub use metadata::Metadata;
#[cfg(feature = "std")]
pub use metadata::MetadataBox;
pub use request::Request;
pub use zones::{Zone, ZoneError, Zones};

/// Runs the README's examples as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The same for the README of the whole repository, which the package does not contain.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeOfAll;
