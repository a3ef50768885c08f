//! The sequential buddy system, as a specification. It says not which block an allocation gets, but which it may get,
//! and when it may be refused.

mod tree;

use std::ops::Range;

use crate::{Block, Violation};
use tree::Tree;

/// The state of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The unit is free.
    Free,
    /// The first unit of a block of this order.
    Head(u8),
    /// The first unit of a run of this many units, which is not a block.
    Run(u32),
    /// A later unit of a block or run.
    Body,
    /// The unit is reserved, and never handed out.
    Reserved,
}

/// The state of every unit, and a tree over it that finds the largest free block.
#[derive(Clone, Debug)]
pub struct Spec {
    units: Vec<Unit>,
    free: Tree,
    /// Blocks that are held, by order.
    used: Vec<u64>,
    /// The number of held runs that are not blocks, and of their units.
    runs: (u64, u64),
    /// Units that are reserved.
    reserved: u64,
}

impl Spec {
    /// Creates an arena of `units` units, all free.
    ///
    /// # Panics
    /// If `units` is 0.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self {
            units: vec![Unit::Free; units as usize],
            free: Tree::new(units),
            used: vec![0; units.ilog2() as usize + 1],
            runs: (0, 0),
            reserved: 0,
        }
    }

    /// Creates an arena of `units` units, all reserved.
    #[must_use]
    pub fn new_reserved(units: u64) -> Self {
        let mut spec = Self::new(units);
        spec.set_reserved(0..units, Unit::Reserved);
        spec
    }

    /// Returns the number of units in the arena.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units.len() as u64
    }

    /// Returns the largest order of which a block fits.
    #[must_use]
    pub fn max_order(&self) -> u32 {
        self.free.max_order()
    }

    /// Returns the state of `unit`, or `None` outside the arena.
    #[must_use]
    pub fn unit(&self, unit: u64) -> Option<Unit> {
        self.units.get(usize::try_from(unit).ok()?).copied()
    }

    /// Returns the block that begins at `index`, if one is held there.
    #[must_use]
    pub fn block_at(&self, index: u64) -> Option<Block> {
        match self.unit(index) {
            Some(Unit::Head(order)) => Some(Block { index, order: u32::from(order) }),
            _ => None,
        }
    }

    /// Returns a free block of `order`, if there is one.
    #[must_use]
    pub fn free_block(&self, order: u32) -> Option<Block> {
        self.free.free_block(order)
    }

    /// Checks that an allocation of `order` could be refused.
    ///
    /// # Errors
    /// [`Violation::Dishonest`], if a block of that order is free.
    pub fn check_refusal(&self, order: u32) -> Result<(), Violation> {
        self.free_block(order).map_or(Ok(()), |witness| Err(Violation::Dishonest { witness }))
    }

    /// Records that the block of `order` at `index` was handed out.
    ///
    /// # Panics
    /// If it is not free: the oracle must be asked first.
    pub fn grant(&mut self, index: u64, order: u32) {
        let block = Block { index, order };
        assert!(self.free.is_free(block), "{block} is not free");
        let units = &mut self.units[index as usize..block.units().end as usize];
        units.fill(Unit::Body);
        units[0] = Unit::Head(order as u8);
        self.used[order as usize] += 1;
        self.free.set(block, false);
    }

    /// Records that the block that begins at `index` was returned. Returns `None`, and changes nothing, if there is
    /// none.
    pub fn give_back(&mut self, index: u64) -> Option<Block> {
        let block = self.block_at(index)?;
        self.units[index as usize..block.units().end as usize].fill(Unit::Free);
        self.used[block.order as usize] -= 1;
        self.free.set(block, true);
        Some(block)
    }

    /// Returns the number of units of the block or run that is held at `index`.
    #[must_use]
    pub fn len_at(&self, index: u64) -> Option<u64> {
        match self.unit(index)? {
            Unit::Head(order) => Some(1 << order),
            Unit::Run(len) => Some(len.into()),
            _ => None,
        }
    }

    /// Records that `len` units at `index` were handed out together.
    ///
    /// # Panics
    /// If they are not free.
    pub fn grant_run(&mut self, index: u64, len: u64) {
        if let Some(block) = Block::of(index, len) {
            return self.grant(index, block.order);
        }
        assert!(self.all(&(index..index + len), Unit::Free), "{len} units at {index} are not free");
        self.set(index..index + len, Unit::Body);
        self.units[index as usize] = Unit::Run(len as u32);
        self.runs = (self.runs.0 + 1, self.runs.1 + len);
    }

    /// Records that the block or run at `index` was returned. Returns `None`, and changes nothing, if there is none.
    pub fn give_back_run(&mut self, index: u64) -> Option<u64> {
        let len = self.len_at(index)?;
        if self.give_back(index).is_none() {
            self.set(index..index + len, Unit::Free);
            self.runs = (self.runs.0 - 1, self.runs.1 - len);
        }
        Some(len)
    }

    /// Returns where the first (or last) run of `units` free units in `range` can begin, at a multiple of `2^order`.
    #[must_use]
    pub fn place(&self, units: u64, order: u32, range: &Range<u64>, last: bool) -> Option<u64> {
        let possible = |&start: &u64| {
            start.is_multiple_of(1 << order) && self.all(&(start..start + units), Unit::Free)
        };
        let mut starts = range.start..(range.end + 1).saturating_sub(units);
        if last { starts.rev().find(possible) } else { starts.find(possible) }
    }

    /// Returns the number of held runs that are not blocks, and how many units they have.
    #[must_use]
    pub fn runs(&self) -> (u64, u64) {
        self.runs
    }

    /// Reserves the free units of `range`. Returns `false`, and changes nothing, if one of them is not free or the
    /// range is not valid.
    pub fn reserve(&mut self, range: Range<u64>) -> bool {
        let possible = self.all(&range, Unit::Free);
        if possible {
            self.set_reserved(range, Unit::Reserved);
        }
        possible
    }

    /// Makes the reserved units of `range` free. Returns `false`, and changes nothing, if one of them is not reserved
    /// or the range is not valid.
    pub fn release(&mut self, range: Range<u64>) -> bool {
        let possible = self.all(&range, Unit::Reserved);
        if possible {
            self.set_reserved(range, Unit::Free);
        }
        possible
    }

    /// Returns whether `range` is a range of the arena's units, and each is `what`.
    #[must_use]
    pub fn all(&self, range: &Range<u64>, what: Unit) -> bool {
        range.start < range.end
            && range.end <= self.units()
            && self.units[range.start as usize..range.end as usize].iter().all(|&unit| unit == what)
    }

    /// Units that are reserved.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Blocks that are held, by order.
    #[must_use]
    pub fn used_blocks(&self) -> &[u64] {
        &self.used
    }

    /// Returns the number of largest free blocks, by order: each free unit is counted in one block.
    #[must_use]
    pub fn free_blocks(&self) -> Vec<u64> {
        let whole = |order| self.free.whole_blocks(order);
        let orders = 0..=self.max_order();
        orders.map(|order| whole(order) - 2 * whole(order + 1)).collect()
    }

    /// Iterates over the arena from its first unit on: the largest free blocks, the held blocks, and, unit by unit, the
    /// held runs and the reserved units.
    pub fn pieces(&self) -> impl Iterator<Item = (Unit, Block)> + '_ {
        let mut index = 0;
        std::iter::from_fn(move || {
            let unit = self.unit(index)?;
            let order = match unit {
                Unit::Head(order) => u32::from(order),
                Unit::Free => self.free_order_at(index),
                Unit::Run(_) | Unit::Body | Unit::Reserved => 0,
            };
            let block = Block { index, order };
            index += block.len();
            Some((unit, block))
        })
    }

    /// Returns the order of the largest free block that begins at the free unit `index`.
    fn free_order_at(&self, index: u64) -> u32 {
        let starts_here = |&order: &u32| self.free.is_free(Block { index, order });
        (0..=self.max_order()).take_while(starts_here).last().unwrap_or(0)
    }

    fn set_reserved(&mut self, range: Range<u64>, to: Unit) {
        let units = range.end - range.start;
        self.reserved =
            if to == Unit::Reserved { self.reserved + units } else { self.reserved - units };
        self.set(range, to);
    }

    fn set(&mut self, range: Range<u64>, to: Unit) {
        for unit in range {
            self.units[unit as usize] = to;
            self.free.set(Block { index: unit, order: 0 }, to == Unit::Free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether there is a free block of `order`, found by looking at every aligned block.
    fn has_free_block(spec: &Spec, order: u32) -> bool {
        let whole = |node: u64| spec.all(&(node << order..(node + 1) << order), Unit::Free);
        (0..spec.units() >> order).any(whole)
    }

    #[test]
    fn the_tree_agrees_with_the_units() {
        let mut random = fastrand::Rng::with_seed(1);
        for units in (1..70).chain([127, 128, 129, 200, 255]) {
            let mut spec = Spec::new(units);
            for _ in 0..100 {
                let index = random.u64(0..units);
                match spec.unit(index) {
                    Some(Unit::Free) if random.bool() => {
                        let order = random.u32(0..=spec.free_order_at(index));
                        spec.grant(index, order);
                    }
                    Some(Unit::Free) => assert!(spec.reserve(index..index + 1)),
                    Some(Unit::Reserved) => assert!(spec.release(index..index + 1)),
                    Some(Unit::Head(_)) => assert!(spec.give_back(index).is_some()),
                    _ => assert!(spec.give_back(index).is_none()),
                }
                for order in 0..=spec.max_order() {
                    let free = spec.free_block(order);
                    assert_eq!(free.is_some(), has_free_block(&spec, order));
                    assert!(free.is_none_or(|block| spec.free.is_free(block)));
                }
                let free: u64 = spec.free_blocks().iter().zip(0..).map(|(n, k)| n << k).sum();
                let used: u64 = spec.used_blocks().iter().zip(0..).map(|(n, k)| n << k).sum();
                assert_eq!(free + used + spec.reserved(), units);
                assert_eq!(spec.pieces().map(|(_, block)| block.len()).sum::<u64>(), units);
            }
        }
    }

    #[test]
    fn an_odd_tail_is_no_block() {
        let spec = Spec::new(12);
        assert_eq!(spec.free_blocks(), [0, 0, 1, 1]);
        assert_eq!(spec.free_block(3), Some(Block { index: 0, order: 3 }));
        assert!(spec.check_refusal(2).is_err());
        assert!(Spec::new(7).check_refusal(3).is_ok());
    }
}
