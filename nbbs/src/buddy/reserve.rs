//! Holes: units that are never handed out.
//!
//! A hole is a code in a leaf word, whatever its size, so a hole can end and begin at any unit.

use core::ops::Range;

use super::{Buddy, span, swap, word};
use crate::error::{MetadataError, RangeError};
use crate::geometry::slots_log2;
use crate::sync::{Ordering, Word};

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
        for word in &words[..buddy.geometry.words] {
            // Relaxed: whoever shares the arena with other threads orders these stores too.
            word.store(0, Ordering::Relaxed);
        }
        for level in 0..=buddy.geometry.top {
            for idx in 0..buddy.geometry.words_of(level) {
                let all = word::first_slots(buddy.geometry.slots(level, idx));
                // Code 01: a hole in a leaf word, split in an inner one.
                buddy.word(level, idx).store(all, Ordering::Relaxed);
            }
        }
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
        for (leaf, units) in leaves(&range) {
            if let Err(unit) = self.reserve_in_leaf(leaf, units) {
                for (leaf, units) in leaves(&(range.start..leaf << 5)) {
                    self.release_in_leaf(leaf, units);
                }
                return Err(RangeError::InUse { unit });
            }
            let leaves_node = leaf & 15 == 15 || leaf == (range.end - 1) >> 5;
            if leaves_node {
                self.tighten_upwards(1, leaf >> 4);
            }
        }
        Ok(())
    }

    /// Gives the units of `range`, all of them in holes, to the allocator: the end of a reservation, or
    /// memory that arrived later.
    ///
    /// The range is checked as a whole before anything changes. Of two concurrent releases that overlap,
    /// one may be refused after it released units that the other did not name. Costs a read-modify-write
    /// for every 32 units, and merges. May run while others allocate and free.
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
        for (leaf, units) in leaves(&range) {
            self.check_reserved(leaf, units, self.read(0, leaf))?;
        }
        for (leaf, units) in leaves(&range) {
            while !self.release_in_leaf(leaf, units) {
                self.check_reserved(leaf, units, self.read(0, leaf))?;
            }
        }
        Ok(())
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), RangeError> {
        let (start, end, units) = (range.start, range.end, self.geometry.units);
        if start < end && end <= units {
            Ok(())
        } else {
            Err(RangeError::OutOfRange { start, end, units })
        }
    }

    fn check_reserved(&self, leaf: u64, units: u64, word: u64) -> Result<(), RangeError> {
        match first_unit(leaf, units & !span::holes(word)) {
            Some(unit) => Err(RangeError::NotReserved { unit }),
            None => Ok(()),
        }
    }

    /// Claims `units` of a leaf word as a hole, or says which unit is in the way.
    fn reserve_in_leaf(&self, leaf: u64, units: u64) -> Result<(), u64> {
        let mut old = self.read(0, leaf);
        loop {
            if let Some(unit) = first_unit(leaf, units & !word::free_slots(old)) {
                return Err(unit);
            }
            // SeqCst: a claim, ordered as in `claim`.
            match swap(self.word(0, leaf), old, old | units) {
                Ok(_) => break,
                Err(found) => old = found,
            }
        }
        if self.climb(0, 0, leaf) {
            return Ok(());
        }
        self.release_in_leaf(leaf, units);
        Err(first_unit(leaf, units).unwrap_or(leaf << 5))
    }

    /// Frees `units` of a leaf word. `false`: they are not all holes.
    fn release_in_leaf(&self, leaf: u64, units: u64) -> bool {
        let mut old = self.read(0, leaf);
        loop {
            if units & !span::holes(old) != 0 {
                return false;
            }
            // SeqCst: a free, ordered as in `clear`.
            match swap(self.word(0, leaf), old, old & !units) {
                Ok(_) => break,
                Err(found) => old = found,
            }
        }
        W::store_load_fence();
        self.merge(0, leaf);
        true
    }
}

/// The leaf words that a range touches, each with its units in the range by their low bits.
fn leaves(range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> + use<> {
    let Range { start, end } = *range;
    (start >> 5..end.div_ceil(32)).map(move |leaf| {
        let from = start.saturating_sub(leaf << slots_log2(0)) as u32;
        let to = (end - (leaf << slots_log2(0))).min(32) as u32;
        (leaf, word::first_slots(to) & !word::first_slots(from))
    })
}

/// The first unit of a set of a leaf word's units.
fn first_unit(leaf: u64, units: u64) -> Option<u64> {
    (units != 0).then(|| (leaf << 5) + u64::from(units.trailing_zeros() / 2))
}
