//! One lane's part in a case.

use std::ops::Range;

use testkit::program::Op;
use testkit::{Block, Oracle, Violation};

use crate::system::{Extra, System};

/// What a lane is in the middle of: all that may be lost if it never goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InHand {
    /// Nothing: it is between two operations, or done.
    #[default]
    Nothing,
    /// A block of this order that it has not been given yet.
    Claim(u32),
    /// A block that it is freeing.
    Free(Block),
    /// A range that it is reserving or releasing.
    Holes(Range<u64>),
}

impl InHand {
    /// Whether just these units may be missing because the lane stands still.
    pub fn excuses(&self, missing: &[u64]) -> bool {
        let (Some(&first), Some(&last)) = (missing.first(), missing.last()) else { return true };
        match *self {
            Self::Nothing => false,
            Self::Claim(order) => {
                first % (1 << order) == 0
                    && missing.len() == 1 << order
                    && last - first == (1 << order) - 1
            }
            Self::Free(block) => {
                first == block.index
                    && missing.len() as u64 == block.len()
                    && last < block.units().end
            }
            Self::Holes(ref range) => range.contains(&first) && range.contains(&last),
        }
    }

    /// How many aligned blocks of an order can be spoilt by it.
    pub fn spoils(&self, order: u32) -> u64 {
        match *self {
            Self::Nothing => 0,
            Self::Claim(own) | Self::Free(Block { order: own, .. }) => {
                1 << own.saturating_sub(order)
            }
            Self::Holes(ref range) => range.end.div_ceil(1 << order) - (range.start >> order),
        }
    }

    /// Whether the audit may name a claim at these units.
    pub fn explains(&self, units: &Range<u64>) -> bool {
        let meets = |own: &Range<u64>| own.start < units.end && units.start < own.end;
        match self {
            _ if units.is_empty() => false,
            Self::Nothing => false,
            Self::Claim(_) => true,
            Self::Free(block) => meets(&block.units()),
            Self::Holes(range) => meets(range),
        }
    }
}

/// A lane, and what it holds.
pub struct Player<'a> {
    system: &'a dyn System,
    oracle: &'a Oracle,
    lane: usize,
    /// Its blocks, in the order in which it got them.
    pub held: Vec<Block>,
    /// Its holes.
    pub holes: Vec<Range<u64>>,
    /// What it is doing.
    pub in_hand: InHand,
}

impl<'a> Player<'a> {
    /// A lane that holds nothing.
    pub fn new(system: &'a dyn System, oracle: &'a Oracle, lane: usize) -> Self {
        let in_hand = InHand::Nothing;
        Self { system, oracle, lane, held: Vec::new(), holes: Vec::new(), in_hand }
    }

    /// Does the operations in turn.
    ///
    /// # Errors
    /// The first violation.
    pub fn play(&mut self, ops: &[Op]) -> Result<(), Violation> {
        ops.iter().try_for_each(|op| self.step(op))
    }

    fn step(&mut self, op: &Op) -> Result<(), Violation> {
        match *op {
            Op::Alloc { order } => self.alloc(order).map(|_| ()),
            Op::FreeSized { pick } if !self.held.is_empty() => {
                let block = self.held.remove(pick % self.held.len());
                self.free(block)
            }
            Op::FreeSized { .. } => Ok(()),
            _ => self.extra(op),
        }
    }

    /// Allocates a block, which the lane then holds.
    ///
    /// # Errors
    /// The block is somebody's.
    pub fn alloc(&mut self, order: u32) -> Result<Option<Block>, Violation> {
        self.in_hand = InHand::Claim(order);
        let answer = self.system.alloc(self.lane, order);
        self.in_hand = InHand::Nothing;
        let Some(index) = answer else { return Ok(None) };
        let block = self.oracle.take(self.lane, index, order)?;
        self.held.push(block);
        Ok(Some(block))
    }

    /// Frees a block that the lane held.
    ///
    /// # Errors
    /// It is somebody else's, or the system refuses.
    pub fn free(&mut self, block: Block) -> Result<(), Violation> {
        self.oracle.give(block)?;
        self.in_hand = InHand::Free(block);
        let answer = self.system.free(self.lane, block.index, block.order);
        self.in_hand = InHand::Nothing;
        answer.map_err(|reason| Violation::FreeRefused { block, reason })
    }

    fn extra(&mut self, op: &Op) -> Result<(), Violation> {
        if let Op::Release { start, end } = *op {
            if !self.holes.contains(&(start..end)) {
                return Ok(());
            }
            self.holes.retain(|hole| *hole != (start..end));
            self.oracle.release(start..end)?;
        }
        if let Op::Reserve { start, end } | Op::Release { start, end } = *op {
            self.in_hand = InHand::Holes(start..end);
        }
        let outcome = self.system.extra(op);
        self.in_hand = InHand::Nothing;
        match outcome.unwrap_or_else(|| panic!("not every system can do {op:?}")) {
            Extra::Done => Ok(()),
            Extra::Reserved(range) => {
                self.oracle.reserve(range.clone())?;
                self.holes.push(range);
                Ok(())
            }
        }
    }
}
