//! The calls of the library that a lane makes.

use std::ops::Range;

use testkit::program::{Ask, Held};

/// A call of the library. Whatever is held is named by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Alloc(u32),
    Free(Held),
    FreeSized(Held),
    /// Frees everything that the lane holds, one thing after the other.
    FreeAll,
    Units(u64),
    At(Held),
    Within {
        units: u64,
        order: u32,
        range: Range<u64>,
        top_down: bool,
    },
    FreeUnits(Held),
    Shrink(Held, u64),
    Grow(Held, u64),
    SplitOff(Held, u64),
    Split(Held, u32),
    FreePart(Held, Range<u64>),
    Batch(u32, usize),
    /// Frees all blocks of an order that the lane holds.
    FreeBatch(u32),
    Reserve(Range<u64>),
    Release(Range<u64>),
    Look,
    Mend,
}

impl Call {
    /// Returns whether this changes a run that the lane holds.
    pub fn is_change(&self) -> bool {
        use Call::{FreePart, Grow, Shrink, Split, SplitOff};
        matches!(self, Shrink(..) | Grow(..) | SplitOff(..) | Split(..) | FreePart(..))
    }

    /// Returns whether this allocates a block.
    pub fn is_claim(&self) -> bool {
        matches!(self, Self::Alloc(_))
    }

    /// Returns the request, if it concerns a run and is a single request.
    pub fn ask(&self) -> Option<Ask<'static>> {
        Some(match *self {
            Self::Units(units) => Ask::Units(units),
            Self::At(held) => Ask::At(held),
            Self::Within { units, order, ref range, top_down } => {
                Ask::Within(units, order, range.clone(), top_down)
            }
            Self::FreeUnits(held) => Ask::Free(held),
            Self::Shrink(held, units) => Ask::Shrink(held, units),
            Self::Grow(held, units) => Ask::Grow(held, units),
            Self::SplitOff(held, units) => Ask::SplitOff(held, units),
            Self::Split(held, order) => Ask::Split(held, order),
            Self::FreePart(held, ref part) => Ask::FreePart(held, part.clone()),
            _ => return None,
        })
    }
}
