//! Holes: units that are never handed out.
//!
//! A hole is a code in a leaf word, whatever its size, so a hole can end and begin at any unit.

use core::ops::Range;

use super::Buddy;
use super::slots::Slots;
use crate::error::{MetadataError, RangeError};
use crate::sync::Word;
use crate::word::span;

impl<'a, W: Word> Buddy<'a, W> {
    /// A back-end in which every unit is a hole: nothing is handed out but what [`Buddy::release`] gives
    /// it. What a boot-time memory map wants.
    ///
    /// Writes all words, whatever they hold; no other handle may be using them. Costs one store a word.
    ///
    /// # Errors
    /// Those of [`Buddy::new`].
    ///
    /// ```
    /// # use nbbs::{AllocError, Buddy, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(1024) }>::new();
    /// let frames = Buddy::new_reserved(metadata.words(), 1024)?;
    /// assert_eq!(frames.alloc(0), Err(AllocError::Exhausted { order: 0 }));
    /// frames.release(256..640)?; // usable memory, as the firmware says
    /// assert_eq!(frames.alloc(8)?, 256);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_reserved(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        let buddy = Self::new(words, units)?;
        buddy.tree.reserve_all();
        Ok(buddy)
    }

    /// Makes the units of `range` a hole: they are not handed out until [`Buddy::release`].
    ///
    /// All or nothing. While it runs, others may see part of the range taken; if it is refused, that
    /// part is free again. Costs a read-modify-write for every 32 units. May run while others allocate
    /// and free.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], or [`RangeError::InUse`] if a unit is allocated or a hole already, or
    /// if another thread is just then allocating around it; nothing has changed.
    ///
    /// ```
    /// # use nbbs::RangeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(0..5)?;
    /// assert_eq!(buddy.alloc(3)?, 8);
    /// assert_eq!(buddy.reserve(4..6), Err(RangeError::InUse { unit: 4 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.check_range(&range)?;
        for units in leaves::<W>(&range) {
            // Lane 0: a hole is nobody's allocation.
            if !self.claim_slots(0, units, units.holes()) {
                let from = W::SHAPE.first_unit(0, units.idx, units.slot);
                let unit = self.first_in_use(from, from + u64::from(units.count)).unwrap_or(from);
                for units in leaves::<W>(&(range.start..from)) {
                    self.clear_slots(0, units, units.holes());
                }
                return Err(RangeError::InUse { unit });
            }
            let (above, _) = W::SHAPE.parent(units.idx);
            let last = units.idx == W::SHAPE.locate(0, range.end - 1).0;
            if last || above != W::SHAPE.parent(units.idx + 1).0 {
                self.tree.tighten_upwards(1, above);
            }
        }
        Ok(())
    }

    /// Gives the units of `range`, all of them in holes, to the allocator: the end of a reservation, or
    /// memory that arrived later.
    ///
    /// The range is checked as a whole before anything changes. Costs a read-modify-write for every 32
    /// units, and merges. May run while others allocate and free.
    ///
    /// The holes must be the caller's. Units that another thread is just then reserving, releasing, freeing
    /// or resizing, or allocating as a run across words, look like holes meanwhile: who names them too may be refused
    /// after a part of the range was released, or release what is in use. A run that is resized has gone then, all of
    /// it, and its owner's call is refused with [`FreeError::NotAllocated`](crate::FreeError::NotAllocated).
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], or [`RangeError::NotReserved`] with the first unit that is no hole.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(10..20)?;
    /// buddy.release(10..20)?;
    /// assert_eq!(buddy.alloc(6)?, 0); // whole again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.check_range(&range)?;
        leaves::<W>(&range).try_for_each(|units| self.check_reserved(units))?;
        for units in leaves::<W>(&range) {
            while !self.clear_slots(0, units, units.holes()) {
                self.check_reserved(units)?;
            }
        }
        Ok(())
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), RangeError> {
        let (start, end, units) = (range.start, range.end, self.geometry().units());
        let out_of_range = RangeError::OutOfRange { start, end, units };
        if self.geometry().contains(range) { Ok(()) } else { Err(out_of_range) }
    }

    fn check_reserved(&self, units: Slots) -> Result<(), RangeError> {
        let Slots { level, idx, slot, count } = units;
        let holes = span::length_from(span::holes(self.tree.read(level, idx)), slot);
        if holes >= count {
            return Ok(());
        }
        Err(RangeError::NotReserved { unit: W::SHAPE.first_unit(level, idx, slot + holes) })
    }
}

/// The units of a range, leaf word by leaf word.
fn leaves<W: Word>(range: &Range<u64>) -> impl Iterator<Item = Slots> + use<W> {
    let Range { start, end } = *range;
    let mut from = start;
    core::iter::from_fn(move || {
        let units = Slots::to_end_of_leaf(W::SHAPE, from);
        let count = u64::from(units.count).min(end.checked_sub(from)?);
        from += count;
        (count > 0).then(|| units.with_count(count as u32))
    })
}
