//! Where a unit is described: the highest slot above it that is not split.

use super::Tree;
use crate::sync::Word;
use crate::word;

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
    /// Where unit `unit` is described.
    pub fn spot(&self, unit: u64) -> Spot {
        let mut level = self.geometry.top();
        loop {
            let (idx, slot) = W::SHAPE.locate(level, unit);
            let codes = word::codes(level, self.read(level, idx));
            if level == 0 || word::code(codes, slot) != word::SPLIT {
                return Spot { level, idx, slot, codes };
            }
            level -= 1;
        }
    }
}
