//! Claiming a run of units at a given place, word by word.

use super::{Buddy, span, word};
use crate::geometry::{first_unit, locate, slot_order, slots_log2};
use crate::sync::Word;

/// Where a closed run lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub level: usize,
    pub idx: u64,
    pub slot: u32,
    pub count: u32,
}

/// Why a run was not claimed. Nothing is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The unit was in use, or is in an area that somebody else is claiming.
    InUse(u64),
    /// No run that goes on beyond its leaf word can begin at the last unit of one.
    LastOfWord,
}

impl<W: Word> Buddy<'_, W> {
    /// Claims units `start..end`: in one word by one compare-and-swap, otherwise head first and piece by
    /// piece, and gives the pieces back if one is not to be had.
    pub(super) fn claim_run(&self, lane: usize, start: u64, end: u64) -> Result<(), Obstacle> {
        if let Some(place) = self.closed_place(start, end) {
            let Place { level, idx, slot, count } = place;
            if self.claim_codes(lane, level, idx, slot, span::closed(slot, count), count) {
                return Ok(());
            }
            if level == 0 || !self.is_free(start, end) {
                return Err(Obstacle::InUse(self.first_in_use(start, end).unwrap_or(start)));
            }
            // Free, but split: merges wait there.
            self.settle(level, idx);
            if self.claim_codes(lane, level, idx, slot, span::closed(slot, count), count) {
                return Ok(());
            }
        }
        self.claim_open(lane, start, end)
    }

    /// The slots of a run that can be closed: of the highest level whose slots divide it.
    pub(super) fn closed_place(&self, start: u64, end: u64) -> Option<Place> {
        let divides = |&level: &usize| (start | end) & ((1 << slot_order(level)) - 1) == 0;
        let level = (0..=self.geometry.top).rev().find(divides)?;
        let (idx, slot) = locate(level, start);
        let count = (end - start) >> slot_order(level);
        let slots = 1 << slots_log2(level);
        (u64::from(slot) + count <= slots && count < slots).then_some(Place {
            level,
            idx,
            slot,
            count: count as u32,
        })
    }

    fn claim_open(&self, lane: usize, start: u64, end: u64) -> Result<(), Obstacle> {
        let (leaf, slot) = locate(0, start);
        let tails = (start | 31) + 1;
        if slot == 31 || tails > end {
            // The second: a run within a leaf word that met somebody as a closed one.
            return Err(if slot == 31 { Obstacle::LastOfWord } else { Obstacle::InUse(start) });
        }
        // Holes until all is claimed: nobody can free what is not yet allocated.
        let (hidden, open) = (span::hidden(slot), span::open(slot));
        if !self.claim_codes(lane, 0, leaf, slot, hidden, 32 - slot) {
            return Err(Obstacle::InUse(self.first_in_use(start, tails).unwrap_or(start)));
        }
        self.claim_tails(lane, tails, end).map_err(|unit| {
            self.clear_codes(lane, 0, leaf, slot, hidden, 32 - slot);
            Obstacle::InUse(unit)
        })?;
        // Its own holes, so they are there.
        self.recode(lane, 0, leaf, slot, 32 - slot, hidden, open);
        Ok(())
    }

    /// Claims units `from..end` as the rests of the run that ends at `from`. `Err`: a unit that is not to be
    /// had; none is held.
    pub(super) fn claim_tails(&self, lane: usize, from: u64, end: u64) -> Result<(), u64> {
        let mut unit = from;
        while unit < end {
            match self.claim_tail(lane, unit, end) {
                Some(next) if next > unit => unit = next,
                // Overtaken: the word has changed, or the area above.
                None if self.spot(unit).code() == word::FREE => {}
                _ => {
                    self.clear_tails(lane, from, unit);
                    return Err(unit);
                }
            }
        }
        Ok(())
    }

    /// Claims as many units from `unit` on as one word gives, and returns the next. `None`: overtaken by
    /// another claim.
    fn claim_tail(&self, lane: usize, unit: u64, end: u64) -> Option<u64> {
        let fits = |&level: &usize| {
            let size = 1 << slot_order(level);
            unit & (size - 1) == 0 && end - unit >= size
        };
        let mut level = (0..=self.geometry.top).rev().find(fits)?;
        loop {
            let (idx, slot) = locate(level, unit);
            let codes = word::codes(level, self.read(level, idx));
            if level > 0 && word::code(codes, slot) == word::SPLIT {
                level -= 1;
                continue;
            }
            let wanted = (end - unit) >> slot_order(level);
            let count = wanted.min(u64::from(free_from(level, codes, slot))) as u32;
            let claimed = count == 0
                || self.claim_codes(lane, level, idx, slot, span::rests(slot, count), count);
            let next = first_unit(level, idx, slot) + (u64::from(count) << slot_order(level));
            return claimed.then_some(next);
        }
    }

    /// Writes `codes` into `count` free slots of a word and climbs. `false`: the slots were not free, or the
    /// area is somebody's.
    pub(super) fn claim_codes(
        &self,
        lane: usize,
        level: usize,
        idx: u64,
        slot: u32,
        codes: u64,
        count: u32,
    ) -> bool {
        let claimed = self.update(lane, level, idx, |old| {
            let found = word::codes(level, old);
            (found & span::area(slot, count) == 0)
                .then(|| (word::with_codes(level, old, found | codes), ()))
        });
        if claimed.is_none() {
            return false;
        }
        if self.climb(lane, level, idx) {
            return true;
        }
        self.clear_codes(lane, level, idx, slot, codes, count);
        false
    }

    /// Whether each unit of `start..end` is free, as far as a look at one after the other tells.
    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        self.first_in_use(start, end).is_none()
    }

    /// The first unit of `start..end` that is not free.
    pub(super) fn first_in_use(&self, start: u64, end: u64) -> Option<u64> {
        let mut unit = start;
        while unit < end {
            match self.free_after(unit) {
                0 => return Some(unit),
                free => unit += free,
            }
        }
        None
    }

    /// How many units are free from `unit` on, in one word.
    pub(super) fn free_after(&self, unit: u64) -> u64 {
        let spot = self.spot(unit);
        let slots = u64::from(free_from(spot.level, spot.codes, spot.slot));
        (spot.unit() + (slots << slot_order(spot.level)))
            .min(self.geometry.units)
            .saturating_sub(unit)
    }
}

/// How many slots of a word of `level` are free from `slot` on.
fn free_from(level: usize, codes: u64, slot: u32) -> u32 {
    let taken = !(word::free_slots(codes) >> (2 * slot)) & word::first_slots(32);
    let free = if taken == 0 { 32 } else { taken.trailing_zeros() / 2 };
    free.min((1 << slots_log2(level)) - slot)
}
