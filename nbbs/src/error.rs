//! What can be refused. Every error names the value and the limit that it broke.

use core::fmt;

/// Why metadata cannot serve as a back-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataError {
    /// The number of units is 0 or above the limit.
    Units {
        /// Units asked for.
        units: u64,
        /// The most units that an arena may have.
        max: u64,
    },
    /// The slice is too short.
    TooShort {
        /// Words in the slice.
        words: usize,
        /// Words that the arena needs: [`metadata_words`](crate::metadata_words).
        needed: usize,
    },
    /// The words are in use, but not by an arena of this many units: a word that this arena never
    /// writes is not zero.
    Foreign {
        /// Units asked for.
        units: u64,
        /// Position in the slice of the word that says otherwise.
        word: usize,
    },
}

/// Why an allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// No block of this order can exist in the arena.
    OrderTooLarge {
        /// Order asked for.
        order: u32,
        /// The largest order of the arena.
        max: u32,
    },
    /// No block of this order is free: an ordinary answer.
    Exhausted {
        /// Order asked for.
        order: u32,
    },
}

/// Why a free, or a question about a block, was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The index lies outside the arena.
    OutOfRange {
        /// Index given.
        index: u64,
        /// Units in the arena.
        units: u64,
    },
    /// The order is above the largest of the arena.
    OrderTooLarge {
        /// Order given.
        order: u32,
        /// The largest order of the arena.
        max: u32,
    },
    /// A block of this order cannot begin here.
    Misaligned {
        /// Index given.
        index: u64,
        /// Order given.
        order: u32,
    },
    /// The unit is free: never allocated, or freed before.
    NotAllocated {
        /// Index given.
        index: u64,
    },
    /// The unit is in use, but no block begins there.
    NotABlock {
        /// Index given.
        index: u64,
    },
    /// The unit is a hole.
    Reserved {
        /// Index given.
        index: u64,
    },
    /// A block begins there, of another order.
    WrongOrder {
        /// Index given.
        index: u64,
        /// Order given.
        order: u32,
        /// Order of the block.
        actual: u32,
    },
}

/// Why a range of units could not be reserved or released. Nothing has changed, unless another release
/// of some of the same units was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The range is empty, backwards, or ends outside the arena.
    OutOfRange {
        /// First unit.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Units in the arena.
        units: u64,
    },
    /// A unit to be reserved is allocated, or is a hole already.
    InUse {
        /// A unit at or after which the range is in use, within the same 32 units.
        unit: u64,
    },
    /// A unit to be released is not a hole.
    NotReserved {
        /// The first such unit.
        unit: u64,
    },
}

/// A rule that the metadata must keep whenever no operation is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invariant {
    /// Every run of codes is a block of `2^order` slots, aligned to its size.
    WellFormed,
    /// Slots outside the arena are never written.
    InsideArena,
    /// Below a slot that is not split, every word is zero. A thread that died between claiming a
    /// block and returning it leaves this behind: the place is that block's.
    Dormant,
    /// A word's bound is at least the largest order that is free below its split slots, and says so where
    /// a merge waits below.
    Bound,
}

/// The first broken invariant that an audit met, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub invariant: Invariant,
    /// Level of the word.
    pub level: usize,
    /// Number of the word in its level.
    pub word: u64,
    /// Slot in the word.
    pub slot: u32,
    /// First unit for which the slot stands.
    pub unit: u64,
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Units { units, max } => {
                write!(f, "an arena of {units} units: it takes 1 to {max}")
            }
            Self::TooShort { words, needed } => {
                write!(f, "metadata of {words} words: the arena needs {needed}")
            }
            Self::Foreign { units, word } => {
                write!(f, "metadata is not of an arena of {units} units: word {word} is in use")
            }
        }
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OrderTooLarge { order, max } => {
                write!(f, "order {order} is above the arena's largest, {max}")
            }
            Self::Exhausted { order } => write!(f, "no block of order {order} is free"),
        }
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { index, units } => {
                write!(f, "unit {index} is outside the arena of {units} units")
            }
            Self::OrderTooLarge { order, max } => {
                write!(f, "order {order} is above the arena's largest, {max}")
            }
            Self::Misaligned { index, order } => {
                write!(f, "unit {index} is not aligned to a block of order {order}")
            }
            Self::NotAllocated { index } => write!(f, "unit {index} is not allocated"),
            Self::NotABlock { index } => write!(f, "no block begins at unit {index}"),
            Self::Reserved { index } => write!(f, "unit {index} is reserved"),
            Self::WrongOrder { index, order, actual } => {
                write!(f, "the block at unit {index} has order {actual}, not {order}")
            }
        }
    }
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { start, end, units } => {
                write!(f, "units {start}..{end} are not a range within the arena of {units} units")
            }
            Self::InUse { unit } => write!(f, "unit {unit} is in use"),
            Self::NotReserved { unit } => write!(f, "unit {unit} is not reserved"),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, level, word, slot, unit } = self;
        write!(f, "{invariant:?} broken at level {level}, word {word}, slot {slot} (unit {unit})")
    }
}

impl core::error::Error for MetadataError {}
impl core::error::Error for AllocError {}
impl core::error::Error for FreeError {}
impl core::error::Error for RangeError {}
impl core::error::Error for Broken {}
