//! Claiming a run of units at a given place, word by word.

use super::Runs;
use super::hold::Held;
use super::slots::Slots;
use crate::sync::Word;
use crate::tree::Spot;
use crate::word::{self, span};

impl<W: Word> Runs<'_, W> {
    /// Claims units `start..end`: in one word by one compare-and-swap, otherwise head first and piece by piece, giving
    /// the pieces back if one cannot be claimed. `Err` names a unit that was in use, or is in an area that somebody
    /// else is claiming, if that can still be seen, or be seen yet; then nothing is held.
    pub(super) fn claim_run(self, start: u64, end: u64) -> Result<(), Option<u64>> {
        if let Some(slots) = self.slots_of_closed(start, end) {
            if self.claim_slots(slots, slots.closed()) {
                return Ok(());
            }
            let in_use = self.first_in_use(start, end);
            if slots.level == 0 || in_use.is_some() {
                return Err(in_use);
            }
            // Free, but split: merges are waiting there.
            self.tree().settle(slots.level, slots.idx);
            if self.claim_slots(slots, slots.closed()) {
                return Ok(());
            }
        }
        self.claim_open(start, end)
    }

    /// Returns the slots of a run that can be closed: of the highest level whose slots divide it.
    pub(super) fn slots_of_closed(self, start: u64, end: u64) -> Option<Slots> {
        let divides = |&level: &usize| (start | end) & ((1 << W::SHAPE.slot_order(level)) - 1) == 0;
        let level = (0..=self.geometry().top()).rev().find(divides)?;
        let (idx, slot) = W::SHAPE.locate(level, start);
        let count = (end - start) >> W::SHAPE.slot_order(level);
        let slots = u64::from(W::SHAPE.slots(level));
        let count = (u64::from(slot) + count <= slots && count < slots).then_some(count as u32)?;
        Some(Slots { level, idx, slot, count })
    }

    /// Claims units `start..end` with an open head. They reach at least to the end of the first leaf word: a shorter
    /// run can be closed.
    fn claim_open(self, start: u64, end: u64) -> Result<(), Option<u64>> {
        let first = Slots::to_end_of_leaf(W::SHAPE, start);
        let held = Held { start, end, first };
        // Hidden until everything is claimed: nobody may free what is not yet allocated.
        if !self.claim_slots(first, first.hidden()) {
            return Err(self.first_in_use(start, held.rests()));
        }
        self.claim_rests(held.rests(), end).map_err(|unit| {
            self.clear_own(first, first.hidden());
            Some(unit)
        })?;
        self.rehead(&held, first.open(), end).map_err(|_| None)
    }

    /// Claims units `from..end` as the rests of the run that ends at `from`. `Err` names a unit that cannot be claimed;
    /// then none is held.
    pub(super) fn claim_rests(self, from: u64, end: u64) -> Result<(), u64> {
        let mut unit = from;
        while unit < end {
            let Some(next) = self.claim_piece(unit, end) else {
                self.clear_rests_by(from, unit, |slots| self.clear_own(slots, slots.rests()));
                return Err(unit);
            };
            unit = next;
        }
        Ok(())
    }

    /// Claims as many units from `unit` on as one word gives, and returns the next unit. Returns `None` if the unit is
    /// in use, or in an area that somebody else is claiming; it does not wait for that claimer.
    fn claim_piece(self, unit: u64, end: u64) -> Option<u64> {
        let fits = |&level: &usize| {
            let size = 1 << W::SHAPE.slot_order(level);
            unit & (size - 1) == 0 && end - unit >= size
        };
        let mut level = (0..=self.geometry().top()).rev().find(fits)?;
        loop {
            let (idx, slot) = W::SHAPE.locate(level, unit);
            let codes = word::codes(level, self.tree().read(level, idx));
            if level > 0 && word::code(codes, slot) == word::SPLIT {
                level -= 1;
                continue;
            }
            let wanted = (end - unit) >> W::SHAPE.slot_order(level);
            let count = wanted.min(u64::from(free_from::<W>(level, codes, slot))) as u32;
            if count == 0 {
                return None;
            }
            let slots = Slots { level, idx, slot, count };
            if self.take_slots(slots, slots.rests()) {
                let next = W::SHAPE.first_unit(level, idx, slot)
                    + (u64::from(count) << W::SHAPE.slot_order(level));
                return self.climb_from(slots, slots.rests()).then_some(next);
            }
        }
    }

    /// Returns the first unit of `start..end` that is not free, as far as one look after the other can tell.
    pub(super) fn first_in_use(self, start: u64, end: u64) -> Option<u64> {
        let mut unit = start;
        while unit < end {
            match self.free_after(unit, self.tree().spot(unit)) {
                0 => return Some(unit),
                free => unit += free,
            }
        }
        None
    }

    /// Returns how many units are free from `unit` on, in the word that describes it.
    pub(super) fn free_after(self, unit: u64, spot: Spot) -> u64 {
        let slots = u64::from(free_from::<W>(spot.level, spot.codes, spot.slot));
        (spot.unit::<W>() + (slots << W::SHAPE.slot_order(spot.level)))
            .min(self.geometry().units())
            .saturating_sub(unit)
    }
}

/// Returns how many slots of a word of `level` are free from `slot` on.
fn free_from<W: Word>(level: usize, codes: u64, slot: u32) -> u32 {
    span::length_from(word::free_slots(codes), slot).min(W::SHAPE.slots(level) - slot)
}
