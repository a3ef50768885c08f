//! What a thread that stops for good may cost.

use std::ops::Range;

use crate::Block;

/// What a thread is in the middle of: all that may be lost if it never goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InHand {
    /// Nothing: it is between two operations, or done.
    #[default]
    Nothing,
    /// A block of this order that it has not been given yet, wherever that is.
    Claim(u32),
    /// This very block: it is freeing it, or has claimed it and not been given it yet.
    Block(Block),
    /// A range that it is reserving or releasing.
    Holes(Range<u64>),
}

impl InHand {
    /// Whether just these units, in ascending order, may be missing because the thread stopped.
    #[must_use]
    pub fn excuses(&self, missing: &[u64]) -> bool {
        let (Some(&first), Some(&last)) = (missing.first(), missing.last()) else { return true };
        let is = |block: Block| missing.iter().copied().eq(block.units());
        match *self {
            Self::Nothing => false,
            Self::Claim(order) => first % (1 << order) == 0 && is(Block { index: first, order }),
            Self::Block(block) => is(block),
            Self::Holes(ref range) => range.contains(&first) && range.contains(&last),
        }
    }

    /// How many aligned blocks of an order can be spoilt by it.
    #[must_use]
    pub fn spoils(&self, order: u32) -> u64 {
        match *self {
            Self::Nothing => 0,
            Self::Claim(own) | Self::Block(Block { order: own, .. }) => {
                1 << own.saturating_sub(order)
            }
            Self::Holes(ref range) => range.end.div_ceil(1 << order) - (range.start >> order),
        }
    }

    /// Whether an audit may name a slot over these units: one of just that, or one around it. Of a claim whose place is
    /// not known nothing can be said.
    #[must_use]
    pub fn explains(&self, units: &Range<u64>) -> bool {
        let meets = |own: Range<u64>| own.start < units.end && units.start < own.end;
        match self {
            Self::Nothing | Self::Claim(_) => false,
            Self::Block(block) => meets(block.units()),
            Self::Holes(range) => meets(range.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn just_the_block_in_hand_is_excused() {
        let block = InHand::Block(Block { index: 4, order: 1 });
        let claim = InHand::Claim(1);
        for (missing, of_block, of_claim) in [
            (&[][..], true, true),
            (&[4, 5], true, true),
            (&[6, 7], false, true),
            (&[5, 6], false, false),
            (&[4], false, false),
            (&[4, 6], false, false),
            (&[4, 5, 6, 7], false, false),
        ] {
            assert_eq!(block.excuses(missing), of_block, "{missing:?}");
            assert_eq!(claim.excuses(missing), of_claim, "{missing:?}");
            assert_eq!(InHand::Nothing.excuses(missing), missing.is_empty());
        }
        let holes = InHand::Holes(3..6);
        assert!(holes.excuses(&[3, 5]) && !holes.excuses(&[5, 6]) && !holes.excuses(&[2, 3]));
    }

    #[test]
    fn only_a_slot_that_it_meets_is_explained() {
        let block = InHand::Block(Block { index: 4, order: 1 });
        assert!(block.explains(&(0..32)) && block.explains(&(5..6)));
        assert!(!block.explains(&(6..7)) && !block.explains(&(0..4)));
        assert!(!InHand::Nothing.explains(&(0..32)) && !InHand::Claim(1).explains(&(0..32)));
        assert!(InHand::Holes(3..6).explains(&(5..6)) && !InHand::Holes(3..6).explains(&(6..8)));
    }
}
