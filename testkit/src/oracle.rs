//! Records who holds which unit.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{BackEnd, Block, Holder, Violation};

/// An owner map: one atomic word per unit, written by the caller of every allocation and free.
///
/// It shares nothing with the allocator under test. All its accesses are `Relaxed`, so it adds no ordering of its own:
/// if an allocation does not happen after the free that made room for it, the map sees an overlap wherever the memory
/// model allows one.
///
/// ```
/// use testkit::{Oracle, Violation};
///
/// let oracle = Oracle::new(64);
/// let first = oracle.take(0, 32, 3)?;
/// assert!(matches!(oracle.take(1, 36, 1), Err(Violation::Overlap { unit: 36, .. })));
/// oracle.give(first)?;
/// oracle.check_empty()?;
/// # Ok::<(), Violation>(())
/// ```
#[derive(Debug)]
pub struct Oracle<M = Box<[AtomicU32]>> {
    owner: M,
}

/// Nobody holds the unit.
const FREE: u32 = 0;
/// The unit is reserved. No holder's word looks like this: orders end below 63.
const RESERVED: u32 = u32::MAX;

/// Returns the word of a holder, `1 | order, 6 bits | lane, 16 bits`. It is never 0.
fn tag(lane: usize, order: u32) -> u32 {
    1 << 31 | order << 16 | (lane as u32 & 0xffff)
}

/// Returns the holder that the word `tag` of `unit` names: the block's beginning follows from its alignment.
fn holder(unit: u64, tag: u32) -> Holder {
    let order = tag >> 16 & 63;
    Holder { lane: (tag & 0xffff) as usize, block: Block { index: unit >> order << order, order } }
}

impl Oracle {
    /// Creates a map for `units` units that nobody holds.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self { owner: (0..units).map(|_| AtomicU32::new(FREE)).collect() }
    }

    /// Creates a map for an allocator of which nothing is held yet.
    #[must_use]
    pub fn of(back_end: &(impl BackEnd + ?Sized)) -> Self {
        Self::new(back_end.units())
    }
}

impl<M: Deref<Target = [AtomicU32]>> Oracle<M> {
    /// Creates a map in the caller's words, such as memory that several processes share. A word is zero if nobody holds
    /// the unit.
    pub const fn over(owner: M) -> Self {
        Self { owner }
    }

    /// Returns the number of units in the arena.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.owner.len() as u64
    }

    /// Records that `lane` was given the block of `order` at `index`.
    ///
    /// # Errors
    /// The block is misaligned, outside the arena, or overlaps a held block.
    pub fn take(&self, lane: usize, index: u64, order: u32) -> Result<Block, Violation> {
        let block = self.check_place(index, order)?;
        let claim = tag(lane, order);
        for unit in block.units() {
            match self.swap_if(unit, FREE, claim) {
                Ok(()) => {}
                Err(RESERVED) => return Err(Violation::Reserved { unit }),
                Err(other) => {
                    let (holder, claimant) = (holder(unit, other), Holder { lane, block });
                    return Err(Violation::Overlap { unit, holder, claimant });
                }
            }
        }
        Ok(block)
    }

    /// Records that the holder of `block` is about to free it. Must be called before the free.
    ///
    /// # Errors
    /// A unit is not held as a part of this very block.
    pub fn give(&self, block: Block) -> Result<(), Violation> {
        self.check_place(block.index, block.order)?;
        let claim = self.owner[block.index as usize].load(Relaxed);
        for unit in block.units() {
            let found = self.owner[unit as usize].load(Relaxed);
            let named = (found != FREE && found != RESERVED).then(|| holder(unit, found));
            if named.is_none_or(|holder| holder.block != block)
                || self.swap_if(unit, claim, FREE).is_err()
            {
                return Err(Violation::NotHeld { unit, block, found: named });
            }
        }
        Ok(())
    }

    /// Records that nobody holds `block`. The `dead` may still hold some of its units: processes that were killed while
    /// they wrote here, or held the block.
    ///
    /// # Errors
    /// Another lane holds a unit of it.
    pub fn bury(&self, block: Block, dead: impl Fn(usize) -> bool) -> Result<(), Violation> {
        self.check_place(block.index, block.order)?;
        for unit in block.units() {
            let found = self.owner[unit as usize].load(Relaxed);
            let named = (found != FREE && found != RESERVED).then(|| holder(unit, found));
            let gone = named.is_some_and(|holder| dead(holder.lane));
            if found != FREE && !(gone && self.swap_if(unit, found, FREE).is_ok()) {
                return Err(Violation::NotHeld { unit, block, found: named });
            }
        }
        Ok(())
    }

    /// Returns whether `block` is held in this very form.
    #[must_use]
    pub fn holds(&self, block: Block) -> bool {
        block.is_aligned()
            && block.units().end <= self.units()
            && block
                .units()
                .all(|unit| self.holder_of(unit).is_some_and(|holder| holder.block == block))
    }

    /// Returns whether `unit` is in the arena, not held, and not reserved.
    #[must_use]
    pub fn is_free(&self, unit: u64) -> bool {
        self.owner.get(unit as usize).is_some_and(|owner| owner.load(Relaxed) == FREE)
    }

    /// Returns the holder of `unit`.
    #[must_use]
    pub fn holder_of(&self, unit: u64) -> Option<Holder> {
        match self.owner.get(unit as usize)?.load(Relaxed) {
            FREE | RESERVED => None,
            tag => Some(holder(unit, tag)),
        }
    }

    /// Records that the units of `range` were reserved. Must be called afterwards.
    ///
    /// # Errors
    /// One of them is held, or is reserved already.
    pub fn reserve(&self, range: Range<u64>) -> Result<(), Violation> {
        for unit in range {
            match self.swap_if(unit, FREE, RESERVED) {
                Ok(()) => {}
                Err(RESERVED) => return Err(Violation::Reserved { unit }),
                Err(other) => {
                    let claimant = Holder { lane: 0, block: Block { index: unit, order: 0 } };
                    return Err(Violation::Overlap { unit, holder: holder(unit, other), claimant });
                }
            }
        }
        Ok(())
    }

    /// Records that the reserved units of `range` are about to be given to the allocator.
    ///
    /// # Errors
    /// One of them is not reserved.
    pub fn release(&self, range: Range<u64>) -> Result<(), Violation> {
        for unit in range {
            if self.swap_if(unit, RESERVED, FREE).is_err() {
                let (block, found) = (Block { index: unit, order: 0 }, self.holder_of(unit));
                return Err(Violation::NotHeld { unit, block, found });
            }
        }
        Ok(())
    }

    /// Checks that everything has been returned.
    ///
    /// # Errors
    /// The first unit that is held.
    pub fn check_empty(&self) -> Result<(), Violation> {
        match (0..self.units()).find_map(|unit| Some((unit, self.holder_of(unit)?))) {
            Some((unit, holder)) => Err(Violation::StillHeld { unit, holder }),
            None => Ok(()),
        }
    }

    /// Returns the number of held units.
    #[must_use]
    pub fn held_units(&self) -> u64 {
        (0..self.units()).filter(|&unit| self.holder_of(unit).is_some()).count() as u64
    }

    /// Returns the number of blocks of `order` of which every unit is free: as many as can be allocated, if nobody else
    /// allocates.
    #[must_use]
    pub fn free_blocks(&self, order: u32) -> u64 {
        let is_free = |owner: &AtomicU32| owner.load(Relaxed) == FREE;
        self.owner.chunks_exact(1 << order).filter(|block| block.iter().all(is_free)).count() as u64
    }

    /// Returns the block, if one can be there.
    fn check_place(&self, index: u64, order: u32) -> Result<Block, Violation> {
        let (block, units) = (Block { index, order: order.min(63) }, self.units());
        if order >= 63 || index >= units || units - index < block.len() {
            return Err(Violation::OutsideArena { block, units });
        }
        if !block.is_aligned() {
            return Err(Violation::Misaligned { block });
        }
        Ok(block)
    }

    /// Changes the unit's word from `from` to `to`, or returns its other value.
    fn swap_if(&self, unit: u64, from: u32, to: u32) -> Result<(), u32> {
        let owner = &self.owner[unit as usize];
        owner.compare_exchange(from, to, Relaxed, Relaxed).map(|_| ())
    }
}
