//! Blocks that free themselves.

use core::fmt;
use core::ops::Range;

use super::Lane;
use crate::error::{FreeError, RequestError, ResizeError};
use crate::request::Request;
use crate::sync::{AtomicU64, Word};

/// A block or run that is freed when dropped, on the lane on which it was allocated.
///
/// It is three words. It does not store its length, which is read from the arena. A process made by `fork` that shares
/// the arena with its parent must not drop its copy of it.
///
/// ```
/// use nbbs::{Block, Buddy, Metadata, Request};
///
/// let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
/// let buddy = Buddy::new(metadata.words(), 64)?;
/// {
///     let mut block = Block::new(buddy.here(), Request::units(20))?;
///     let tail = block.split_off(12)?;
///     assert_eq!((block.units(), tail.units()), (0..12, 12..20));
/// }
/// assert_eq!(buddy.stats().free_units, 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the block is freed at once"]
pub struct Block<'b, W: Word = AtomicU64> {
    lane: Lane<'b, W>,
    index: u64,
}

impl<'b, W: Word> Block<'b, W> {
    /// Allocates a block or run that meets `request`.
    ///
    /// # Errors
    /// Those of [`Lane::request`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = Block::new(buddy.here(), Request::block(3))?;
    /// assert_eq!(buddy.stats().used_units, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(lane: Lane<'b, W>, request: Request) -> Result<Self, RequestError> {
        lane.request(request).map(|index| Self { lane, index })
    }

    /// Takes over the block or run at `index`, such as one that [`leak`](Self::leak) returned.
    ///
    /// If it is taken over twice, the second free is refused like any double free. Cost: as for [`units`](Self::units).
    ///
    /// # Errors
    /// Those of [`Buddy::len_of`](crate::Buddy::len_of).
    ///
    /// ```
    /// # use nbbs::Block;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let index = buddy.alloc(2)?;
    /// drop(Block::from_index(buddy.here(), index)?);
    /// assert!(Block::from_index(buddy.here(), index).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_index(lane: Lane<'b, W>, index: u64) -> Result<Self, FreeError> {
        lane.runs.run_at(index).map(|_| Self { lane, index })
    }

    /// Returns the units of the block, or an empty range if it has been freed by its index.
    ///
    /// Cost: a load for each level, and a few for each word of a run that spans words.
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(Block::new(buddy.here(), Request::units(5))?.units(), 0..5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn units(&self) -> Range<u64> {
        let len = self.lane.runs.run_at(self.index).map_or(0, |run| run.units());
        self.index..self.index + len
    }

    /// Returns the first unit, and leaves it to the caller to free the block. Cost: none.
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let index = Block::new(buddy.here(), Request::units(5))?.leak();
    /// assert_eq!(buddy.len_of(index)?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nobody else knows what is to be freed"]
    pub fn leak(self) -> u64 {
        core::mem::ManuallyDrop::new(self).index
    }

    /// Gives back all but the first `units` units.
    ///
    /// Cost: that of [`Lane::shrink`].
    ///
    /// # Errors
    /// Those of [`Lane::shrink`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy.here(), Request::block(5))?;
    /// block.shrink(9)?;
    /// assert_eq!(block.units(), 0..9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&mut self, units: u64) -> Result<(), ResizeError> {
        self.lane.shrink(self.index, units)
    }

    /// Extends the block to `units` units, in place.
    ///
    /// Cost: that of [`Lane::grow`].
    ///
    /// # Errors
    /// Those of [`Lane::grow`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy.here(), Request::units(5))?;
    /// block.grow(50)?;
    /// assert_eq!(block.units(), 0..50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&mut self, units: u64) -> Result<(), ResizeError> {
        self.lane.grow(self.index, units)
    }

    /// Splits the block after `units` units, and returns the second part.
    ///
    /// Cost: that of [`Lane::split_off`].
    ///
    /// # Errors
    /// Those of [`Lane::split_off`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy.here(), Request::units(40))?;
    /// drop(block.split_off(10)?);
    /// assert_eq!(buddy.stats().used_units, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&mut self, units: u64) -> Result<Self, ResizeError> {
        let index = self.lane.split_off(self.index, units)?;
        Ok(Self { lane: self.lane, index })
    }
}

impl<W: Word> Drop for Block<'_, W> {
    fn drop(&mut self) {
        // Refused only if somebody has freed it by its index: then nothing is left to do.
        let _ = self.lane.free(self.index);
    }
}

// For words that cannot be printed, too: a derive asks for `W: Debug`.
impl<W: Word> fmt::Debug for Block<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, index } = self;
        f.debug_struct("Block").field("lane", lane).field("index", index).finish()
    }
}
