//! Changing blocks and runs that the caller holds, from one lane: shrink, grow, split, free a part.

use core::ops::Range;

use super::Lane;
use crate::error::ResizeError;
use crate::sync::Word;

impl<W: Word> Lane<'_, W> {
    /// Gives back all but the first `units` units of the block or run at `index`, in place.
    ///
    /// Cost: one read-modify-write if the run lies in one word and is cut between two of its slots; otherwise one or
    /// two for each word that is cleared, and for each level that is split for the cut. Only the holder of the run may
    /// call it. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::WrongLength`] if the run has fewer units, and
    /// [`ResizeError::Contended`] if below a slot that has to be cut there is another thread's claim, which that thread
    /// is about to undo. The run keeps its units: try again. If that thread has died, the answer does not change, but
    /// the run can be freed as a whole. After `Contended` the run may lie in smaller slots: then
    /// [`vouch_for`](crate::Buddy::vouch_for) knows no block there, and freeing it costs what a run costs.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = buddy.alloc(5)?;
    /// cpu.shrink(block, 20)?;
    /// assert_eq!(buddy.stats().free_units, 44);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.runs.shrink(index, units)
    }

    /// Extends the block or run at `index` to `units` units, in place.
    ///
    /// Either all missing units are taken or none; others may temporarily see some of them in use. Cost: one
    /// read-modify-write if the run stays in one word; otherwise one or two for each word that is claimed, and for each
    /// level that is split to write the head in a leaf word. Only the holder of the run may call it. Callable from
    /// interrupt and signal handlers.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::WrongLength`] if the run has more units,
    /// [`ResizeError::OutOfRange`] beyond the arena's end, [`ResizeError::InUse`] if a unit behind the run is in use or
    /// another thread is allocating around it at that moment, and [`ResizeError::Contended`]. The run keeps its units,
    /// and after the last two may lie in smaller slots, as after a refused [`shrink`](Self::shrink).
    ///
    /// ```
    /// # use nbbs::ResizeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_at(0, 5)?;
    /// cpu.grow(run, 40)?;
    /// assert_eq!(cpu.alloc_at(40, 1)?, 40);
    /// assert_eq!(cpu.grow(run, 41), Err(ResizeError::InUse { unit: 40 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.runs.grow(index, units)
    }

    /// Splits the block or run at `index` after `units` units, and returns the first unit of the second part.
    ///
    /// Each part is then freed, resized or split by itself. Cost: one read-modify-write if the run lies in one word and
    /// is cut between two of its slots; otherwise one or two more for each level that is split for the cut. Only the
    /// holder of the run may call it. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::WrongLength`] if the run does not have more
    /// units, and [`ResizeError::Contended`] as in [`shrink`](Self::shrink), with what is said there.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let first = buddy.alloc(5)?;
    /// let second = cpu.split_off(first, 12)?;
    /// assert_eq!((buddy.len_of(first), buddy.len_of(second)), (Ok(12), Ok(20)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&self, index: u64, units: u64) -> Result<u64, ResizeError> {
        self.runs.split_off(index, units)
    }

    /// Splits the block or run at `index` into blocks of `order`, each of which is then freed by itself.
    ///
    /// Cost: one read-modify-write for each block, and one or two for each word that is split for them. Only the holder
    /// of the run may call it. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, or if no block of the order can begin there,
    /// [`ResizeError::OrderTooLarge`], [`ResizeError::WrongLength`] if the run does not divide into blocks of the
    /// order, and [`ResizeError::Contended`] as in [`shrink`](Self::shrink). Nothing that the caller could see has
    /// changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = buddy.alloc(5)?;
    /// cpu.split(block, 3)?;
    /// assert_eq!(buddy.free(block + 8)?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split(&self, index: u64, order: u32) -> Result<(), ResizeError> {
        self.runs.split(index, order)
    }

    /// Frees the units of `part`, a part of the block or run at `index`, and keeps the rest.
    ///
    /// The units before `part` stay at `index`; those behind it are a run of their own at `part.end`. Cost: that of two
    /// [splits](Self::split_off) and a free. Only the holder of the run may call it. Callable from interrupt and signal
    /// handlers.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::BeforeRun`] and [`ResizeError::BehindRun`] if
    /// `part` is empty or not within the run, and [`ResizeError::Contended`] as in [`shrink`](Self::shrink). Nothing
    /// that the caller could see has changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = buddy.alloc(5)?;
    /// cpu.free_part(block, block + 8..block + 16)?;
    /// assert_eq!((buddy.len_of(block), buddy.len_of(block + 16)), (Ok(8), Ok(16)));
    /// let refused = cpu.free_part(block, block + 4..block + 16).unwrap_err();
    /// assert_eq!(refused.to_string(), "units 4..16 are no part of the run, which ends before unit 8");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_part(&self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        self.runs.free_part(index, part)
    }
}
