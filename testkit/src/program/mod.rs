//! Operation programs: plain data that property tests shrink, and that a fuzzer or a model checker can
//! drive as well.
//!
//! [`run`] executes a program step by step with the specification beside it, and judges every answer.
//! [`race`] runs several sequences of operations at once: the owner map judges while they run, the
//! specification what they leave behind.

mod bytes;
mod inspect;
mod judged;
mod plain;
mod race;
mod runs;
mod sequential;
mod strategies;
mod subject;
mod truth;

pub use crate::ask::{Ask, Held, No, ask, within};
pub use inspect::{inspect, observe};
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
        /// Which: counted in the order of allocation, modulo the number held. Nothing if none is.
        pick: usize,
    },
    /// Frees a block that is held, by its order.
    FreeSized {
        /// As in `Free`.
        pick: usize,
    },
    /// Frees the block that was freed last once more.
    FreeAgain,
    /// Frees whatever is at a unit; usually nothing that could be freed.
    FreeAt {
        /// The unit; may be outside the arena.
        index: u64,
    },
    /// Frees whatever is at a unit, by an order; usually nothing that could be freed.
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
    /// Reserves a range; refused unless all of it is free.
    Reserve {
        /// First unit.
        start: u64,
        /// The unit after the last; may be outside the arena, or before the first.
        end: u64,
    },
    /// Gives a range to the allocator; refused unless all of it is reserved.
    Release {
        /// First unit.
        start: u64,
        /// The unit after the last; may be outside the arena, or before the first.
        end: u64,
    },
    /// Allocates blocks of an order until that is refused, then frees them all.
    Drain {
        /// The order; may be above the largest.
        order: u32,
    },
    /// Compares statistics, walk and maps with the specification, and runs the audit.
    Inspect,
    /// Something with a run, a part of what is held, or many blocks.
    Run(RunOp),
}

/// An operation on runs of any number of units, on parts of what is held, or on many blocks. What is picked is
/// a block or a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RunOp {
    /// Allocates so many units.
    Alloc {
        /// Units, 1 to those of the arena.
        units: u64,
    },
    /// Allocates units at a place; nothing if that ends outside the arena.
    At {
        /// First unit.
        index: u64,
        /// Units, 1 at least.
        units: u64,
    },
    /// Allocates units in a range; nothing if that is none of the arena.
    Within {
        /// Units, 1 to those of the arena.
        units: u64,
        /// log2 of what the first unit is to be a multiple of.
        order: u32,
        /// First unit of the range.
        start: u64,
        /// The unit after the last.
        end: u64,
        /// Whether the last place is wanted, instead of the first.
        top_down: bool,
    },
    /// Frees a block or run that is held.
    Free {
        /// Which, counted modulo the number held. Nothing if none is.
        pick: usize,
    },
    /// Shrinks a block or run.
    Shrink {
        /// As in `Free`.
        pick: usize,
        /// To one more than this, modulo its units.
        units: u64,
    },
    /// Grows a block or run.
    Grow {
        /// As in `Free`.
        pick: usize,
        /// By so many units.
        units: u64,
    },
    /// Splits a block or run in two.
    SplitOff {
        /// As in `Free`.
        pick: usize,
        /// After one more than this, modulo its units. Nothing if that is its end.
        units: u64,
    },
    /// Splits a block or run into blocks.
    Split {
        /// As in `Free`.
        pick: usize,
        /// Their order, or the largest that is possible.
        order: u32,
    },
    /// Gives back a part of a block or run.
    FreePart {
        /// As in `Free`.
        pick: usize,
        /// Units before the part, modulo those there are.
        skip: u64,
        /// One less than the units of the part, modulo those there are.
        units: u64,
    },
    /// Allocates many blocks.
    Batch {
        /// Their order, at most the largest.
        order: u32,
        /// How many.
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
    /// A program on one lane, in an arena without reserved units.
    #[must_use]
    pub fn new(units: u64, ops: impl IntoIterator<Item = Op>) -> Self {
        let steps = ops.into_iter().map(|op| Step { lane: 0, op }).collect();
        Self { units, reserved: false, steps }
    }
}
