//! The heap, which is one of the contenders, and the metadata of arenas.

use nbbs::{Buddy, Caches, Metadata, cache_words, lane_words, metadata_words};
use nbbs_heap::{Cpu, Heap};

use crate::entry::HARTS;
use crate::machine;

/// Identifies a hart by its register.
pub struct Hart;

impl Cpu for Hart {
    fn number() -> Option<usize> {
        Some(machine::hart())
    }
}

/// The heap, for the loop that measures it and for all contenders that need memory.
#[global_allocator]
static HEAP: Heap<{ 96 << 20 }, HARTS, Hart> = Heap::new();

/// The most units of an arena: 4 GiB in pages of 4 KiB.
const MAX_UNITS: u64 = 1 << 20;

static METADATA: Metadata<{ metadata_words(MAX_UNITS) }> = Metadata::new();
static LANES: Metadata<{ lane_words(HARTS) }> = Metadata::new();
static CACHES: Metadata<{ cache_words(HARTS) }> = Metadata::new();

/// Returns the arena. There is only one.
///
/// # Panics
/// If it has more than [`MAX_UNITS`] units.
pub fn arena(units: u64) -> Buddy<'static> {
    assert!(units <= MAX_UNITS, "an arena of {units} units; there is room for {MAX_UNITS}");
    Buddy::new(&METADATA.words()[..metadata_words(units)], units).expect("room for its metadata")
}

/// Returns the arena with a lane for each hart, however small it is.
pub fn arena_with_lanes(units: u64) -> Buddy<'static> {
    arena(units).with_lanes(LANES.words()).expect("room for its lanes")
}

/// Returns a cache for each hart, in front of the arena.
pub fn caches(units: u64) -> Caches<'static> {
    Caches::new(arena(units), CACHES.words())
}
