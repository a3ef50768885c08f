//! Reservations: units that are not handed out.
//!
//! Each reserved unit has its code in a leaf word, however many they are, so a reservation can begin and end anywhere.

use core::ops::Range;

use super::Runs;
use super::slots::Slots;
use crate::error::RangeError;
use crate::sync::Word;
use crate::word::span;

impl<W: Word> Runs<'_, W> {
    /// Reserves the units of `range`.
    pub fn reserve(self, range: Range<u64>) -> Result<(), RangeError> {
        self.check_range(&range)?;
        for units in leaves::<W>(&range) {
            if !self.claim_slots(units, units.reserved()) {
                let from = W::SHAPE.first_unit(0, units.idx, units.slot);
                let unit = self.first_in_use(from, from + u64::from(units.count)).unwrap_or(from);
                for units in leaves::<W>(&(range.start..from)) {
                    self.clear_slots(units, units.reserved());
                }
                return Err(RangeError::InUse { unit });
            }
            let (above, _) = W::SHAPE.parent(units.idx);
            let last = units.idx == W::SHAPE.locate(0, range.end - 1).0;
            if last || above != W::SHAPE.parent(units.idx + 1).0 {
                self.tree().tighten_upwards(1, above);
            }
        }
        Ok(())
    }

    /// Frees the units of `range`, all of which must be reserved.
    pub fn release(self, range: Range<u64>) -> Result<(), RangeError> {
        self.check_range(&range)?;
        leaves::<W>(&range).try_for_each(|units| self.check_reserved(units))?;
        for units in leaves::<W>(&range) {
            while !self.clear_slots(units, units.reserved()) {
                self.check_reserved(units)?;
            }
        }
        Ok(())
    }

    /// Returns whether every unit of `range` is free.
    pub fn is_free(self, range: Range<u64>) -> Result<bool, RangeError> {
        self.check_range(&range)?;
        Ok(self.first_in_use(range.start, range.end).is_none())
    }

    /// Refuses a range that is empty, or not in the arena.
    pub fn check_range(self, range: &Range<u64>) -> Result<(), RangeError> {
        let (start, end, units) = (range.start, range.end, self.geometry().units());
        let out_of_range = RangeError::OutOfRange { start, end, units };
        if self.geometry().contains(range) { Ok(()) } else { Err(out_of_range) }
    }

    fn check_reserved(self, units: Slots) -> Result<(), RangeError> {
        let Slots { level, idx, slot, count } = units;
        let reserved = self.tree().reserved_slots(idx, self.tree().read(level, idx));
        let reserved = span::length_from(reserved, slot);
        if reserved >= count {
            return Ok(());
        }
        Err(RangeError::NotReserved { unit: W::SHAPE.first_unit(level, idx, slot + reserved) })
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
