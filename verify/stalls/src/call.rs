//! The calls of a lane, with resolved arguments: a repeated call asks for the same.

use std::collections::BTreeSet;
use std::ops::Range;

use testkit::program::{Ask, Held, No, Op, RunOp};
use testkit::{Block, InHand};

/// An operation on what a lane holds.
#[derive(Clone, Debug)]
pub enum Call {
    Alloc(u32),
    FreeSized(Block),
    /// Frees by the index alone.
    Free(Held),
    /// Any other operation on a run, a part or many blocks: on what is held, if it concerns that, or on these blocks.
    Run(RunOp, Option<Held>, Vec<u64>),
    Reserve(Range<u64>),
    Release(Range<u64>),
    Look(Op),
}

/// The answer of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, with the first unit, if one was asked for.
    Yes(u64),
    /// Done, with these blocks.
    Blocks(Vec<u64>),
    No(No),
    /// A call was refused that must not be, with this message.
    Wrong(String),
}

impl Call {
    /// Returns the request, if it concerns runs, parts or many blocks. `blocks` receives those of a batch.
    pub fn ask<'a>(&'a self, blocks: &'a mut Vec<u64>) -> Option<Ask<'a>> {
        let Self::Run(op, held, given) = self else { return None };
        let about = || held.expect("it is about what is held");
        Some(match *op {
            RunOp::Alloc { units } => Ask::Units(units),
            RunOp::At { index, units } => Ask::At(Held { index, len: units }),
            RunOp::Within { units, order, start, end, top_down } => {
                Ask::Within(units, order, start..end, top_down)
            }
            RunOp::Free { .. } => Ask::Free(about()),
            RunOp::Shrink { units, .. } => Ask::Shrink(about(), 1 + units % about().len),
            RunOp::Grow { units, .. } => Ask::Grow(about(), about().len + units),
            RunOp::SplitOff { units, .. } => {
                Ask::SplitOff(about(), 1 + units % (about().len - 1).max(1))
            }
            RunOp::Split { order, .. } => {
                Ask::Split(about(), order.min((about().index | about().len).trailing_zeros()))
            }
            RunOp::FreePart { skip, units, .. } => {
                let Held { index, len } = about();
                let start = index + skip % len;
                Ask::FreePart(about(), start..start + 1 + units % (index + len - start))
            }
            RunOp::Batch { order, count } => {
                blocks.resize(count, 0);
                Ask::Batch(order, blocks)
            }
            RunOp::FreeBatch { order } => Ask::FreeBatch(order, given),
        })
    }

    /// Returns what its lane still holds, of what it held before, while that is cut; nothing if it is not cut.
    pub fn kept(&self) -> Vec<Held> {
        match self {
            Self::Run(RunOp::Grow { .. }, ..) => Vec::new(),
            _ => self.ask(&mut Vec::new()).map_or(Vec::new(), |ask| ask.parts()),
        }
    }

    /// Returns what is held before, if that is cut or grows.
    pub fn changed(&self) -> Option<Held> {
        match self {
            Self::Run(RunOp::Free { .. }, ..) => None,
            Self::Run(_, held, _) => *held,
            _ => None,
        }
    }

    /// Returns what its lane gives up before the call begins.
    pub fn given(&self) -> Vec<Held> {
        let of_block = |block: &Block| Held { index: block.index, len: block.len() };
        match self {
            Self::FreeSized(block) => vec![of_block(block)],
            Self::Free(held) | Self::Run(RunOp::Free { .. }, Some(held), _) => vec![*held],
            Self::Run(RunOp::FreeBatch { order }, _, blocks) => {
                let held = |&index: &u64| of_block(&Block { index, order: *order });
                blocks.iter().map(held).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the units that it gives back of what its lane holds: nothing unless it cuts.
    pub fn gap(&self) -> Range<u64> {
        match self.ask(&mut Vec::new()) {
            Some(Ask::Shrink(held, len)) => held.index + len..held.index + held.len,
            Some(Ask::FreePart(_, part)) => part,
            _ => 0..0,
        }
    }

    /// Returns whether it may claim exactly these units.
    pub fn may_claim(&self, units: &BTreeSet<u64>) -> bool {
        let within = |range: Range<u64>| units.iter().all(|unit| range.contains(unit));
        let at_most = |most: u64| units.len() as u64 <= most;
        match self {
            Self::Alloc(order) => at_most(1 << order),
            Self::Reserve(range) => within(range.clone()),
            Self::Run(RunOp::Batch { order, count }, ..) => at_most((*count as u64) << order),
            _ => match self.ask(&mut Vec::new()) {
                Some(Ask::Units(len)) => at_most(len),
                Some(Ask::At(Held { index, len })) => within(index..index + len),
                Some(Ask::Within(len, _, range, _)) => at_most(len) && within(range),
                Some(Ask::Grow(held, len)) => within(held.index + held.len..held.index + len),
                _ => units.is_empty(),
            },
        }
    }
}

/// The cost of a call that never goes on.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// The memory that may be missing.
    pub in_hand: InHand,
    /// The run that was being changed: only its part of the metadata may be out of order.
    pub run: Option<Held>,
}

impl Cost {
    /// Returns whether an audit may name a slot over these units.
    pub fn explains(&self, units: &Range<u64>) -> bool {
        let meets = |run: Held| {
            !units.is_empty() && run.index < units.end && units.start < run.index + run.len
        };
        self.in_hand.explains(units) || self.run.is_some_and(meets)
    }
}
