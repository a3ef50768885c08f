//! Changing what is held: shrink, grow, split, give back a part.

use core::ops::Range;

use super::Buddy;
use super::hold::Held;
use super::run::Run;
use crate::error::ResizeError;
use crate::lane::default_lane;
use crate::sync::Word;
use crate::word::span;

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
        self.carve(lane, &run, index + units..run.end)
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
    /// [`ResizeError::OutOfRange`] beyond the arena's end, [`ResizeError::InUse`] if a unit behind it is in use or
    /// another thread is just then allocating around it, [`ResizeError::LastOfWord`] and
    /// [`ResizeError::Contended`]. Nothing has changed.
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
        let (end, limit) = (index.saturating_add(units), self.geometry().units());
        if end > limit {
            return Err(ResizeError::OutOfRange { start: index, end, units: limit });
        }
        if let Some(unit) = self.first_in_use(run.end, end) {
            return Err(ResizeError::InUse { unit });
        }
        if units == run.units() || !run.is_open && self.grow_in_word(lane, &run, end)? {
            return Ok(());
        }
        let held = self.hold(lane, &run)?;
        // A closed run takes the rest of its leaf word with it.
        let tails = held.end.max(held.tails());
        match self.claim_tails(lane, tails, end) {
            Ok(()) => self.give_back(lane, &held, end),
            Err(unit) => {
                self.give_back(lane, &held, run.end)?;
                Err(ResizeError::InUse { unit })
            }
        }
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
        self.carve(lane, &run, cut..cut).map(|()| cut)
    }

    /// Splits the block or run at `index` into blocks of `order`, each of which is then freed by itself.
    ///
    /// Cost: one read-modify-write for each block, and one or two for each word that is split for them.
    /// Callable from interrupt and signal handlers, by whoever holds the run.
    ///
    /// # Errors
    /// [`ResizeError::Free`] if nothing begins at `index`, [`ResizeError::OrderTooLarge`], [`ResizeError::Units`] if
    /// it does not divide into aligned blocks of the order, and [`ResizeError::Contended`] as in [`Buddy::shrink`]. Nothing that the
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
        let max = self.geometry().max_order();
        if order > max {
            return Err(ResizeError::OrderTooLarge { order, max });
        }
        let size = 1_u64 << order;
        if (index | run.units()) & (size - 1) != 0 {
            return Err(ResizeError::Units { index, units: size, actual: run.units() });
        }
        let starts = (0..run.units() / size).map(|number| index + number * size);
        if !run.is_open && size >= 1 << W::SHAPE.slot_order(run.head.level) {
            let slots = run.slots::<W>();
            let blocks = starts.map(|start| self.closed_at(&run, start..start + size));
            let blocks = blocks.fold(0, |codes, block| codes | block);
            return self.changed(index, self.recode(lane, slots, slots.closed(), blocks));
        }
        let held = self.hold(lane, &run)?;
        let later = starts.clone().filter(|&start| start >= held.tails());
        if let Err(error) = later.clone().try_for_each(|start| self.prepare(start, start + size)) {
            self.give_back(lane, &held, run.end)?;
            return Err(error);
        }
        later.clone().rev().try_for_each(|start| self.begin(lane, &held, start, start + size))?;
        let first = starts.take_while(|&start| start < held.tails());
        let heads = first.map(|start| self.head_codes(&held.from(start), start + size));
        let end = index + (held.tails() - index).next_multiple_of(size);
        self.rehead(lane, &held, heads.fold(0, |codes, head| codes | head), end)
            .inspect_err(|_| later.for_each(|start| _ = self.free_on(lane, start)))
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
        self.carve(lane, &run, part)
    }

    /// Frees the units of `gap` within a run: what lies before stays where it is, what lies behind is a run of its own
    /// then. Either may be nothing, and so may the gap.
    fn carve(&self, lane: usize, run: &Run, gap: Range<u64>) -> Result<(), ResizeError> {
        let begins = |unit| W::SHAPE.begins_slot(run.head.level, unit);
        if !run.is_open && begins(gap.start) && begins(gap.end) {
            let slots = run.slots::<W>();
            let left =
                self.closed_at(run, run.start..gap.start) | self.closed_at(run, gap.end..run.end);
            return self.changed(run.start, self.recode(lane, slots, slots.closed(), left));
        }
        let held = self.hold(lane, run)?;
        if let Err(error) = self.prepare_gap(&held, &gap) {
            self.give_back(lane, &held, held.end)?;
            return Err(error);
        }
        // From the end, so that every rest belongs to the run of the unit before it.
        let tails = held.tails();
        // Where the part behind the gap begins, if there is one.
        let in_first_word = gap.end < tails.min(held.end);
        let in_tails = (tails..held.end).contains(&gap.end);
        if in_tails {
            self.begin(lane, &held, gap.end, held.end)?;
        }
        if !in_first_word {
            self.clear_tails(lane, gap.start.max(tails), gap.end);
        }
        let first = if gap.start > held.start { self.head_codes(&held, gap.start) } else { 0 };
        let second = if in_first_word { self.head_codes(&held.from(gap.end), held.end) } else { 0 };
        let end = if in_first_word { held.end } else { gap.start };
        self.rehead(lane, &held, first | second, end).inspect_err(|_| {
            if in_tails {
                _ = self.free_on(lane, gap.end);
            }
        })
    }

    /// Prepares a held run for a gap: see [`carve`](Self::carve).
    fn prepare_gap(&self, held: &Held, gap: &Range<u64>) -> Result<(), ResizeError> {
        let tails = held.tails();
        if gap.end < tails && gap.end + 1 == tails && held.end > tails {
            return Err(ResizeError::LastOfWord { unit: gap.end });
        }
        if (tails..held.end).contains(&gap.end) {
            self.prepare(gap.end, held.end)?;
        }
        if gap.start > tails { self.begin_slot(gap.start) } else { Ok(()) }
    }

    /// The codes of a closed run of `units`, in the word of the closed run that they are part of. Nothing for none.
    fn closed_at(&self, run: &Run, units: Range<u64>) -> u64 {
        let level = run.head.level;
        let count = (units.end - units.start) >> W::SHAPE.slot_order(level);
        if count == 0 {
            return 0;
        }
        span::closed(W::SHAPE.locate(level, units.start).1, count as u32)
    }

    /// Takes further slots of the word of a closed run, up to unit `end`. `false`: another word is needed for them.
    fn grow_in_word(&self, lane: usize, run: &Run, end: u64) -> Result<bool, ResizeError> {
        let slots = run.slots::<W>();
        let more = self.slots_of_closed(run.start, end).filter(|more| more.level == slots.level);
        let Some(more) = more else { return Ok(false) };
        let grow = || self.recode(lane, more, slots.closed(), more.closed());
        if grow() {
            return Ok(true);
        }
        self.tree.settle(slots.level, slots.idx);
        if grow() {
            return Ok(true);
        }
        if slots.level > 0 {
            return Ok(false);
        }
        let unit = self.first_in_use(run.end, end).unwrap_or(run.end);
        Err(ResizeError::InUse { unit })
    }
}
