//! What is allocated at an address.

use core::ptr::NonNull;

use crate::class::{Class, Slot, UNIT, is_aligned};
use crate::error::FreeError;
use crate::region::Region;

/// What is allocated at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A slot of the slab that begins at this unit.
    Slot { class: Class, slab: u64, slot: u32 },
    /// A run of units.
    Run { unit: u64, units: u64 },
}

impl Held {
    /// Returns how many bytes it has.
    pub fn bytes(self) -> usize {
        match self {
            Self::Slot { class, .. } => class.size(),
            Self::Run { units, .. } => units as usize * UNIT,
        }
    }

    /// Returns whether it is a slot of this class, in a slab or as a run of its own.
    pub fn is_of(self, class: Class) -> bool {
        matches!(self, Self::Slot { class: its, .. } if its == class) || self.holds(class)
    }

    /// Returns whether it is a run like those that serve as slots of this class where there is no room for a slab:
    /// as long, and aligned as a slot must be.
    pub fn holds(self, class: Class) -> bool {
        self.may_hold(class) && class.size().next_multiple_of(UNIT) == self.bytes()
    }

    /// Returns whether it is a run, and would [hold](Self::holds) a slot of this class if it were as long as one.
    pub fn may_hold(self, class: Class) -> bool {
        // Units begin at a page, the most to which slots are aligned.
        let is_aligned = |unit| is_aligned(unit as usize * UNIT, class.align());
        matches!(self, Self::Run { unit, .. } if class.may_be_run() && is_aligned(unit))
    }
}

impl Region<'_> {
    /// Returns the slot that is allocated at an address in its units, if it is a slot in a slab.
    #[inline]
    pub fn slot_at(&self, at: NonNull<u8>) -> Option<Slot> {
        let (slab, class, free) = self.slabs.of(self.unit_of(at))?;
        let offset = self.runs.offset(at) - slab as usize * UNIT;
        let number = class.slot_at(offset)?;
        let slab = at.addr().get() - offset;
        (free >> number & 1 == 0).then_some(Slot { class, slab, number })
    }

    /// Finds what is allocated at an address in its units.
    #[inline]
    pub fn find(&self, at: NonNull<u8>) -> Result<Held, FreeError> {
        let (offset, address) = (self.runs.offset(at), at.addr().get());
        let nothing = FreeError::NotAllocated { address };
        let Some((slab, class, free)) = self.slabs.of(self.unit_of(at)) else {
            return self.find_run(at);
        };
        let offset = offset - slab as usize * UNIT;
        match class.slot_over(offset).filter(|(slot, _)| free & 1 << slot == 0) {
            None => Err(nothing),
            Some((slot, begins)) if begins == offset => Ok(Held::Slot { class, slab, slot }),
            Some((_, begins)) => {
                Err(FreeError::Inside { address, begins: address - (offset - begins) })
            }
        }
    }

    /// Finds the run at an address in its units.
    fn find_run(&self, at: NonNull<u8>) -> Result<Held, FreeError> {
        let (unit, address) = (self.unit_of(at), at.addr().get());
        let units = self.runs.buddy.len_of(unit).map_err(|error| match error {
            nbbs::FreeError::NotABlock { .. } => FreeError::InsideRun { address },
            _ => FreeError::NotAllocated { address },
        })?;
        match self.runs.offset(at) % UNIT {
            0 => Ok(Held::Run { unit, units }),
            by => Err(FreeError::Inside { address, begins: address - by }),
        }
    }
}
