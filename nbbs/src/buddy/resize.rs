//! Changing what is held: shrink, grow, split, give back a part.

use core::ops::Range;

use super::run::{Run, Spot};
use super::slots::Slots;
use super::{Buddy, span, word};
use crate::error::{FreeError, ResizeError};
use crate::geometry::{locate, slot_order, word_order};
use crate::lane::default_lane;
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Gives back all but the first `units` units of the block or run at `index`, in place.
    ///
    /// Cost: one read-modify-write where the run lies in one word and is cut between its slots; otherwise
    /// one or two for each word that is cleared, and for each level that is split for the cut. Callable from
    /// interrupt and signal handlers, by whoever holds the run.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::Units`] if it has fewer units, and
    /// [`ResizeError::Contended`] if the cut goes through a slot below which another thread's claim waits to
    /// be undone: it has only just begun to notice that the area is taken. Nothing has changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// buddy.shrink(block, 20)?;
    /// assert_eq!(buddy.stats().free_units, 44);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.shrink_on(default_lane(), index, units)
    }

    /// [`Buddy::shrink`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::shrink`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(30)?;
    /// buddy.shrink_on(1, run, 3)?;
    /// assert_eq!(buddy.len_of(run), Ok(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink_on(&self, lane: usize, index: u64, units: u64) -> Result<(), ResizeError> {
        let run = self.held(index)?;
        if units == 0 || units > run.units() {
            return Err(ResizeError::Units { index, units, actual: run.units() });
        }
        if units == run.units() {
            return Ok(());
        }
        let end = index + units;
        let order = slot_order(run.head.level);
        if !run.is_open && end & ((1 << order) - 1) == 0 {
            let slots = run.slots();
            let kept = slots.with_count((units >> order) as u32);
            let shrunk = self.recode(lane, slots, slots.closed(), kept.closed());
            return self.still_held(index, shrunk);
        }
        self.refine_at(lane, &run, end, false).map_err(|unit| ResizeError::Contended { unit })?;
        let run = self.held(index)?;
        self.clear_tails(lane, end.max(run.tails()), run.end);
        if end <= run.tails() {
            self.close(lane, index, end);
        }
        Ok(())
    }

    /// Takes the units behind the block or run at `index`, so that it has `units` units, in place.
    ///
    /// All or nothing. Cost: one read-modify-write where the run stays in one word; otherwise one or two for
    /// each word that is claimed, and for each level that is split to write the head in a leaf word. While
    /// it runs, others may see some of the units taken. Callable from interrupt and signal handlers, by
    /// whoever holds the run.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::Units`] if it has more units,
    /// [`ResizeError::InUse`] if a unit behind it is in use, another thread is just then allocating around it or
    /// there is none, [`ResizeError::LastOfWord`] and [`ResizeError::Contended`]. Nothing has changed.
    ///
    /// ```
    /// # use nbbs::ResizeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_at(0, 5)?;
    /// buddy.grow(run, 40)?;
    /// assert_eq!(buddy.alloc_at(40, 1)?, 40);
    /// assert_eq!(buddy.grow(run, 41), Err(ResizeError::InUse { unit: 40 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.grow_on(default_lane(), index, units)
    }

    /// [`Buddy::grow`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::grow`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(3)?;
    /// buddy.grow_on(1, run, 7)?;
    /// assert_eq!(buddy.len_of(run), Ok(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow_on(&self, lane: usize, index: u64, units: u64) -> Result<(), ResizeError> {
        let run = self.held(index)?;
        if units < run.units() {
            return Err(ResizeError::Units { index, units, actual: run.units() });
        }
        let end = index.saturating_add(units);
        if end > self.geometry.units {
            return Err(ResizeError::InUse { unit: self.geometry.units });
        }
        if let Some(unit) = self.first_in_use(run.end, end) {
            return Err(ResizeError::InUse { unit });
        }
        if units == run.units() || !run.is_open && self.grow_in_word(lane, &run, end) {
            return Ok(());
        }
        let tails = if run.is_open { run.end } else { self.open_run(lane, &run)? };
        self.claim_tails(lane, tails, end).map_err(|unit| {
            if !run.is_open && run.head.level == 0 {
                self.close(lane, index, run.end);
            }
            ResizeError::InUse { unit }
        })
    }

    /// Splits the block or run at `index` in two: the first has `units` units. Returns where the second
    /// begins. Each is then freed, resized or split by itself.
    ///
    /// Cost: one read-modify-write where the run lies in one word and is cut between its slots; otherwise
    /// one or two more for each level that is split for the cut. Callable from interrupt and signal handlers,
    /// by whoever holds the run.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::Units`] if it has not more units,
    /// [`ResizeError::LastOfWord`] for a second part that would begin so, and [`ResizeError::Contended`] as
    /// in [`Buddy::shrink`]. Nothing has changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let first = buddy.alloc(5)?;
    /// let second = buddy.split_off(first, 12)?;
    /// assert_eq!((buddy.len_of(first), buddy.len_of(second)), (Ok(12), Ok(20)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&self, index: u64, units: u64) -> Result<u64, ResizeError> {
        self.split_off_on(default_lane(), index, units)
    }

    /// [`Buddy::split_off`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::split_off`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let first = buddy.alloc(2)?;
    /// assert_eq!(buddy.split_off_on(1, first, 1)?, first + 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off_on(&self, lane: usize, index: u64, units: u64) -> Result<u64, ResizeError> {
        let run = self.held(index)?;
        if units == 0 || units >= run.units() {
            return Err(ResizeError::Units { index, units, actual: run.units() });
        }
        let cut = index + units;
        self.prepare_cut(lane, &run, cut, run.end)?;
        self.cut(lane, index, cut)
    }

    /// Splits the block or run at `index` into blocks of `order`, each of which is then freed by itself.
    ///
    /// Cost: one read-modify-write for each block, and one or two for each word that is split for them.
    /// Callable from interrupt and signal handlers, by whoever holds the run.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::Units`] if it does not divide into
    /// aligned blocks of the order, and [`ResizeError::Contended`] as in [`Buddy::shrink`]. Nothing that the
    /// caller could see has changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// buddy.split(block, 3)?;
    /// assert_eq!(buddy.free(block + 8)?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split(&self, index: u64, order: u32) -> Result<(), ResizeError> {
        self.split_on(default_lane(), index, order)
    }

    /// [`Buddy::split`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::split`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(4)?;
    /// buddy.split_on(1, block, 0)?;
    /// assert_eq!(buddy.stats().used_blocks[0], 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_on(&self, lane: usize, index: u64, order: u32) -> Result<(), ResizeError> {
        let run = self.held(index)?;
        let size = 1_u64.checked_shl(order).unwrap_or(0);
        if size == 0 || (index | run.units()) & (size - 1) != 0 {
            return Err(ResizeError::Units { index, units: size, actual: run.units() });
        }
        let cuts = 1..run.units() / size;
        for number in cuts.clone() {
            let cut = index + number * size;
            self.prepare_cut(lane, &self.refined(&run)?, cut, cut + size)?;
        }
        for number in cuts.rev() {
            self.cut(lane, index, index + number * size)?;
        }
        Ok(())
    }

    /// Gives back the units of `part`, which lie in the block or run at `index`, and keeps the rest: what
    /// lies before stays at `index`, what lies behind is then held at `part.end`.
    ///
    /// Cost: that of two [splits](Buddy::split_off) and a free. Callable from interrupt and signal handlers,
    /// by whoever holds the run.
    ///
    /// # Errors
    /// Those of [`Buddy::split_off`]. Nothing that the caller could see has changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// buddy.free_part(block, block + 8..block + 16)?;
    /// assert_eq!((buddy.len_of(block), buddy.len_of(block + 16)), (Ok(8), Ok(16)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_part(&self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        self.free_part_on(default_lane(), index, part)
    }

    /// [`Buddy::free_part`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::free_part`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// buddy.free_part_on(1, block, block..block + 31)?;
    /// assert_eq!(buddy.len_of(block + 31), Ok(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_part_on(
        &self,
        lane: usize,
        index: u64,
        part: Range<u64>,
    ) -> Result<(), ResizeError> {
        let run = self.held(index)?;
        let Range { start, end } = part;
        if start < index || start >= end || end > run.end {
            let units = end.saturating_sub(start);
            return Err(ResizeError::Units { index, units, actual: run.units() });
        }
        if end < run.end {
            self.prepare_cut(lane, &run, end, run.end)?;
        }
        let run = self.refined(&run)?;
        let within = run.is_open || start & ((1 << slot_order(run.head.level)) - 1) != 0;
        if start > index && within {
            let contended = |unit| ResizeError::Contended { unit };
            self.refine_at(lane, &run, start, false).map_err(contended)?;
        }
        if end < run.end {
            self.cut(lane, index, end)?;
        }
        if start == index {
            let run = self.held(index)?;
            return self.still_held(index, self.release_run(lane, &run));
        }
        self.shrink_on(lane, index, start - index)
    }

    /// Writes a run so that a part `cut..end` can be cut off by one compare-and-swap, without changing what
    /// it is. Other cuts may be prepared between.
    fn prepare_cut(&self, lane: usize, run: &Run, cut: u64, end: u64) -> Result<(), ResizeError> {
        if !run.is_open && cut & ((1 << slot_order(run.head.level)) - 1) == 0 {
            return Ok(());
        }
        let contended = |unit| ResizeError::Contended { unit };
        self.refine_at(lane, run, cut, false).map_err(contended)?;
        let spot = self.spot(cut);
        let rests = span::rests_from(spot.codes, spot.slot);
        let units = u64::from(rests) << slot_order(spot.level);
        let whole_word = spot.slot == 0 && end - cut == 1 << word_order(spot.level);
        if end <= cut + units && !whole_word {
            return Ok(());
        }
        if cut & 31 == 31 {
            return Err(ResizeError::LastOfWord { unit: cut });
        }
        self.refine_at(lane, &self.refined(run)?, cut, true).map_err(contended)
    }

    /// Cuts the run at `index` in two at `cut`, as prepared, and returns `cut`.
    fn cut(&self, lane: usize, index: u64, cut: u64) -> Result<u64, ResizeError> {
        let Spot { level, idx, slot, codes } = self.spot(cut);
        let behind = slot + span::rests_from(codes, slot);
        let goes_on = level == 0 && behind == 32 && {
            let tails = (cut | 31) + 1;
            slot == 0 || self.end_of_tails(tails) > tails
        };
        let head = if goes_on { word::HOLE } else { word::HEAD };
        let first = locate(level, index);
        let cut_off = self.update(lane, level, idx, |old| {
            let mut codes = word::codes(level, old);
            if word::code(codes, slot) != word::REST {
                return None;
            }
            codes ^= (word::REST ^ head) << (2 * slot);
            if level == 0 && first.0 == idx && word::code(codes, first.1) == word::HOLE {
                // What is left of the first run lies in this word: a closed one.
                codes |= word::HEAD << (2 * first.1);
            }
            Some((word::with_codes(level, old, codes), ()))
        });
        self.still_held(index, cut_off.is_some()).map(|()| cut)
    }

    /// Takes further slots of the word of a closed run, up to unit `end`. `false`: not possible there.
    fn grow_in_word(&self, lane: usize, run: &Run, end: u64) -> bool {
        let slots = run.slots();
        let more = self.slots_of_closed(run.start, end).filter(|more| more.level == slots.level);
        let Some(more) = more else { return false };
        let grow = || self.recode(lane, more, slots.closed(), more.closed());
        grow() || {
            self.settle(slots.level, slots.idx);
            grow()
        }
    }

    /// Gives a closed run that goes on an open head. Returns the unit from which on there are to be rests.
    fn open_run(&self, lane: usize, run: &Run) -> Result<u64, ResizeError> {
        if run.head.level > 0 {
            self.open_head(lane, run).map_err(|unit| ResizeError::Contended { unit })?;
            return Ok(run.end);
        }
        let first = Slots::to_end_of_leaf(run.start);
        if first.count == 1 {
            return Err(ResizeError::LastOfWord { unit: run.start });
        }
        if !self.recode(lane, first, run.slots().closed(), first.open()) {
            let unit = self.first_in_use(run.end, run.tails()).unwrap_or(run.end);
            return Err(ResizeError::InUse { unit });
        }
        Ok(run.tails())
    }

    /// Closes the run with an open head at `index` that ends at `end` within the same word, or with it.
    fn close(&self, lane: usize, index: u64, end: u64) {
        let first = Slots::to_end_of_leaf(index);
        let count = (end - index) as u32;
        // A whole word stays open.
        if count < 32 {
            self.recode(lane, first, first.open(), first.with_count(count).closed());
        }
    }

    /// Whether a change of the run at `index` was made, or else that somebody else has freed it.
    fn still_held(&self, index: u64, done: bool) -> Result<(), ResizeError> {
        if done { Ok(()) } else { Err(ResizeError::Free(FreeError::NotAllocated { index })) }
    }
}
