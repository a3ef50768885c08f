//! Finding the slot that describes a unit: the highest slot above it that is not split.

use super::Tree;
use crate::sync::Word;
use crate::word::{self, span};

/// The slot that describes a unit.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub level: usize,
    pub idx: u64,
    pub slot: u32,
    pub codes: u64,
}

impl Spot {
    pub fn code(&self) -> u64 {
        word::code(self.codes, self.slot)
    }

    /// The first unit of the slot.
    pub fn unit<W: Word>(&self) -> u64 {
        W::SHAPE.first_unit(self.level, self.idx, self.slot)
    }
}

impl<W: Word> Tree<'_, W> {
    /// Finds the slot that describes unit `unit`.
    pub fn spot(&self, unit: u64) -> Spot {
        self.spot_from(self.geometry.top(), unit)
    }

    /// Finds the slot that describes unit `unit`: in or below word `idx` of `level`, if the unit is, and otherwise from
    /// the top. That word must have been seen from the top.
    pub fn spot_below(&self, level: usize, idx: u64, unit: u64) -> Spot {
        let is_below = W::SHAPE.locate(level, unit).0 == idx;
        self.spot_from(if is_below { level } else { self.geometry.top() }, unit)
    }

    /// Finds the slot that describes unit `unit`: from the lowest word that is above it and above `before` on, which was
    /// seen from the top. The arena has the unit.
    pub fn spot_behind(&self, before: Spot, unit: u64) -> Spot {
        let Spot { mut level, mut idx, .. } = before;
        while W::SHAPE.locate(level, unit).0 != idx {
            (idx, _) = W::SHAPE.parent(idx);
            level += 1;
        }
        self.spot_from(level, unit)
    }

    #[inline]
    fn spot_from(&self, mut level: usize, unit: u64) -> Spot {
        loop {
            let (idx, slot) = W::SHAPE.locate(level, unit);
            let codes = word::codes(level, self.read(level, idx));
            if level == 0 || word::code(codes, slot) != word::SPLIT {
                return Spot { level, idx, slot, codes };
            }
            level -= 1;
        }
    }

    /// Returns whether the unit at `spot` is reserved.
    pub fn is_reserved(&self, spot: &Spot) -> bool {
        spot.level == 0 && self.reserved_slots(spot.idx, spot.codes) >> (2 * spot.slot) & 1 != 0
    }

    /// Returns the reserved units of leaf word `idx`, by the low bits of their slots. The other slots with that code
    /// are open heads.
    pub fn reserved_slots(&self, idx: u64, codes: u64) -> u64 {
        let reserved = span::reserved(codes);
        let last = 1 << (2 * (W::SHAPE.slots(0) - 1));
        if reserved & last != 0 && self.rest_follows(idx) { reserved & !last } else { reserved }
    }

    /// Returns whether the head in `slot` of word `idx` of `level` belongs to a hidden run, and is no block.
    #[inline(always)]
    pub fn is_hidden(&self, level: usize, idx: u64, slot: u32) -> bool {
        level == 0 && slot == W::SHAPE.slots(0) - 1 && self.rest_follows(idx)
    }

    /// Returns whether the unit behind leaf word `idx` is a rest.
    #[inline(never)]
    fn rest_follows(&self, idx: u64) -> bool {
        let behind = W::SHAPE.first_unit(0, idx + 1, 0);
        behind < self.geometry.units() && self.spot(behind).code() == word::REST
    }
}
