//! The heaps that can be measured.

use std::alloc::System;

use super::chunks::Chunks;
#[cfg(feature = "suite")]
use super::crates::{Buddy, BuddySystem, Galloc, LinkedList, Rusty, Talck, Tlsf};
use super::global::Global;
use super::locked::Locked;
use super::own::{Own, OwnSmall};
use crate::market::contender::{Build, Contender, WithHeap};

/// The least bytes of a heap: every one has room for its bookkeeping and a block.
const MIN_BYTES: u64 = 4096;

/// The most bytes of a heap.
const MAX_BYTES: u64 = 1 << 33;

/// Describes a heap over a region, behind a spin lock unless its description says that it needs none.
const fn locked(name: &'static str, source: &'static str, build: WithHeap) -> Contender {
    Contender {
        name,
        source,
        safe: true,
        private_caches: false,
        min_units: MIN_BYTES,
        max_units: MAX_BYTES,
        build: Build::Heap(build),
        counted: None,
    }
}

/// Describes a heap that gets its memory itself; all of these keep some for each thread.
const fn global(name: &'static str, source: &'static str, build: WithHeap) -> Contender {
    Contender { private_caches: true, max_units: u64::MAX, ..locked(name, source, build) }
}

/// Heaps: memory by size and alignment.
pub static HEAPS: &[Contender] = &[
    Contender {
        private_caches: true,
        // Its first unit of 1 KiB lies behind four with its bookkeeping.
        min_units: 5 << 10,
        ..locked(
            "nbbs-heap",
            "this project's heap: slabs of bits over the buddy allocator; PRIVATE CACHES",
            |bytes, visit| Own::lend(bytes, |own| visit(own)),
        )
    },
    locked(
        "nbbs-heap-small",
        "this project's heap for little memory: runs of units of 32 bytes, first fit",
        |bytes, visit| visit(&OwnSmall::new(bytes)),
    ),
    locked(
        "chunk",
        "P. Schuster's simple_chunk_allocator, 2022: a bitmap of 256-byte chunks, next fit with best fit, a spin lock",
        |bytes, visit| visit(&Locked::<Chunks<256>>::new(bytes)),
    ),
    locked("chunk-128", "the same with 128-byte chunks", |bytes, visit| {
        visit(&Locked::<Chunks<128>>::new(bytes))
    }),
    locked("chunk-512", "the same with 512-byte chunks", |bytes, visit| {
        visit(&Locked::<Chunks<512>>::new(bytes))
    }),
    #[cfg(feature = "suite")]
    locked(
        "linked-list",
        "crate linked_list_allocator: a free list by address, first fit, a spin lock",
        |bytes, visit| visit(&Locked::<LinkedList>::new(bytes)),
    ),
    #[cfg(feature = "suite")]
    locked(
        "galloc",
        "crate good_memory_allocator: bins by size and alignment, a spin lock",
        |bytes, visit| visit(&Locked::<Galloc>::new(bytes)),
    ),
    #[cfg(feature = "suite")]
    locked("talc", "crate talc: bins by size, boundary tags, a spin lock", |bytes, visit| {
        visit(&Locked::<Talck>::new(bytes))
    }),
    #[cfg(feature = "suite")]
    locked("rlsf", "crate rlsf: two-level segregated fit, a spin lock", |bytes, visit| {
        visit(&Locked::<Tlsf>::new(bytes))
    }),
    #[cfg(feature = "suite")]
    locked(
        "buddy-system",
        "crate buddy_system_allocator: a list per power of two, a spin lock",
        |bytes, visit| visit(&Locked::<BuddySystem>::new(bytes)),
    ),
    #[cfg(feature = "suite")]
    locked(
        "buddy-alloc",
        "crate buddy-alloc: lists and bits per order, leaves of 128 bytes, a spin lock",
        |bytes, visit| visit(&Locked::<Buddy>::new(bytes)),
    ),
    #[cfg(feature = "suite")]
    global(
        "rusty-alloc",
        "crate rusty_alloc: mimalloc's design in Rust; PRIVATE CACHES",
        |_, visit| visit(&Global(Rusty)),
    ),
    global("system", "malloc of the C library; PRIVATE CACHES", |_, visit| visit(&Global(System))),
    #[cfg(feature = "native")]
    global("mimalloc", "crate mimalloc; PRIVATE CACHES", |_, visit| {
        visit(&Global(mimalloc::MiMalloc))
    }),
    #[cfg(feature = "native")]
    global("snmalloc", "crate snmalloc-rs; PRIVATE CACHES", |_, visit| {
        visit(&Global(snmalloc_rs::SnMalloc))
    }),
    #[cfg(feature = "native")]
    global("jemalloc", "crate tikv-jemallocator; PRIVATE CACHES", |_, visit| {
        visit(&Global(tikv_jemallocator::Jemalloc))
    }),
];
