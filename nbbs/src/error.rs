//! Errors. Every error names the value and the limit that it broke.
//!
//! A variant that several errors have has the same fields with the same meaning in each. `index` is where a block or
//! run begins that the caller named; `unit` is a unit at which something was found.

mod text;

/// Why a slice of words cannot be the metadata of an arena, or its lanes.
///
/// ```
/// use nbbs::{Buddy, Metadata, MetadataError};
///
/// let metadata = Metadata::<9>::new();
/// let refused = Buddy::new(metadata.words(), 64).unwrap_err();
/// let needed = nbbs::metadata_words(64);
/// assert_eq!(refused, MetadataError::TooShort { words: 9, needed });
/// ```
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
    /// The slice for lanes is too short for one.
    LanesTooShort {
        /// Words in the slice.
        words: usize,
        /// Words that a lane needs: [`lane_words(1)`](crate::lane_words).
        needed: usize,
    },
    /// There is no memory for the words.
    NoMemory {
        /// Words asked for; `usize::MAX` if there are not so many addresses.
        words: usize,
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
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::AllocError;
///
/// assert_eq!(buddy.alloc(7), Err(AllocError::OrderTooLarge { order: 7, max: 6 }));
/// assert_eq!(buddy.alloc(6), Ok(0));
/// assert_eq!(buddy.alloc(3), Err(AllocError::Exhausted { units: 8 }));
/// # Ok::<(), nbbs::MetadataError>(())
/// ```
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
    /// None of the numbers that were given is that of a zone: see [`Zones`](crate::Zones).
    NoZone {
        /// Number of zones, of which the first has number 0.
        zones: usize,
    },
}

/// Why a free or a query of a block was refused. Nothing has changed.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::FreeError;
///
/// let block = buddy.alloc(3)?;
/// assert_eq!(buddy.free(block + 1), Err(FreeError::NotABlock { index: block + 1 }));
/// assert_eq!(buddy.free(block), Ok(8));
/// assert_eq!(buddy.free(block), Err(FreeError::NotAllocated { index: block }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// The unit is in none of the zones: see [`Zones`](crate::Zones).
    InNoZone {
        /// The unit.
        unit: u64,
        /// The first unit after the zone before it.
        gap_start: u64,
        /// The first unit of the next zone, or `u64::MAX`.
        gap_end: u64,
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
/// assert_eq!(refused.to_string(), "units 62..65 reach beyond the last unit, 63");
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
    /// The alignment is above the largest order of the arena, and no unit with so many behind it is known to be so
    /// aligned.
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
    /// The range has no place for so many units at that alignment, whatever is free.
    NoPlace {
        /// Units asked for.
        units: u64,
        /// The alignment: `2^order` units.
        order: u32,
        /// First unit of the range.
        start: u64,
        /// The unit after the last.
        end: u64,
    },
    /// Nothing that meets the request is free now. This is an ordinary answer, not a misuse.
    Exhausted {
        /// Units asked for: `2^order` for a block.
        units: u64,
    },
    /// A requested unit is in use or reserved, or another thread was claiming it.
    InUse {
        /// The first such unit, as far as the call could tell; otherwise one before it, in the same word.
        unit: u64,
    },
    /// None of the numbers that were given is that of a zone: see [`Zones`](crate::Zones).
    NoZone {
        /// Number of zones, of which the first has number 0.
        zones: usize,
    },
    /// The unit is in none of the zones: see [`Zones`](crate::Zones).
    InNoZone {
        /// The unit.
        unit: u64,
        /// The first unit after the zone before it.
        gap_start: u64,
        /// The first unit of the next zone, or `u64::MAX`.
        gap_end: u64,
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
        /// Units given.
        units: u64,
        /// Units of the block or run.
        actual: u64,
    },
    /// The part begins before the block or run.
    BeforeRun {
        /// First unit of the part.
        start: u64,
        /// The unit after its last.
        end: u64,
        /// Index given.
        index: u64,
    },
    /// The part is empty, backwards, or ends behind the block or run.
    BehindRun {
        /// First unit of the part.
        start: u64,
        /// The unit after its last.
        end: u64,
        /// The unit after the last of the block or run.
        behind: u64,
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
    /// What another thread's claim has written, and is about to take back, stands below a slot that the change has to
    /// split. Try again later. If that thread died, or one that was changing a block there, the answer stays the same
    /// until the slot is free and [`mend`](crate::Buddy::mend) has been called; the whole can still be freed.
    Contended {
        /// A unit of the slot.
        unit: u64,
    },
}

/// Which block of a batch could not be freed, and why. The blocks before it have been freed, the others have not.
///
/// ```
/// # use nbbs::FreeError;
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let block = buddy.alloc(0)?;
/// let refused = buddy.here().free_batch(0, &[block, block]).unwrap_err();
/// assert_eq!((refused.done, refused.error), (1, FreeError::NotAllocated { index: block }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchError {
    /// Number of blocks that were freed.
    pub done: usize,
    /// Why the next block was refused.
    pub error: FreeError,
}

/// Why a range of units could not be reserved or released. Nothing has changed, unless another thread was working on
/// units of a release at the same time: see [`Buddy::release`](crate::Buddy::release).
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::RangeError;
///
/// buddy.reserve(0..10)?;
/// assert_eq!(buddy.reserve(9..12), Err(RangeError::InUse { unit: 9 }));
/// assert_eq!(buddy.release(0..12), Err(RangeError::NotReserved { unit: 10 }));
/// assert_eq!(buddy.release(0..10), Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// The unit is in none of the zones: see [`Zones`](crate::Zones).
    InNoZone {
        /// The unit.
        unit: u64,
        /// The first unit after the zone before it.
        gap_start: u64,
        /// The first unit of the next zone, or `u64::MAX`.
        gap_end: u64,
    },
}

/// A rule that holds for the metadata whenever no operation is running: see [`Broken`].
///
/// ```
/// use nbbs::{Buddy, Invariant, Metadata};
/// use std::sync::atomic::Ordering;
///
/// let metadata = Metadata::<{ nbbs::metadata_words(32) }>::new();
/// metadata.words().iter().for_each(|word| word.store(2, Ordering::Relaxed)); // no arena's
/// let broken = Buddy::new(metadata.words(), 32)?.audit().unwrap_err();
/// assert_eq!(broken.invariant, Invariant::WellFormed);
/// # Ok::<(), nbbs::MetadataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invariant {
    /// The codes form blocks of `2^order` slots, aligned to their size, and parts of runs; rests at the start of a word
    /// continue a run with an open head.
    WellFormed,
    /// Slots outside the arena are zero.
    InsideArena,
    /// All words below a slot that is not split are zero. A thread that died between claiming a block and returning it,
    /// or while it cut or grew one, can break this; the place reported is that of its block, or a slot around it.
    Dormant,
    /// The bound of a word is at least the largest order that is free below its split slots, and is unsettled where a
    /// merge waits below. A thread that died in a free before it told the words above, or while it took a claim back,
    /// can break this; the place reported is a slot around what it had cleared.
    Bound,
}

/// The first broken invariant that an audit found, and its place.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::{Broken, Invariant};
/// use std::sync::atomic::Ordering;
///
/// buddy.alloc(2)?;
/// let top = metadata.words().iter().rev().find(|word| word.load(Ordering::Relaxed) != 0).unwrap();
/// top.store(0, Ordering::Relaxed); // somebody else overwrites it
/// let Broken { invariant, level, unit, .. } = buddy.audit().unwrap_err();
/// assert_eq!((invariant, level, unit), (Invariant::Dormant, 0, 0)); // the block lies below a free slot
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// A cached block that the caches must not have. [`Caches::audit`](crate::Caches::audit), or
/// [`Cache::audit`](crate::Cache::audit), found it twice in them, or not allocated with its order in the arena: it was
/// freed twice, with a wrong order, or not through the cache.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// # let words = nbbs::Metadata::<{ nbbs::cache_words(1) }>::new();
/// let caches = nbbs::Caches::new(buddy, words.words());
/// let block = caches.alloc(0, 3)?;
/// caches.free_sized(0, block, 3)?; // the cache keeps it
/// buddy.free(block)?; // so nobody else may free it
/// let broken = caches.audit().unwrap_err();
/// assert_eq!((broken.cpu, broken.index, broken.order), (Some(0), block, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenCache {
    /// The first CPU whose cache has the block; `None` for a cache that is no CPU's.
    pub cpu: Option<usize>,
    /// First unit of the block.
    pub index: u64,
    /// The order under which it is cached.
    pub order: u32,
}

impl From<FreeError> for ResizeError {
    fn from(error: FreeError) -> Self {
        Self::Free(error)
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
