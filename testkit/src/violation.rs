//! Violations: what an allocator can do wrong, as a value that names the place.

use std::fmt;
use std::ops::Range;

/// A block: `2^order` units from `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// First unit.
    pub index: u64,
    /// log2 of the number of units.
    pub order: u32,
}

impl Block {
    /// Returns the `len` units at `index` as a block, if they are one.
    #[must_use]
    pub fn of(index: u64, len: u64) -> Option<Self> {
        let block = Self { index, order: len.trailing_zeros().min(62) };
        (len.is_power_of_two() && block.is_aligned()).then_some(block)
    }

    /// Returns how many units the block has.
    #[must_use]
    pub fn len(self) -> u64 {
        1 << self.order
    }

    /// Returns `false`: a block has at least one unit.
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }

    /// Returns the units of the block.
    #[must_use]
    pub fn units(self) -> Range<u64> {
        self.index..self.index + self.len()
    }

    /// Returns whether the block begins at a multiple of its size.
    #[must_use]
    pub fn is_aligned(self) -> bool {
        self.index & (self.len() - 1) == 0
    }
}

/// A block and the lane that allocated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The lane (the lowest 16 bits of its number).
    pub lane: usize,
    /// What it holds.
    pub block: Block,
}

/// The first thing that was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A block was handed out that does not lie within the arena.
    OutsideArena {
        /// The block.
        block: Block,
        /// Units in the arena.
        units: u64,
    },
    /// A block was handed out that is not naturally aligned.
    Misaligned {
        /// The block.
        block: Block,
    },
    /// A unit was handed out while it was held.
    Overlap {
        /// The unit.
        unit: u64,
        /// The lane that held it.
        holder: Holder,
        /// The lane that was given it, too.
        claimant: Holder,
    },
    /// A unit was handed out, or reserved, while it was reserved.
    Reserved {
        /// The unit.
        unit: u64,
    },
    /// A block is returned, but this unit is not held as a part of it: it was lost, or belongs to another block.
    NotHeld {
        /// The unit.
        unit: u64,
        /// The block that is returned.
        block: Block,
        /// The holder of the unit, if there is one.
        found: Option<Holder>,
    },
    /// A block that was held could not be freed.
    FreeRefused {
        /// The block.
        block: Block,
        /// The allocator's message.
        reason: String,
    },
    /// A block that nobody held was freed.
    FreeAccepted {
        /// The block.
        block: Block,
    },
    /// An allocation was refused although a block of that order was free.
    Dishonest {
        /// The block that was free.
        witness: Block,
    },
    /// Everything is returned, but a unit still has a holder.
    StillHeld {
        /// The unit.
        unit: u64,
        /// Who holds it.
        holder: Holder,
    },
    /// Everything is returned, but not every block of an order can be allocated.
    NotWhole {
        /// The order.
        order: u32,
        /// The number of blocks that could be allocated.
        blocks: u64,
        /// The number of blocks that the arena has.
        expected: u64,
    },
    /// These units are free, but cannot be allocated.
    Lost {
        /// The units.
        units: Vec<u64>,
    },
    /// A heap handed out bytes that were held, or that are not addresses.
    BytesOverlap {
        /// The bytes that were held.
        held: Range<usize>,
        /// The bytes that were handed out.
        claimed: Range<usize>,
    },
    /// A heap handed out bytes that are not its own.
    BytesOutside {
        /// The bytes that it manages.
        region: Range<usize>,
        /// The bytes that were handed out.
        claimed: Range<usize>,
    },
    /// A heap handed out bytes that are not aligned as asked.
    BytesMisaligned {
        /// The first byte.
        at: usize,
        /// The alignment that was asked for.
        align: usize,
    },
    /// Bytes of a heap are returned that are not held as one block.
    BytesNotHeld {
        /// The bytes that are returned.
        bytes: Range<usize>,
        /// The bytes that are held from the same address on.
        found: Option<Range<usize>>,
    },
    /// Everything is returned to a heap except these bytes.
    BytesStillHeld {
        /// The bytes.
        held: Range<usize>,
    },
    /// Everything is returned to a heap, but it grants fewer blocks than before anything was allocated.
    BytesLost {
        /// The size of each block.
        bytes: usize,
        /// The number of blocks that could be allocated.
        blocks: usize,
        /// The number of blocks that could be allocated before.
        expected: usize,
    },
    /// A byte of a block changed while its holder left it alone.
    ContentsChanged {
        /// The byte's address.
        at: usize,
        /// The value that its holder had written.
        expected: u8,
        /// The value that it has.
        got: u8,
    },
    /// An answer differs from the specification's.
    WrongAnswer {
        /// The question.
        question: String,
        /// The answer of the specification.
        expected: String,
        /// The allocator's message.
        got: String,
    },
    /// The allocator's own audit failed.
    Audit(String),
    /// The allocator panicked.
    Panicked(String),
    /// A thread took this many steps without finishing its operation: it waits for another.
    Stuck {
        /// The thread's lane.
        lane: usize,
        /// The number of steps taken in all.
        steps: u64,
    },
}

impl Violation {
    /// Returns the violation of an answer that differs from the specification's.
    pub fn wrong(
        question: impl Into<String>,
        expected: impl fmt::Debug,
        got: impl fmt::Debug,
    ) -> Self {
        Self::WrongAnswer {
            question: question.into(),
            expected: format!("{expected:?}"),
            got: format!("{got:?}"),
        }
    }

    /// Returns the violation of a panic, from its payload.
    #[must_use]
    pub fn from_panic(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        Self::Panicked(text.unwrap_or("a panic without a message").to_string())
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block of order {} at unit {}", self.order, self.index)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lane {} with the {}", self.lane, self.block)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideArena { block, units } => {
                write!(f, "{block} handed out of an arena of {units} units")
            }
            Self::Misaligned { block } => write!(f, "{block} handed out, not aligned to its size"),
            Self::Overlap { unit, holder, claimant } => {
                write!(f, "unit {unit} handed out twice: held by {holder}, given to {claimant}")
            }
            Self::Reserved { unit } => write!(f, "unit {unit} given away while it was reserved"),
            Self::NotHeld { unit, block, found: None } => {
                write!(f, "{block} returned, but nobody holds unit {unit}")
            }
            Self::NotHeld { unit, block, found: Some(found) } => {
                write!(f, "{block} returned, but unit {unit} belongs to {found}")
            }
            Self::FreeRefused { block, reason } => {
                write!(f, "{block} was held and could not be freed: {reason}")
            }
            Self::FreeAccepted { block } => write!(f, "{block} was freed, but nobody held it"),
            Self::Dishonest { witness } => {
                write!(f, "refused order {} while the {witness} was free", witness.order)
            }
            Self::StillHeld { unit, holder } => {
                write!(f, "unit {unit} is still held by {holder} after everything was returned")
            }
            Self::NotWhole { order, blocks, expected } => write!(
                f,
                "memory is not whole: {blocks} blocks of order {order} could be allocated, not {expected}"
            ),
            Self::Lost { units } => write!(f, "units {units:?} are free and cannot be had"),
            Self::BytesOverlap { held, claimed } => {
                write!(f, "bytes {claimed:#x?} handed out while {held:#x?} were held")
            }
            Self::BytesOutside { region, claimed } => {
                write!(f, "bytes {claimed:#x?} handed out of a heap over {region:#x?}")
            }
            Self::BytesMisaligned { at, align } => {
                write!(f, "address {at:#x} handed out, not aligned to {align}")
            }
            Self::BytesNotHeld { bytes, found: None } => {
                write!(f, "bytes {bytes:#x?} returned, but nobody holds a block there")
            }
            Self::BytesNotHeld { bytes, found: Some(found) } => {
                write!(f, "bytes {bytes:#x?} returned, but {found:#x?} are held")
            }
            Self::BytesStillHeld { held } => {
                write!(f, "bytes {held:#x?} are still held after everything was returned")
            }
            Self::BytesLost { bytes, blocks, expected } => write!(
                f,
                "memory is lost: {blocks} blocks of {bytes} bytes could be allocated at the end, {expected} before"
            ),
            Self::ContentsChanged { at, expected, got } => {
                write!(
                    f,
                    "the byte at {at:#x} is {got:#x}, but its holder had written {expected:#x}"
                )
            }
            Self::WrongAnswer { question, expected, got } => {
                write!(f, "{question} answered {got}, not {expected}")
            }
            Self::Audit(message) => write!(f, "audit: {message}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Stuck { lane, steps } => {
                write!(f, "lane {lane} did not finish within {steps} steps")
            }
        }
    }
}

impl std::error::Error for Violation {}
