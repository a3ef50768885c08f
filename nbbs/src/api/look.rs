//! Queries, which write nothing. All but the audit may run while the arena is in use.

use core::ops::Range;

use super::Buddy;
use crate::error::{AllocError, Broken, FreeError, RangeError};
use crate::look::{Audit, Look, Piece, Stats};
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Returns the order of the block that begins at unit `index`, or of the smallest block that would hold the run
    /// there.
    ///
    /// Cost: a load for each level from the top down to the block; for a run also that of [`len_of`](Self::len_of).
    /// Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Lane::free`](crate::Lane::free).
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// assert_eq!(buddy.order_of(block), Ok(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn order_of(&self, index: u64) -> Result<u32, FreeError> {
        self.on(0).runs.order_of(index)
    }

    /// Returns the number of units of the block or run that begins at `index`.
    ///
    /// Cost: a load for each level from the top down, and a few for each word of a run that spans words. Callable from
    /// interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Lane::free`](crate::Lane::free).
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.here().alloc_units(37)?;
    /// assert_eq!(buddy.len_of(run), Ok(37));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len_of(&self, index: u64) -> Result<u64, FreeError> {
        self.on(0).runs.run_at(index).map(|run| run.units())
    }

    /// Returns whether every unit of `range` is free.
    ///
    /// Cost: for each word in `range`, a load for each level. While others allocate and free, the words are read one
    /// after the other, not at one instant. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], also for an empty range.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(10..12)?;
    /// assert!(buddy.is_free(0..10)?);
    /// assert!(!buddy.is_free(8..64)?);
    /// assert!(buddy.is_free(60..65).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_free(&self, range: Range<u64>) -> Result<bool, RangeError> {
        self.on(0).runs.is_free(range)
    }

    /// Calls `visit` for every piece of the arena, in ascending order, without gap or overlap.
    ///
    /// Cost: a load for every word in use, and one for each level where the last unit of a leaf word is a block. While
    /// others run, the words are read one after the other, not at one instant. A block that is in use during the whole
    /// walk, or a unit that is free during all of it, is reported exactly once and as such; anything that changes is
    /// reported as it was at some instant of the walk. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::Piece;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(12) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 12)?;
    /// buddy.alloc(2)?;
    /// let mut pieces = Vec::new();
    /// buddy.walk(|piece| pieces.push(piece));
    /// assert_eq!(pieces.len(), 2);
    /// assert!(pieces.contains(&Piece::Free { index: 0, order: 3 }));
    /// assert!(pieces.contains(&Piece::Used { index: 8, order: 2 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self, visit: impl FnMut(Piece)) {
        self.look().walk(visit);
    }

    /// Calls `visit` for every piece of free units in `range`, in ascending order. No piece is empty, and neighbouring
    /// pieces are not joined.
    ///
    /// This is for callers that tell a hypervisor or a system which memory is free. The pieces may be allocated at any
    /// moment: a caller that does more than tell must first take them by [`alloc_at`](crate::Lane::alloc_at).
    ///
    /// Cost: that of a [`walk`](Buddy::walk) of the words in which `range` lies, and a load for each word above. While
    /// others run, it sees what a walk would. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], also for an empty range.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 100)?;
    /// buddy.reserve(8..20)?;
    /// let mut free = Vec::new();
    /// buddy.walk_free(4..24, |units| free.push(units))?;
    /// assert_eq!(free, [4..8, 20..24]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk_free(
        &self,
        range: Range<u64>,
        visit: impl FnMut(Range<u64>),
    ) -> Result<(), RangeError> {
        self.on(0).runs.check_range(&range)?;
        self.look().walk_free(&range, visit);
        Ok(())
    }

    /// Counts the arena's units and blocks by a [`walk`](Buddy::walk), with its cost and consistency, from where that
    /// may be called. The unit counts always add up to the arena. For the free units alone
    /// [`count_free`](Self::count_free) is an order of magnitude faster; for the largest free block
    /// [`order_bound`](Self::order_bound) takes one load.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 100)?;
    /// buddy.reserve(90..100)?;
    /// buddy.alloc(3)?;
    /// let stats = buddy.stats();
    /// assert_eq!((stats.used_units, stats.reserved_units, stats.free_units), (8, 10, 82));
    /// assert_eq!(stats.used_blocks[3], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.look().stats()
    }

    /// Returns the number of units that are free.
    ///
    /// Cost: a load for every word in use, of 32 units each where memory is fragmented. Blocks are not counted as they
    /// come and go, since that would cost each of them a read-modify-write. A caller that needs the number more often
    /// can add up what it allocates and what [`free`](Self::free) returns. Consistency is that of a
    /// [`walk`](Buddy::walk). Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 100)?;
    /// buddy.alloc(3)?;
    /// assert_eq!(buddy.count_free(), 92);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_free(&self) -> u64 {
        self.look().count_free()
    }

    /// Returns an upper bound of the largest order of which a block may be free now, or `None` if nothing is free.
    ///
    /// Cost: always one load. The bound is true at the instant of that load. It may be too high, and is too low only by
    /// frees that have not returned. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.order_bound(), Some(6));
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub fn order_bound(&self) -> Option<u32> {
        self.look().order_bound()
    }

    /// Fills `map` with the share of units in use or reserved, one byte for each aligned stretch of `2^order` units,
    /// and returns how many bytes it filled.
    ///
    /// A byte is 0 if the whole stretch is free, otherwise from 1 to 255 (all in use). The map has as many bytes as the
    /// arena has stretches, or as `map` has room for. Cost and consistency are those of a [`walk`](Buddy::walk).
    /// Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`]; `map` has not changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(0..24)?;
    /// let mut map = [0; 4];
    /// assert_eq!(buddy.occupancy_map(4, &mut map)?, 4);
    /// assert_eq!(map, [255, 128, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn occupancy_map(&self, order: u32, map: &mut [u8]) -> Result<usize, AllocError> {
        self.look().occupancy_map(order, map)
    }

    /// Checks all metadata, and reports the first broken [`Invariant`](crate::Invariant) by name and place.
    ///
    /// Cost: up to four loads a word, and one for each level where a word begins with a part of a run. May only be
    /// called while no operation is running, as the invariants do not hold between the steps of one.
    ///
    /// # Errors
    /// The first broken invariant.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.alloc(2)?;
    /// assert_eq!(buddy.audit()?.waiting_merges, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn audit(&self) -> Result<Audit, Broken> {
        self.look().audit()
    }

    fn look(&self) -> Look<'_, W> {
        Look(&self.arena.tree)
    }
}
