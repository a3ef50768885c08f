//! What is allocated at an address.

use crate::class::{Class, UNIT, is_aligned};

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
