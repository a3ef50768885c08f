//! Blocks that free themselves.

use crate::sync::AtomicU64;
use core::ops::Range;

use crate::buddy::Buddy;
use crate::error::{FreeError, RequestError, ResizeError};
use crate::request::Request;
use crate::sync::Word;

/// A block or run that is freed when it is dropped.
///
/// ```
/// use nbbs::{Block, Buddy, Metadata, Request};
///
/// let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
/// let buddy = Buddy::new(metadata.words(), 64)?;
/// {
///     let mut block = Block::new(buddy, Request::units(20))?;
///     let tail = block.split_off(12)?;
///     assert_eq!((block.units(), tail.units()), (0..12, 12..20));
/// }
/// assert_eq!(buddy.stats().free_units, 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the block is freed at once"]
pub struct Block<'a, W: Word = AtomicU64> {
    buddy: Buddy<'a, W>,
    index: u64,
    len: u64,
}

impl<'a, W: Word> Block<'a, W> {
    /// Allocates what `request` describes.
    ///
    /// # Errors
    /// Those of [`Buddy::request`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = Block::new(buddy, Request::block(3))?;
    /// assert_eq!(buddy.stats().used_units, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(buddy: Buddy<'a, W>, request: Request) -> Result<Self, RequestError> {
        let len = request.units;
        let index = buddy.request(request)?;
        Ok(Self { buddy, index, len })
    }

    /// Takes over what is held at `index`, such as what [`leak`](Self::leak) returned. If two take it over,
    /// the second to free it is refused, as any double free.
    ///
    /// # Errors
    /// Those of [`Buddy::len_of`].
    ///
    /// ```
    /// # use nbbs::Block;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let index = buddy.alloc(2)?;
    /// drop(Block::from_index(buddy, index)?);
    /// assert!(Block::from_index(buddy, index).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_index(buddy: Buddy<'a, W>, index: u64) -> Result<Self, FreeError> {
        buddy.len_of(index).map(|len| Self { buddy, index, len })
    }

    /// The units of the block.
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(Block::new(buddy, Request::units(5))?.units(), 0..5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn units(&self) -> Range<u64> {
        self.index..self.index + self.len
    }

    /// Keeps the block from being freed, and returns its first unit.
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let index = Block::new(buddy, Request::units(5))?.leak();
    /// assert_eq!(buddy.len_of(index)?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "nobody else knows what is to be freed"]
    pub fn leak(self) -> u64 {
        core::mem::ManuallyDrop::new(self).index
    }

    /// Gives back all but the first `units` units.
    ///
    /// # Errors
    /// Those of [`Buddy::shrink`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy, Request::block(5))?;
    /// block.shrink(9)?;
    /// assert_eq!(block.units(), 0..9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&mut self, units: u64) -> Result<(), ResizeError> {
        self.buddy.shrink(self.index, units)?;
        self.len = units;
        Ok(())
    }

    /// Takes the units behind, so that there are `units`.
    ///
    /// # Errors
    /// Those of [`Buddy::grow`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy, Request::units(5))?;
    /// block.grow(50)?;
    /// assert_eq!(block.units(), 0..50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&mut self, units: u64) -> Result<(), ResizeError> {
        self.buddy.grow(self.index, units)?;
        self.len = units;
        Ok(())
    }

    /// Keeps the first `units` units, and returns the others as a block of their own.
    ///
    /// # Errors
    /// Those of [`Buddy::split_off`].
    ///
    /// ```
    /// # use nbbs::{Block, Request};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut block = Block::new(buddy, Request::units(40))?;
    /// drop(block.split_off(10)?);
    /// assert_eq!(buddy.stats().used_units, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&mut self, units: u64) -> Result<Self, ResizeError> {
        let index = self.buddy.split_off(self.index, units)?;
        let rest = Self { buddy: self.buddy, index, len: self.len - units };
        self.len = units;
        Ok(rest)
    }
}

impl<W: Word> Drop for Block<'_, W> {
    fn drop(&mut self) {
        // Refused only if somebody has freed it by its index: then there is nothing left to do.
        let _ = self.buddy.free_units(self.index, self.len);
    }
}
