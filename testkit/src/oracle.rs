//! Who holds which unit.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{BackEnd, Block, Holder, Violation};

/// An owner map: one atomic word per unit, written at every allocation and free by whoever does it.
///
/// It shares nothing with the allocator under test. Its accesses are all `Relaxed`, so it adds no
/// ordering of its own: if an allocation does not happen after the free that made room for it, the map
/// sees an overlap where the memory model allows one.
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

/// `1 | order, 6 bits | lane, 16 bits`: not 0, whoever it is.
fn tag(lane: usize, order: u32) -> u32 {
    1 << 31 | order << 16 | (lane as u32 & 0xffff)
}

/// Whom the word `tag` of `unit` names: the block's beginning follows from its alignment.
fn holder(unit: u64, tag: u32) -> Holder {
    let order = tag >> 16 & 63;
    Holder { lane: (tag & 0xffff) as usize, block: Block { index: unit >> order << order, order } }
}

impl Oracle {
    /// A map for `units` units that nobody holds.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self { owner: (0..units).map(|_| AtomicU32::new(FREE)).collect() }
    }

    /// A map for an allocator that holds nothing yet.
    #[must_use]
    pub fn of(back_end: &(impl BackEnd + ?Sized)) -> Self {
        Self::new(back_end.units())
    }
}

impl<M: Deref<Target = [AtomicU32]>> Oracle<M> {
    /// A map in words of the caller's, such as memory that several processes have: zero where nobody holds the unit.
    pub const fn over(owner: M) -> Self {
        Self { owner }
    }

    /// Units in the arena.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.owner.len() as u64
    }

    /// Records that `lane` was given the block of `order` at `index`.
    ///
    /// # Errors
    /// The block is misaligned, outside the arena, or overlaps what somebody holds.
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

    /// Records that the holder of `block` is about to free it: to be called before the free.
    ///
    /// # Errors
    /// Some unit is not held as a part of this very block.
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

    /// Records that nobody holds `block`, of which some units may still be held by the `dead`: a process that was killed while
    /// it wrote here, or held the block.
    ///
    /// # Errors
    /// Somebody else holds a unit of it.
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

    /// Whether `block` is held in this very form.
    #[must_use]
    pub fn holds(&self, block: Block) -> bool {
        block.is_aligned()
            && block.units().end <= self.units()
            && block
                .units()
                .all(|unit| self.holder_of(unit).is_some_and(|holder| holder.block == block))
    }

    /// Whether `unit` is in the arena, in nobody's block, and not reserved.
    #[must_use]
    pub fn is_free(&self, unit: u64) -> bool {
        self.owner.get(unit as usize).is_some_and(|owner| owner.load(Relaxed) == FREE)
    }

    /// Who holds `unit`.
    #[must_use]
    pub fn holder_of(&self, unit: u64) -> Option<Holder> {
        match self.owner.get(unit as usize)?.load(Relaxed) {
            FREE | RESERVED => None,
            tag => Some(holder(unit, tag)),
        }
    }

    /// Records that the units of `range` were reserved: to be called afterwards.
    ///
    /// # Errors
    /// Somebody holds one of them, or it is reserved already.
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

    /// Whether everything has been returned.
    ///
    /// # Errors
    /// The first unit that somebody holds.
    pub fn check_empty(&self) -> Result<(), Violation> {
        match (0..self.units()).find_map(|unit| Some((unit, self.holder_of(unit)?))) {
            Some((unit, holder)) => Err(Violation::StillHeld { unit, holder }),
            None => Ok(()),
        }
    }

    /// Units that somebody holds.
    #[must_use]
    pub fn held_units(&self) -> u64 {
        (0..self.units()).filter(|&unit| self.holder_of(unit).is_some()).count() as u64
    }

    /// Blocks of `order` of which every unit is free: as many as can be allocated, if nobody else does.
    #[must_use]
    pub fn free_blocks(&self, order: u32) -> u64 {
        let is_free = |owner: &AtomicU32| owner.load(Relaxed) == FREE;
        self.owner.chunks_exact(1 << order).filter(|block| block.iter().all(is_free)).count() as u64
    }

    /// The block, if one can be there.
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

    /// Changes the unit's word from `from` to `to`, or says what else it is.
    fn swap_if(&self, unit: u64, from: u32, to: u32) -> Result<(), u32> {
        let owner = &self.owner[unit as usize];
        owner.compare_exchange(from, to, Relaxed, Relaxed).map(|_| ())
    }
}
