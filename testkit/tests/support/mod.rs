//! A sound allocator made of the specification itself, and the ways to break it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use nbbs::{AllocError, FreeError, RangeError};
use testkit::program::Subject;
use testkit::{BackEnd, Block, Spec, Unit, Violation};

/// What a patient does wrong, every tenth time that it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the control.
    None,
    /// Hands out a block that is held.
    HandsOutTwice,
    /// Hands out a block that begins one unit too late.
    Misaligns,
    /// Hands out what lies behind the arena.
    LeavesTheArena,
    /// Hands out a reserved unit.
    GivesReserved,
    /// Refuses although a block is free.
    RefusesFalsely,
    /// Forgets a block that is freed.
    LosesBlocks,
    /// Frees half of the block only.
    FreesHalf,
    /// Refuses to free a block that is held.
    RefusesToFree,
    /// Says that it freed what nobody held.
    AcceptsBadFrees,
    /// Refuses an invalid free, but frees a neighbour.
    ChangesOnRefusal,
    /// Names the wrong reason.
    NamesTheWrongReason,
    /// Gives the wrong order for a block.
    MistakesTheOrder,
    /// Panics.
    Panics,
}

pub struct Patient {
    spec: Mutex<Spec>,
    fault: Fault,
    chances: AtomicU64,
}

impl Patient {
    pub fn new(units: u64, fault: Fault) -> Self {
        Self { spec: Mutex::new(Spec::new(units)), fault, chances: AtomicU64::new(0) }
    }

    fn spec(&self) -> MutexGuard<'_, Spec> {
        self.spec.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn fails_with(&self, fault: Fault) -> bool {
        self.fault == fault && self.chances.fetch_add(1, Ordering::Relaxed) % 10 == 9
    }

    /// The first block, if there is one, of which the first unit is so.
    fn first(spec: &Spec, is_so: impl Fn(Unit, u32) -> bool) -> Option<Block> {
        spec.pieces().find(|&(unit, block)| is_so(unit, block.order)).map(|(_, block)| block)
    }

    fn why_not(spec: &Spec, index: u64) -> FreeError {
        match spec.unit(index) {
            None => {
                let (end, units) = (index.saturating_add(1), spec.units());
                FreeError::OutOfRange { start: index, end, units }
            }
            Some(Unit::Free) => FreeError::NotAllocated { index },
            Some(Unit::Reserved) => FreeError::Reserved { index },
            _ => FreeError::NotABlock { index },
        }
    }

    fn free(&self, index: u64, order: Option<u32>) -> Result<u64, FreeError> {
        let mut spec = self.spec();
        let block = spec.block_at(index);
        match (block, order) {
            (Some(block), None) => self.give_back(&mut spec, block),
            (Some(block), Some(order)) if block.order == order => self.give_back(&mut spec, block),
            (Some(Block { order: actual, .. }), Some(order)) => {
                Err(FreeError::WrongOrder { index, order, actual })
            }
            (None, _) if self.fails_with(Fault::AcceptsBadFrees) => {
                Ok(1_u64.unbounded_shl(order.unwrap_or(0)))
            }
            (None, _) if self.fails_with(Fault::NamesTheWrongReason) => {
                Err(FreeError::WrongOrder { index, order: 0, actual: 1 })
            }
            (None, _) => {
                if self.fails_with(Fault::ChangesOnRefusal) {
                    let victim = Self::first(&spec, |unit, _| matches!(unit, Unit::Head(_)));
                    victim.and_then(|block| spec.give_back(block.index));
                }
                Err(Self::why_not(&spec, index))
            }
        }
    }

    fn give_back(&self, spec: &mut Spec, block: Block) -> Result<u64, FreeError> {
        if self.fails_with(Fault::RefusesToFree) {
            return Err(FreeError::NotAllocated { index: block.index });
        }
        if !self.fails_with(Fault::LosesBlocks) {
            spec.give_back(block.index);
        }
        if block.order > 0 && self.fails_with(Fault::FreesHalf) {
            spec.grant(block.index + block.len() / 2, block.order - 1);
        }
        Ok(block.len() << u32::from(self.fails_with(Fault::MistakesTheOrder)))
    }
}

impl BackEnd for Patient {
    fn units(&self) -> u64 {
        self.spec().units()
    }

    fn max_order(&self) -> u32 {
        self.spec().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        0
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        self.try_alloc(lane, order).ok()
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.free(index, Some(order)).map(|_| ()).map_err(|error| error.to_string())
    }
}

impl Subject for Patient {
    fn try_alloc(&self, _lane: usize, order: u32) -> Result<u64, AllocError> {
        let mut spec = self.spec();
        let max = spec.max_order();
        if order > max {
            return Err(AllocError::OrderTooLarge { order, max });
        }
        let block = spec.free_block(order).ok_or(AllocError::Exhausted { units: 1 << order })?;
        if self.fails_with(Fault::RefusesFalsely) {
            return Err(AllocError::Exhausted { units: 1 << order });
        }
        assert!(!self.fails_with(Fault::Panics), "a fault");
        if self.fails_with(Fault::Misaligns) {
            return Ok(block.index + 1);
        }
        if self.fails_with(Fault::LeavesTheArena) {
            return Ok(spec.units() >> order << order);
        }
        let wrong = match self.fault {
            Fault::HandsOutTwice => {
                Self::first(&spec, |unit, k| matches!(unit, Unit::Head(_)) && k >= order)
            }
            Fault::GivesReserved => Self::first(&spec, |unit, _| unit == Unit::Reserved),
            _ => None,
        };
        if let Some(wrong) = wrong.filter(|_| self.fails_with(self.fault)) {
            return Ok(wrong.index >> order << order);
        }
        spec.grant(block.index, order);
        Ok(block.index)
    }

    fn free_unsized(&self, _lane: usize, index: u64) -> Result<u64, FreeError> {
        self.free(index, None)
    }

    fn free_sized(&self, _lane: usize, index: u64, order: u32) -> Result<(), FreeError> {
        self.free(index, Some(order)).map(|_| ())
    }

    fn order_of(&self, index: u64) -> Result<u32, FreeError> {
        let spec = self.spec();
        let block = spec.block_at(index).ok_or_else(|| Self::why_not(&spec, index))?;
        Ok(block.order + u32::from(self.fails_with(Fault::MistakesTheOrder)))
    }

    fn reserve(&self, range: Range<u64>) -> Result<(), RangeError> {
        let mut spec = self.spec();
        let (start, end, units) = (range.start, range.end, spec.units());
        if start >= end || end > units {
            return Err(RangeError::OutOfRange { start, end, units });
        }
        let first = range.clone().find(|&unit| spec.unit(unit) != Some(Unit::Free));
        spec.reserve(range);
        first.map_or(Ok(()), |unit| Err(RangeError::InUse { unit }))
    }

    fn release(&self, range: Range<u64>) -> Result<(), RangeError> {
        let mut spec = self.spec();
        let (start, end, units) = (range.start, range.end, spec.units());
        if start >= end || end > units {
            return Err(RangeError::OutOfRange { start, end, units });
        }
        let first = range.clone().find(|&unit| spec.unit(unit) != Some(Unit::Reserved));
        spec.release(range);
        first.map_or(Ok(()), |unit| Err(RangeError::NotReserved { unit }))
    }

    fn inspect(&self, other: &Spec) -> Result<(), Violation> {
        let spec = self.spec();
        if spec.pieces().eq(other.pieces()) {
            Ok(())
        } else {
            Err(Violation::wrong("inspect", other.free_blocks(), spec.free_blocks()))
        }
    }

    fn observe(&self, _held: &[Block]) -> Result<(), Violation> {
        Ok(())
    }
}
