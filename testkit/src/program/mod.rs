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
mod sequential;
mod strategies;
mod subject;
mod truth;

pub use inspect::{inspect, observe};
pub use judged::Summary;
pub use plain::race_plain;
pub use race::{Body, LaneReport, Race, race};
pub use sequential::{Failure, run};
pub use strategies::{BOUNDARIES, geometries, programs, races};
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
    /// Makes a range a hole; refused unless all of it is free.
    Reserve {
        /// First unit.
        start: u64,
        /// The unit after the last; may be outside the arena, or before the first.
        end: u64,
    },
    /// Gives a range to the allocator; refused unless all of it is a hole.
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
    /// Whether all units are holes at first.
    pub reserved: bool,
    /// The operations, in order.
    pub steps: Vec<Step>,
}

impl Program {
    /// A program on one lane, in an arena without holes.
    #[must_use]
    pub fn new(units: u64, ops: impl IntoIterator<Item = Op>) -> Self {
        let steps = ops.into_iter().map(|op| Step { lane: 0, op }).collect();
        Self { units, reserved: false, steps }
    }
}
