//! Allocates metadata words on a cache-line boundary.

use std::num::NonZero;
use std::thread::available_parallelism;

use nbbs::sync::Word;
use nbbs::{Buddy, MetadataBox, lane_words, lanes_for, metadata_words};

/// Returns `len` zeroed words.
///
/// # Panics
/// There is not enough memory for them.
#[must_use]
pub fn zeroed<W: From<u64>>(len: usize) -> MetadataBox<W> {
    MetadataBox::zeroed(len).expect("memory for the metadata")
}

/// The words of an arena with a lane for each processor, as those of `MetadataBox::new`, but of any type.
pub struct ArenaWords<W> {
    units: u64,
    metadata: MetadataBox<W>,
    lanes: MetadataBox<W>,
}

impl<W: Word + From<u64>> ArenaWords<W> {
    /// Creates the words of an arena of `units` units, all of them free.
    ///
    /// # Panics
    /// There is not enough memory for them.
    pub fn new(units: u64) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let lanes = zeroed(lane_words(lanes_for(units, processors)));
        Self { units, metadata: zeroed(metadata_words(units)), lanes }
    }

    /// Returns an allocator on the arena.
    pub fn buddy(&self) -> Buddy<'_, W> {
        let buddy = Buddy::new(self.metadata.words(), self.units);
        buddy
            .and_then(|buddy| buddy.with_lanes(self.lanes.words()))
            .expect("words of the sizes that were asked for")
    }
}
