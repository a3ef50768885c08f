//! A lock-free heap over memory that it owns: one line makes it the global allocator, without initialisation and
//! without a lock.
//!
//! ```
//! #[global_allocator]
//! static HEAP: nbbs_heap::Heap<{ 64 << 20 }> = nbbs_heap::Heap::new(); // 64 MiB in .bss
//! ```
//!
//! - **No thread waits for another**, wherever that one was interrupted. An interrupt or signal handler may allocate
//!   and free in the middle of an allocation, where a heap behind a spin lock would wait for ever.
//! - **Most operations take no read-modify-write**: each thread caches slots of every size, and a few larger runs. So
//!   does each CPU, with [`Cpu`] and [`Placed`]; using its cache takes a swap, or none if operations only interrupt each
//!   other: [`Overlap::nested`], [`Placed::on_nested`].
//! - **Nothing is written into free memory**: the bookkeeping, 1.6 % of the memory, is separate from it. A program that
//!   writes past its blocks does not break the heap.
//! - **A refusal is the last resort**: before the heap reports that there is no memory, it returns slabs of which no
//!   slot is in use, whatever their class, except the few that another thread has in hand, and asks other caches to give
//!   back theirs.
//!
//! # How it works
//! The memory is an arena of the buddy allocator [`nbbs`], in units of 1 KiB. Sizes up to 32 KiB have classes: 16 bytes
//! apart up to 256 bytes, and eight for each power of two above. A slab is a block of units with up to 63 slots of one
//! class, and a word whose bits are its free slots. A cache takes all free slots of a slab by one compare-and-swap, and
//! gives back one or many of a slab by another. Anything larger is a run of exactly as many units as it takes; a cache
//! keeps a few, and hands them out again for the same number of units, or for somewhat fewer to callers that free by
//! address.
//!
//! # When a refusal comes too early
//! Memory may be refused although it is free:
//!
//! - Other caches give back what they keep only when they next take or give back slots, or are given a run. Nor can
//!   a handler that has interrupted the use of its own cache empty that.
//! - A caller that takes slots, gives some back or trims has up to four slabs in hand at a time, and if a handler
//!   interrupts it, the handler's calls have as many. Until each has finished with its own, others miss them.
//! - A thread that stops when it has freed the last slot of a slab, but has not said so yet, withholds the slab's
//!   memory from other sizes, until another slab of the same size is empty.
//! - A caller may miss slots, or empty slabs, while others trim or empty slabs of the same size again and again: it
//!   looks for slots three times, and tries 1000 times to begin a trim.
//! - A search for a run goes through the regions one after the other, and when memory is short through the parts of
//!   each. It misses a place that others free where it has been and fill where it is about to look.
//! - An allocation of a run withholds the units that it has claimed so far, even if it gives them back in the end; for
//!   ever if its thread stops.
//! - [`Heap::trim`], with `std` on Linux, and [`Heap::discard`] withhold up to 1 MiB at a time while the system takes it.
//! - A thread that ends in a handler (`pthread_exit`) which has interrupted an operation of its cache does not empty it.
//! - A thread whose first use of the heap is in the last destructors of the C library's keys does not empty its cache.
//! - After a `fork`, the child never gets back what the caches of other threads kept. A CPU's cache that another thread
//!   was using at that moment is in use for ever in the child: callers with its number bypass it.
//!
//! # Without `std`
//! Without the feature `std` there are no thread-locals. Callers name their cache through [`Cpu`], or share one cache,
//! which costs a read-modify-write; a caller that finds its cache in use bypasses it and goes to the slabs.
//!
//! # What it does not do
//! - A thread has a cache for the first heap of which it allocates or frees a slot, or frees a run of more than 32 KiB;
//!   it uses others without.
//! - Wrong frees are not all found at once: a cache does not look at the slots that it is given, except that it refuses
//!   the slot that it was given last, as long as it keeps that (with `shuffle` any that it keeps). An address that is
//!   not the heap's, or lies inside a block, is refused and counted when the cache sets it aside or gives it back
//!   ([`Heap::refused`]), and may be handed out until then, as may a slot that was freed twice. [`Heap::free`] has the
//!   list. The features `poison`, `asan` and `valgrind` look at once, but not into the caches of others. A second free
//!   of memory that has been allocated again since cannot be told from a correct one.
//!
//! # Layers
//!
//! ```text
//! api         Heap, Placed, Overlap: what users call
//! look        statistics, the audit, what is in use
//! operations  what allocates, frees and resizes, with any cache
//! cache       slots and runs of one thread or CPU, and whose turn it is to use them
//! region      a region of memory, runs of its units, and all regions of a heap
//! slabs       the protocol: which slots are free, and which slabs have some
//! small       the small form: runs of fine units, beside all of these
//! class       sizes of slots: pure arithmetic      words   atomics, or a checker's stand-in
//! error       what can be refused, and why         unwind  panics of what a heap calls end the process
//! watch       patterns and hooks that find uses of free memory
//! ```
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(clippy::multiple_unsafe_ops_per_block)]
// From Rust 1.100 on a part of it is stable.
#![cfg_attr(feature = "nightly", allow(stable_features), feature(allocator_api))]

mod api;
mod cache;
#[cfg(test)]
mod checks;
mod class;
mod error;
mod look;
mod operations;
mod region;
mod slabs;
mod small;
mod unwind;
mod watch;
mod words;

pub use api::{Cpu, Heap, On, Overlap, Placed};
pub use error::{AddError, FreeError, PageError};
pub use look::{AuditError, ClassStats, LiveBlock, Profile, Stats};
pub use region::Discarded;
pub use small::{PlacedSmall, Small, SmallStats};
