//! Operation programs: plain data that property tests shrink, and that a fuzzer or a model checker can drive, too.
//!
//! [`run`] executes a program step by step with the specification beside it, and judges every answer. [`race()`] runs
//! several sequences of operations at once: the owner map judges them while they run, and the specification judges what
//! they leave. [`CacheProgram`] is a program on caches.

mod bytes;
mod caches;
mod inspect;
mod judged;
mod plain;
mod race;
mod runs;
mod sequential;
mod strategies;
mod subject;
mod truth;

pub use crate::ask::{Ask, Held, No, ask, has_place, within};
pub use caches::{CacheOp, CacheProgram, CacheRace, race_caches};
pub use inspect::{inspect, look_for_blocks, observe};
pub use judged::Summary;
pub use plain::race_plain;
pub use race::{Body, LaneReport, Race, race};
pub(crate) use runs::Player;
pub use sequential::{Failure, run};
pub use strategies::{BOUNDARIES, geometries, programs, races, run_op};
pub use subject::{Arena, Subject};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Allocates a block.
    Alloc {
        /// Its order; may be above the largest.
        order: u32,
    },
    /// Frees a block that is held, without naming its order.
    Free {
        /// Which block, counted in the order of allocation, modulo the number held. Does nothing if none is held.
        pick: usize,
    },
    /// Frees a block that is held, by its order.
    FreeSized {
        /// As in `Free`.
        pick: usize,
    },
    /// Frees once more the block that was freed last.
    FreeAgain,
    /// Frees whatever is at a unit; usually that cannot be freed.
    FreeAt {
        /// The unit; may be outside the arena.
        index: u64,
    },
    /// Frees whatever is at a unit, by an order; usually that cannot be freed.
    FreeSizedAt {
        /// The unit; may be outside the arena.
        index: u64,
        /// The order; may be above the largest.
        order: u32,
    },
    /// Asks what begins at a unit.
    OrderOf {
        /// The unit; may be outside the arena.
        index: u64,
    },
    /// Reserves a range. It is refused unless all of the range is free.
    Reserve {
        /// First unit.
        start: u64,
        /// The unit after the last; may be outside the arena, or before the first.
        end: u64,
    },
    /// Gives a range to the allocator. It is refused unless all of the range is reserved.
    Release {
        /// First unit.
        start: u64,
        /// The unit after the last; may be outside the arena, or before the first.
        end: u64,
    },
    /// Allocates blocks of an order until one is refused, then frees them all.
    Drain {
        /// The order; may be above the largest.
        order: u32,
    },
    /// Compares statistics, walk and maps with the specification, and runs the audit.
    Inspect,
    /// An operation on a run, a part of what is held, or many blocks.
    Run(RunOp),
    /// An operation on the lane's cache, or on all. Does nothing where there are no caches.
    Cache(CacheOp),
}

/// An operation on runs of any number of units, on parts of what is held, or on many blocks. A pick names a block or a
/// run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RunOp {
    /// Allocates a number of units.
    Alloc {
        /// The number of units, from 1 to that of the arena.
        units: u64,
    },
    /// Allocates units at a place. Does nothing if they would end outside the arena.
    At {
        /// First unit.
        index: u64,
        /// The number of units, at least 1.
        units: u64,
    },
    /// Allocates units in a range. Does nothing if it is not a range of the arena.
    Within {
        /// The number of units, from 1 to that of the arena.
        units: u64,
        /// log2 of the alignment of the first unit.
        order: u32,
        /// First unit of the range.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Whether the last place is wanted instead of the first.
        top_down: bool,
    },
    /// Frees a block or run that is held.
    Free {
        /// Which one, counted modulo the number held. Does nothing if none is held.
        pick: usize,
    },
    /// Shrinks a block or run.
    Shrink {
        /// As in `Free`.
        pick: usize,
        /// The new length is one more than this, modulo its units.
        units: u64,
    },
    /// Grows a block or run.
    Grow {
        /// As in `Free`.
        pick: usize,
        /// The number of units to add.
        units: u64,
    },
    /// Splits a block or run in two.
    SplitOff {
        /// As in `Free`.
        pick: usize,
        /// The split is after one more than this, modulo its units. Does nothing if that is its end.
        units: u64,
    },
    /// Splits a block or run into blocks.
    Split {
        /// As in `Free`.
        pick: usize,
        /// Their order; the largest possible one is used if it is above that.
        order: u32,
    },
    /// Frees a part of a block or run.
    FreePart {
        /// As in `Free`.
        pick: usize,
        /// The number of units before the part, modulo its units.
        skip: u64,
        /// One less than the number of units of the part, modulo the remaining units.
        units: u64,
    },
    /// Allocates many blocks.
    Batch {
        /// Their order, at most the largest.
        order: u32,
        /// The number of blocks.
        count: usize,
    },
    /// Frees all held blocks of an order.
    FreeBatch {
        /// The order.
        order: u32,
    },
}

/// One operation on a lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The caller's lane.
    pub lane: usize,
    /// What it does.
    pub op: Op,
}

/// An arena and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// Units of the arena.
    pub units: u64,
    /// Whether all units are reserved at first.
    pub reserved: bool,
    /// The operations, in order.
    pub steps: Vec<Step>,
}

impl Program {
    /// Creates a program on one lane, in an arena without reserved units.
    #[must_use]
    pub fn new(units: u64, ops: impl IntoIterator<Item = Op>) -> Self {
        let steps = ops.into_iter().map(|op| Step { lane: 0, op }).collect();
        Self { units, reserved: false, steps }
    }
}
