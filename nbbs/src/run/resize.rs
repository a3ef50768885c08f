//! Changing a block or run that the caller holds: shrink, grow, split, free a part.

use core::ops::Range;

use super::hold::{Held, changed};
use super::{Run, Runs};
use crate::error::{FreeError, ResizeError};
use crate::sync::Word;

impl<W: Word> Runs<'_, W> {
    /// Gives back all but the first `units` units of the block or run at `index`.
    pub fn shrink(self, index: u64, units: u64) -> Result<(), ResizeError> {
        let run = self.run_at(index)?;
        if units == 0 || units > run.units() {
            return Err(ResizeError::WrongLength { index, units, actual: run.units() });
        }
        if units == run.units() {
            return Ok(());
        }
        self.carve(&run, index + units..run.end)
    }

    /// Takes the units behind the block or run at `index`, so that it has `units`.
    pub fn grow(self, index: u64, units: u64) -> Result<(), ResizeError> {
        let run = self.run_at(index)?;
        if units < run.units() {
            return Err(ResizeError::WrongLength { index, units, actual: run.units() });
        }
        let (end, limit) = (index.saturating_add(units), self.geometry().units());
        if end > limit {
            return Err(ResizeError::OutOfRange { start: index, end, units: limit });
        }
        if let Some(unit) = self.first_in_use(run.end, end) {
            return Err(ResizeError::InUse { unit });
        }
        if units == run.units() || !run.is_open && self.grow_in_word(&run, end)? {
            return Ok(());
        }
        let held = self.hold(&run)?;
        // A closed run takes the rest of its leaf word with it.
        let rests = held.end.max(held.rests());
        match self.claim_rests(rests, end) {
            Ok(()) => self.give_back(&held, end),
            Err(unit) => {
                self.give_back(&held, run.end)?;
                Err(ResizeError::InUse { unit })
            }
        }
    }

    /// Splits the block or run at `index` in two, the first of `units` units. Returns where the second begins.
    pub fn split_off(self, index: u64, units: u64) -> Result<u64, ResizeError> {
        let run = self.run_at(index)?;
        if units == 0 || units >= run.units() {
            return Err(ResizeError::WrongLength { index, units, actual: run.units() });
        }
        let cut = index + units;
        self.carve(&run, cut..cut).map(|()| cut)
    }

    /// Splits the block or run at `index` into blocks of `order`.
    pub fn split(self, index: u64, order: u32) -> Result<(), ResizeError> {
        let run = self.run_at(index)?;
        let max = self.geometry().max_order();
        if order > max {
            return Err(ResizeError::OrderTooLarge { order, max });
        }
        let size = 1_u64 << order;
        if index & (size - 1) != 0 {
            return Err(FreeError::Misaligned { index, order }.into());
        }
        if run.units() & (size - 1) != 0 {
            return Err(ResizeError::WrongLength { index, units: size, actual: run.units() });
        }
        let starts = (0..run.units() / size).map(|number| index + number * size);
        if !run.is_open && size >= 1 << W::SHAPE.slot_order(run.head.level) {
            let slots = run.slots::<W>();
            let blocks = starts.map(|start| run.closed_part::<W>(start..start + size));
            let blocks = blocks.fold(0, |codes, block| codes | block);
            return changed(index, self.recode(slots, slots.closed(), blocks));
        }
        let held = self.hold(&run)?;
        let later = starts.clone().filter(|&start| start >= held.rests());
        if let Err(error) = later.clone().try_for_each(|start| self.prepare(start, start + size)) {
            self.give_back(&held, run.end)?;
            return Err(error);
        }
        later.clone().rev().try_for_each(|start| self.begin(&held, start, start + size))?;
        let first = starts.take_while(|&start| start < held.rests());
        let heads = first.map(|start| self.head_codes(&held.from(start), start + size));
        let end = index + (held.rests() - index).next_multiple_of(size);
        self.rehead(&held, heads.fold(0, |codes, head| codes | head), end)
            .inspect_err(|_| later.for_each(|start| _ = self.free_found(start)))
    }

    /// Gives back the units of `part` of the block or run at `index`.
    pub fn free_part(self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        let run = self.run_at(index)?;
        let Range { start, end } = part;
        if start < index {
            return Err(ResizeError::BeforeRun { start, end, index });
        }
        if start >= end || end > run.end {
            return Err(ResizeError::BehindRun { start, end, behind: run.end });
        }
        self.carve(&run, part)
    }

    /// Frees the units of `gap` within a run. What lies before the gap stays where it is; what lies behind becomes a
    /// run of its own. Either part may be empty, and so may the gap.
    fn carve(self, run: &Run, gap: Range<u64>) -> Result<(), ResizeError> {
        let begins = |unit| W::SHAPE.begins_slot(run.head.level, unit);
        if !run.is_open && begins(gap.start) && begins(gap.end) {
            let slots = run.slots::<W>();
            let left =
                run.closed_part::<W>(run.start..gap.start) | run.closed_part::<W>(gap.end..run.end);
            return changed(run.start, self.recode(slots, slots.closed(), left));
        }
        let held = self.hold(run)?;
        if let Err(error) = self.prepare_gap(&held, &gap) {
            self.give_back(&held, held.end)?;
            return Err(error);
        }
        // From the end, so that every rest belongs to the run of the unit before it.
        let rests = held.rests();
        // Where the part behind the gap begins, if there is one.
        let in_first_word = gap.end < rests.min(held.end);
        let in_rests = (rests..held.end).contains(&gap.end);
        if in_rests {
            self.begin(&held, gap.end, held.end)?;
        }
        if !in_first_word {
            self.clear_rests(gap.start.max(rests), gap.end);
        }
        let first = if gap.start > held.start { self.head_codes(&held, gap.start) } else { 0 };
        let second = if in_first_word { self.head_codes(&held.from(gap.end), held.end) } else { 0 };
        let end = if in_first_word { held.end } else { gap.start };
        self.rehead(&held, first | second, end).inspect_err(|_| {
            if in_rests {
                _ = self.free_found(gap.end);
            }
        })
    }

    /// Prepares a held run for a gap: see [`carve`](Self::carve).
    fn prepare_gap(self, held: &Held, gap: &Range<u64>) -> Result<(), ResizeError> {
        let rests = held.rests();
        if (rests..held.end).contains(&gap.end) {
            self.prepare(gap.end, held.end)?;
        }
        if gap.start > rests { self.begin_slot(gap.start) } else { Ok(()) }
    }

    /// Takes more slots in the word of a closed run, up to unit `end`. Returns `false` if they need another word.
    fn grow_in_word(self, run: &Run, end: u64) -> Result<bool, ResizeError> {
        let slots = run.slots::<W>();
        let more = self.slots_of_closed(run.start, end).filter(|more| more.level == slots.level);
        let Some(more) = more else { return Ok(false) };
        let grow = || self.recode(more, slots.closed(), more.closed());
        if grow() {
            return Ok(true);
        }
        self.tree().settle(slots.level, slots.idx);
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
