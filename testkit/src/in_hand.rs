//! The memory that may be lost when a thread stops for good.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::Block;

/// What a thread has in hand: all that may be lost if it never goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InHand {
    /// Nothing: the thread is between two operations, or done.
    #[default]
    Nothing,
    /// A block of this order that the thread has not been given yet, at an unknown place.
    Claim(u32),
    /// This very block: the thread is freeing it, or has claimed it and not been given it yet.
    Block(Block),
    /// A range that the thread is reserving or releasing.
    Reserved(Range<u64>),
    /// Any number of the first units of a range: the thread claims them from the front, or frees them from the end.
    First(Range<u64>),
    /// Units, in ascending order. The thread has yet to free those in `least`, and none outside `most` is missing.
    Between {
        /// The units that are certainly missing.
        least: Vec<u64>,
        /// All units that may be missing, including these.
        most: Vec<u64>,
    },
}

impl InHand {
    /// Returns whether exactly these units, in ascending order, may be missing because the thread stopped.
    #[must_use]
    pub fn excuses(&self, missing: &[u64]) -> bool {
        if let Self::Between { least, most } = self {
            let within = |units: &[u64], all: &[u64]| units.iter().all(|unit| all.contains(unit));
            return within(least, missing) && within(missing, most);
        }
        let (Some(&first), Some(&last)) = (missing.first(), missing.last()) else { return true };
        let is = |block: Block| missing.iter().copied().eq(block.units());
        match *self {
            Self::Nothing => false,
            Self::Claim(order) => first % (1 << order) == 0 && is(Block { index: first, order }),
            Self::Block(block) => is(block),
            Self::Reserved(ref range) => range.contains(&first) && range.contains(&last),
            Self::First(ref range) => {
                let begin = range.start..range.start + missing.len() as u64;
                begin.end <= range.end && missing.iter().copied().eq(begin)
            }
            Self::Between { .. } => false,
        }
    }

    /// Returns how many aligned blocks of an order may be spoilt.
    #[must_use]
    pub fn spoils(&self, order: u32) -> u64 {
        match *self {
            Self::Nothing => 0,
            Self::Claim(own) | Self::Block(Block { order: own, .. }) => {
                1 << own.saturating_sub(order)
            }
            Self::Reserved(ref range) | Self::First(ref range) if range.is_empty() => 0,
            Self::Reserved(ref range) | Self::First(ref range) => {
                range.end.div_ceil(1 << order) - (range.start >> order)
            }
            Self::Between { ref most, .. } => {
                most.iter().map(|unit| unit >> order).collect::<BTreeSet<_>>().len() as u64
            }
        }
    }

    /// Returns whether an audit may name a slot over these units: a slot of exactly what is in hand, or one around it.
    /// If the place of a claim is not known, nothing can be said.
    #[must_use]
    pub fn explains(&self, units: &Range<u64>) -> bool {
        if units.is_empty() {
            return false;
        }
        let meets = |own: Range<u64>| own.start < units.end && units.start < own.end;
        match self {
            Self::Nothing | Self::Claim(_) => false,
            Self::Block(block) => meets(block.units()),
            Self::Reserved(range) | Self::First(range) => meets(range.clone()),
            Self::Between { most, .. } => most.iter().any(|unit| units.contains(unit)),
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
        let reserved = InHand::Reserved(3..6);
        assert!(
            reserved.excuses(&[3, 5]) && !reserved.excuses(&[5, 6]) && !reserved.excuses(&[2, 3])
        );
    }

    #[test]
    fn a_run_goes_from_its_end_and_what_is_not_freed_is_missing() {
        let first = InHand::First(3..6);
        assert!(first.excuses(&[]) && first.excuses(&[3]) && first.excuses(&[3, 4, 5]));
        assert!(!first.excuses(&[4]) && !first.excuses(&[3, 5]) && !first.excuses(&[3, 4, 5, 6]));
        let between = InHand::Between { least: vec![4, 5], most: vec![3, 4, 5] };
        assert!(between.excuses(&[4, 5]) && between.excuses(&[3, 4, 5]));
        assert!(!between.excuses(&[]) && !between.excuses(&[4]) && !between.excuses(&[4, 5, 6]));
        assert_eq!((first.spoils(2), between.spoils(2), between.spoils(0)), (2, 2, 3));
        assert_eq!(InHand::First(4..4).spoils(0), 0);
    }

    #[test]
    fn only_a_slot_that_it_meets_is_explained() {
        let block = InHand::Block(Block { index: 4, order: 1 });
        assert!(block.explains(&(0..32)) && block.explains(&(5..6)));
        assert!(!block.explains(&(6..7)) && !block.explains(&(0..4)));
        assert!(!block.explains(&(5..5)));
        assert!(!InHand::Nothing.explains(&(0..32)) && !InHand::Claim(1).explains(&(0..32)));
        assert!(
            InHand::Reserved(3..6).explains(&(5..6)) && !InHand::Reserved(3..6).explains(&(6..8))
        );
    }
}
