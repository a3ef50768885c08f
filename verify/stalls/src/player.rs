//! One lane's part in a case.

use std::ops::Range;

use testkit::program::Op;
use testkit::{Block, InHand, Oracle, Violation};

use crate::system::{Extra, System};

/// A lane, and what it holds.
pub struct Player<'a> {
    system: &'a dyn System,
    oracle: &'a Oracle,
    lane: usize,
    /// Its blocks, in the order in which it got them.
    pub held: Vec<Block>,
    /// Its holes.
    pub holes: Vec<Range<u64>>,
    /// What may be lost with it.
    pub in_hand: InHand,
    busy: bool,
}

/// Notes what an allocation has in hand where it ends without an answer.
struct Asked<'p> {
    system: &'p dyn System,
    order: u32,
    in_hand: &'p mut InHand,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        *self.in_hand = self.system.claimed(self.order);
    }
}

impl<'a> Player<'a> {
    /// A lane that holds nothing.
    pub fn new(system: &'a dyn System, oracle: &'a Oracle, lane: usize) -> Self {
        let (held, holes) = (Vec::new(), Vec::new());
        Self { system, oracle, lane, held, holes, in_hand: InHand::Nothing, busy: false }
    }

    /// Does the operations in turn.
    ///
    /// # Errors
    /// The first violation.
    pub fn play(&mut self, ops: &[Op]) -> Result<(), Violation> {
        ops.iter().try_for_each(|op| {
            self.busy = true;
            let result = self.step(op);
            self.busy = false;
            result
        })
    }

    /// Whether it is in the middle of an operation.
    pub fn is_busy(&self) -> bool {
        self.busy
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
        let asked = Asked { system: self.system, order, in_hand: &mut self.in_hand };
        let answer = asked.system.alloc(self.lane, order);
        std::mem::forget(asked);
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
        self.in_hand = InHand::Block(block);
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
