//! The operations of a back-end, from one lane.

use crate::sync::AtomicU64;
use core::ops::Range;

use super::Buddy;
use crate::error::{AllocError, BatchError, FreeError, RequestError, ResizeError};
use crate::request::Request;
use crate::sync::Word;

/// A [`Buddy`] as seen from one lane: see [`Buddy::on`].
#[derive(Debug)]
pub struct Lane<'a, W = AtomicU64> {
    pub(super) buddy: Buddy<'a, W>,
    pub(super) lane: usize,
}

impl<W> Clone for Lane<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Lane<'_, W> {}

impl<W: Word> Lane<'_, W> {
    /// [`Buddy::alloc`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// assert_eq!(block % 8, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        self.buddy.alloc_on(self.lane, order)
    }

    /// [`Buddy::free`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::free`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// assert_eq!(cpu.free(block)?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, index: u64) -> Result<u32, FreeError> {
        self.buddy.free_on(self.lane, index)
    }

    /// [`Buddy::free_sized`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::free_sized`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// cpu.free_sized(block, 3)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.buddy.free_sized_on(self.lane, index, order)
    }

    /// [`Buddy::alloc_units`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc_units`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(11)?;
    /// assert_eq!(buddy.len_of(run)?, 11);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_units(&self, units: u64) -> Result<u64, RequestError> {
        self.buddy.alloc_units_on(self.lane, units)
    }

    /// [`Buddy::alloc_at`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc_at`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// assert_eq!(cpu.alloc_at(20, 11)?, 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at(&self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.buddy.alloc_at_on(self.lane, index, units)
    }

    /// [`Buddy::request`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::request`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// assert_eq!(cpu.request(nbbs::Request::units(4).top_down())?, 60);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request(&self, request: Request) -> Result<u64, RequestError> {
        self.buddy.request_on(self.lane, request)
    }

    /// [`Buddy::free_units`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::free_units`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(11)?;
    /// cpu.free_units(run, 11)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_units(&self, index: u64, units: u64) -> Result<(), FreeError> {
        self.buddy.free_units_on(self.lane, index, units)
    }

    /// [`Buddy::alloc_batch`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc_batch`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let mut blocks = [0; 8];
    /// assert_eq!(cpu.alloc_batch(0, &mut blocks)?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_batch(&self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        self.buddy.alloc_batch_on(self.lane, order, blocks)
    }

    /// [`Buddy::free_batch`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::free_batch`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let blocks = [cpu.alloc(0)?, cpu.alloc(0)?];
    /// cpu.free_batch(0, &blocks)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_batch(&self, order: u32, blocks: &[u64]) -> Result<(), BatchError> {
        self.buddy.free_batch_on(self.lane, order, blocks)
    }

    /// [`Buddy::shrink`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::shrink`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(11)?;
    /// cpu.shrink(run, 5)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.buddy.shrink_on(self.lane, index, units)
    }

    /// [`Buddy::grow`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::grow`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(11)?;
    /// cpu.grow(run, 20)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.buddy.grow_on(self.lane, index, units)
    }

    /// [`Buddy::split_off`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::split_off`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(11)?;
    /// assert_eq!(cpu.split_off(run, 4)?, run + 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&self, index: u64, units: u64) -> Result<u64, ResizeError> {
        self.buddy.split_off_on(self.lane, index, units)
    }

    /// [`Buddy::split`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::split`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(2)?;
    /// cpu.split(block, 0)?;
    /// cpu.free(block + 3)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split(&self, index: u64, order: u32) -> Result<(), ResizeError> {
        self.buddy.split_on(self.lane, index, order)
    }

    /// [`Buddy::free_part`] from this lane.
    ///
    /// # Errors
    /// Those of [`Buddy::free_part`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// cpu.free_part(block, block + 4..block + 8)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_part(&self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        self.buddy.free_part_on(self.lane, index, part)
    }
}
