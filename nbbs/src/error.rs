//! Errors. Every error names the value and the limit that it broke.
//!
//! A variant that several errors have has the same fields with the same meaning in each. `index` is where a block or
//! run begins that the caller named; `unit` is a unit at which something was found.

use core::fmt;
use core::ops::Range;

/// Why a slice of words cannot be the metadata of an arena.
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
    /// The words belong to something else: a word that an arena of this many units never writes is not zero.
    Foreign {
        /// Units asked for.
        units: u64,
        /// Position in the slice of that word.
        word: usize,
    },
}

/// Why an allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The arena has no block of the order.
    OrderTooLarge {
        /// Order given.
        order: u32,
        /// The largest order of the arena.
        max: u32,
    },
    /// Nothing that meets the request is free now. This is an ordinary answer, not a misuse.
    Exhausted {
        /// Units asked for: `2^order` for a block.
        units: u64,
    },
}

/// Why a free or a query of a block was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The index lies outside the arena.
    OutOfRange {
        /// First unit named: the index.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Units in the arena.
        units: u64,
    },
    /// The arena has no block of the order.
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
    /// The unit is reserved.
    Reserved {
        /// Index given.
        index: u64,
    },
    /// The block that begins there has another order.
    WrongOrder {
        /// Index given.
        index: u64,
        /// Order given.
        order: u32,
        /// Order of the block.
        actual: u32,
    },
    /// The number of units does not fit the block or run that begins there.
    WrongLength {
        /// Index given.
        index: u64,
        /// Units given.
        units: u64,
        /// Units of the block or run.
        actual: u64,
    },
}

impl FreeError {
    /// The arena of `units` units has no unit `index`.
    pub(crate) const fn outside(index: u64, units: u64) -> Self {
        Self::OutOfRange { start: index, end: index.saturating_add(1), units }
    }
}

/// Why a request for a run of units was refused. Nothing has changed.
///
/// ```
/// # use nbbs::RequestError;
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// assert_eq!(buddy.here().alloc_units(65), Err(RequestError::Units { units: 65, max: 64 }));
/// let refused = buddy.here().alloc_at(62, 3).unwrap_err();
/// assert_eq!(refused.to_string(), "units 62..65 are not a range within the arena of 64 units");
/// # Ok::<(), nbbs::MetadataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The number of units is 0 or larger than the arena.
    Units {
        /// Units asked for.
        units: u64,
        /// Units in the arena.
        max: u64,
    },
    /// The alignment is above the largest order of the arena.
    OrderTooLarge {
        /// Order given.
        order: u32,
        /// The largest order of the arena.
        max: u32,
    },
    /// The range is empty, backwards, or ends outside the arena.
    OutOfRange {
        /// First unit named.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Units in the arena.
        units: u64,
    },
    /// Nothing that meets the request is free now. This is an ordinary answer, not a misuse.
    Exhausted {
        /// Units asked for: `2^order` for a block.
        units: u64,
    },
    /// A requested unit is in use, or another thread was claiming it.
    InUse {
        /// The first such unit, as far as the call could tell; otherwise one before it, in the same word.
        unit: u64,
    },
}

/// Why a block or run was not resized or split. Nothing that its holder could see has changed.
///
/// ```
/// # use nbbs::ResizeError;
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let run = buddy.here().alloc_units(3)?;
/// let refused = buddy.here().shrink(run, 4).unwrap_err();
/// assert_eq!(refused, ResizeError::WrongLength { index: run, units: 4, actual: 3 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizeError {
    /// No block or run begins at the index.
    Free(FreeError),
    /// The number of units does not fit the block or run that begins there.
    WrongLength {
        /// Index given.
        index: u64,
        /// Units given: the new length, or that of a part.
        units: u64,
        /// Units of the block or run.
        actual: u64,
    },
    /// The arena has no block of the order.
    OrderTooLarge {
        /// Order given.
        order: u32,
        /// The largest order of the arena.
        max: u32,
    },
    /// The run would end outside the arena.
    OutOfRange {
        /// First unit named.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Units in the arena.
        units: u64,
    },
    /// A requested unit is in use, or another thread was claiming it.
    InUse {
        /// The first such unit, as far as the call could tell; otherwise one before it, in the same word.
        unit: u64,
    },
    /// Another thread's claim, about to be undone, stands below a slot that the change has to split. Try again later.
    Contended {
        /// A unit of the slot.
        unit: u64,
    },
}

/// Which block of a batch could not be freed, and why. The blocks before it have been freed, the others have not.
///
/// ```
/// # use nbbs::{BatchError, FreeError};
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let block = buddy.alloc(0)?;
/// let refused = BatchError { done: 1, error: FreeError::NotAllocated { index: block } };
/// assert_eq!(buddy.here().free_batch(0, &[block, block]), Err(refused));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// Number of blocks that were freed.
    pub done: usize,
    /// Why the next block was refused.
    pub error: FreeError,
}

/// Why a range of units could not be reserved or released. Nothing has changed, unless another thread was working on
/// units of a release at the same time: see [`Buddy::release`](crate::Buddy::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The range is empty, backwards, or ends outside the arena.
    OutOfRange {
        /// First unit named.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Units in the arena.
        units: u64,
    },
    /// A requested unit is in use, or another thread was claiming it.
    InUse {
        /// The first such unit, as far as the call could tell; otherwise one before it, in the same word.
        unit: u64,
    },
    /// A unit to be released is not reserved.
    NotReserved {
        /// The first such unit.
        unit: u64,
    },
}

/// A rule that holds for the metadata whenever no operation is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invariant {
    /// The codes form blocks of `2^order` slots, aligned to their size, and parts of runs; rests at the start of a word
    /// continue a run with an open head.
    WellFormed,
    /// Slots outside the arena are zero.
    InsideArena,
    /// All words below a slot that is not split are zero. A thread that died between claiming a block and returning it
    /// can break this; the place reported is that of its block.
    Dormant,
    /// The bound of a word is at least the largest order that is free below its split slots, and is unsettled where a
    /// merge waits below.
    Bound,
}

/// The first broken invariant that an audit found, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule that is broken.
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

/// A cached block that the caches must not have. [`Caches::audit`](crate::Caches::audit) found it twice in them, or not
/// allocated with its order in the arena: it was freed twice, with a wrong order, or not through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenCache {
    /// The first CPU whose cache has the block.
    pub cpu: usize,
    /// First unit of the block.
    pub index: u64,
    /// The order under which it is cached.
    pub order: u32,
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
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::Exhausted { units } => exhausted(f, units),
        }
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::Misaligned { index, order } => {
                write!(f, "unit {index} is not aligned to a block of order {order}")
            }
            Self::NotAllocated { index } => write!(f, "unit {index} is not allocated"),
            Self::NotABlock { index } => write!(f, "no block begins at unit {index}"),
            Self::Reserved { index } => write!(f, "unit {index} is reserved"),
            Self::WrongOrder { index, order, actual } => {
                write!(f, "the block at unit {index} has order {actual}, not {order}")
            }
            Self::WrongLength { index, units, actual } => wrong_length(f, index, units, actual),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Units { units, max } => {
                write!(f, "a run of {units} units: the arena takes 1 to {max}")
            }
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::Exhausted { units } => exhausted(f, units),
            Self::InUse { unit } => in_use(f, unit),
        }
    }
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Free(error) => error.fmt(f),
            Self::WrongLength { index, units, actual } => wrong_length(f, index, units, actual),
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::InUse { unit } => in_use(f, unit),
            Self::Contended { unit } => {
                write!(f, "another thread's claim waits to be undone below unit {unit}")
            }
        }
    }
}

fn order_too_large(f: &mut fmt::Formatter<'_>, order: u32, max: u32) -> fmt::Result {
    write!(f, "order {order} is above the arena's largest, {max}")
}

fn exhausted(f: &mut fmt::Formatter<'_>, units: u64) -> fmt::Result {
    write!(f, "no such run of {units} units is free")
}

fn out_of_range(f: &mut fmt::Formatter<'_>, range: Range<u64>, units: u64) -> fmt::Result {
    write!(f, "units {range:?} are not a range within the arena of {units} units")
}

fn wrong_length(f: &mut fmt::Formatter<'_>, index: u64, units: u64, actual: u64) -> fmt::Result {
    write!(f, "the run at unit {index} has {actual} units: {units} do not fit it")
}

fn in_use(f: &mut fmt::Formatter<'_>, unit: u64) -> fmt::Result {
    write!(f, "unit {unit} is in use")
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} blocks: {}", self.done, self.error)
    }
}

impl From<FreeError> for ResizeError {
    fn from(error: FreeError) -> Self {
        Self::Free(error)
    }
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::InUse { unit } => in_use(f, unit),
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

impl fmt::Display for BrokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, index, order } = self;
        write!(f, "CPU {cpu} keeps a block of order {order} at unit {index} that is not its own")
    }
}

impl core::error::Error for MetadataError {}
impl core::error::Error for AllocError {}
impl core::error::Error for FreeError {}
impl core::error::Error for RequestError {}
impl core::error::Error for ResizeError {}
impl core::error::Error for BatchError {}
impl core::error::Error for RangeError {}
impl core::error::Error for Broken {}
impl core::error::Error for BrokenCache {}
