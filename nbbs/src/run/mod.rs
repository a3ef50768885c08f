//! Runs: any number of contiguous units, from one lane.
//!
//! ```text
//! slots     changes contiguous slots of one word: the step of which runs and reservations are made
//! claim     claims a run at a given place         find      finds a place for a run
//! alloc     allocates runs, anywhere or in place  free      frees a run, or a block
//! hold      locks others out of a changing run    cut       ends or begins a run within another
//! resize    shrinks, grows and splits, by these   reserve   reservations
//! ```
//!
//! Every rest belongs to the run of the unit before it, at every instant: runs are claimed, and grow, head first; they
//! shrink, and are freed, from the end. So a run ends where its rests end.

mod alloc;
mod claim;
mod cut;
mod find;
mod free;
mod hold;
mod reserve;
mod resize;
mod slots;

use core::ops::Range;

use crate::block::Blocks;
use crate::error::FreeError;
use crate::lane::OnLane;
use crate::layout::geometry::Geometry;
use crate::sync::Word;
use crate::tree::{Spot, Tree};
use crate::word::{self, span};
use slots::Slots;

/// The blocks and runs of an arena, as one lane allocates, changes and frees them.
pub(crate) struct Runs<'b, W> {
    pub blocks: Blocks<'b, W>,
}

copy!(Runs<'_, W>);

/// A block or run in use, as it was found.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub start: u64,
    pub end: u64,
    /// Where the head is. An open head is in a leaf word.
    pub head: Spot,
    pub is_open: bool,
}

impl Run {
    pub fn units(&self) -> u64 {
        self.end - self.start
    }

    /// The slots of a closed run.
    fn slots<W: Word>(&self) -> Slots {
        let Spot { level, idx, slot, .. } = self.head;
        Slots { level, idx, slot, count: (self.units() >> W::SHAPE.slot_order(level)) as u32 }
    }

    /// Returns the codes of a closed run of `units`, a part of this closed run, in its word; 0 if there are none.
    fn closed_part<W: Word>(&self, units: Range<u64>) -> u64 {
        let level = self.head.level;
        let count = (units.end - units.start) >> W::SHAPE.slot_order(level);
        if count == 0 {
            return 0;
        }
        span::closed(W::SHAPE.locate(level, units.start).1, count as u32)
    }

    /// The order of the smallest block that would hold the run.
    pub fn order(&self) -> u32 {
        order_for(self.units())
    }
}

/// Returns the order of the smallest block that holds `units` units.
fn order_for(units: u64) -> u32 {
    (units - 1).checked_ilog2().map_or(0, |log2| log2 + 1)
}

impl<'b, W: Word> Runs<'b, W> {
    #[inline(always)]
    fn lane(self) -> OnLane<'b, W> {
        self.blocks.lane
    }

    #[inline(always)]
    fn tree(self) -> &'b Tree<'b, W> {
        self.blocks.lane.tree()
    }

    #[inline(always)]
    fn geometry(self) -> &'b Geometry<W> {
        self.blocks.lane.geometry()
    }

    /// Finds the block or run that begins at `index`.
    #[cold]
    pub fn run_at(self, index: u64) -> Result<Run, FreeError> {
        self.blocks.check_index(index)?;
        let head = self.tree().spot(index);
        let (level, idx, slot) = (head.level, head.idx, head.slot);
        match head.code() {
            word::FREE => Err(FreeError::NotAllocated { index }),
            word::HEAD if head.unit::<W>() != index => Err(FreeError::NotABlock { index }),
            word::HEAD if !self.tree().is_hidden(level, idx, slot) => {
                let slots = 1 + span::rests_from(head.codes, slot + 1);
                let end = W::SHAPE.first_unit(level, idx, slot)
                    + (u64::from(slots) << W::SHAPE.slot_order(level));
                Ok(Run { start: index, end, head, is_open: false })
            }
            word::RESERVED if !self.tree().is_reserved(&head) => {
                let within = u64::from(1 + span::rests_from(head.codes, slot + 1));
                let here = index + within;
                let end =
                    if W::SHAPE.locate(0, here).1 == 0 { self.end_of_rests(here) } else { here };
                // An open head in the last unit of a word has rests behind the word: it has gone since it was read.
                if end == index + 1 {
                    return Err(FreeError::Reserved { index });
                }
                Ok(Run { start: index, end, head, is_open: true })
            }
            word::RESERVED | word::HEAD => Err(FreeError::Reserved { index }),
            _ => Err(FreeError::NotABlock { index }),
        }
    }

    /// Returns the order of the block that begins at `index`, or of the run there if it is as long and as aligned as a
    /// block: the first part of a split block may be one.
    #[inline(always)]
    pub fn block_order(self, index: u64) -> Result<u32, FreeError> {
        self.blocks.order_at(index).or_else(|error| self.order_of_run(index).ok_or(error))
    }

    #[cold]
    fn order_of_run(self, index: u64) -> Option<u32> {
        let units = self.run_at(index).ok()?.units();
        let order = units.trailing_zeros();
        (units == 1 << order && index.trailing_zeros() >= order).then_some(order)
    }

    /// Returns the order of the block that begins at `index`, or of a block that would hold the run there.
    #[inline]
    pub fn order_of(self, index: u64) -> Result<u32, FreeError> {
        self.blocks.order_at(index).or_else(|error| match error {
            FreeError::OutOfRange { .. } => Err(error),
            _ => self.run_at(index).map(|run| run.order()),
        })
    }

    /// Returns where the rests end that begin at `unit`, the first of a word or of a slot.
    fn end_of_rests(self, mut unit: u64) -> u64 {
        let mut before = None;
        while unit < self.geometry().units() {
            let spot = match before {
                Some(before) => self.tree().spot_behind(before, unit),
                None => self.tree().spot(unit),
            };
            let rests = span::rests_from(spot.codes, spot.slot);
            if rests == 0 || spot.unit::<W>() != unit {
                break;
            }
            unit += u64::from(rests) << W::SHAPE.slot_order(spot.level);
            let behind = spot.slot + rests;
            let goes_on = behind == W::SHAPE.slots(spot.level)
                || spot.level > 0 && word::code(spot.codes, behind) == word::SPLIT;
            if !goes_on {
                break;
            }
            before = Some(spot);
        }
        unit
    }
}
