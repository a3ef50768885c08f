//! What can be wrong with a trace: every message names the line, the value and the limit.

use super::heap::{MAX_BYTES, MAX_THREAD};
use super::{MAX_CPU, MAX_ORDER};
use crate::located::Located;

/// A trace that cannot be replayed.
pub type TraceError = Located<Fault>;

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file system refuses.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// Not a zstd file.
    #[error("not zstd-compressed: it does not begin with the bytes 28 b5 2f fd")]
    NotZstd,
    /// Damaged or cut off.
    #[error("the compressed data is damaged or cut off here: {0}")]
    Damaged(String),
    /// Not a trace of the kind.
    #[error("the first line must be {header:?}, not {found:?}")]
    Header {
        /// What it must be.
        header: &'static str,
        /// What it is.
        found: String,
    },
    /// Comments only.
    #[error("there is no event in it")]
    Empty,
    /// No kind of event.
    #[error("{line:?} is neither {forms}")]
    NotAnEvent {
        /// The line.
        line: String,
        /// What an event looks like.
        forms: &'static str,
    },
    /// Not a number, or above its limit.
    #[error("CPU {0:?} is not a number from 0 to {MAX_CPU}")]
    Cpu(String),
    /// Not a number, or above its limit.
    #[error("order {0:?} is not a number from 0 to {MAX_ORDER}")]
    Order(String),
    /// Not a number, or above its limit.
    #[error("thread {0:?} is not a number from 0 to {MAX_THREAD}")]
    Thread(String),
    /// Not a number, or above its limit.
    #[error("size {0:?} is not a number from 0 to {MAX_BYTES}")]
    Size(String),
    /// No alignment.
    #[error("alignment {0:?} is not a power of two from 1 to {MAX_BYTES}")]
    Align(String),
    /// Not a number, or above its limit.
    #[error("ID {0:?} is not a number from 0 to {max}", max = u64::MAX)]
    Id(String),
    /// Allocated before.
    #[error("ID {id} is allocated again: line {line} allocated it, and IDs are never reused")]
    Reused {
        /// The ID.
        id: u64,
        /// Where it was allocated.
        line: usize,
    },
    /// Freed without being allocated.
    #[error("no line before allocates ID {0}")]
    Unknown(u64),
    /// Freed before.
    #[error("ID {id} is no longer allocated: line {line} freed it")]
    FreedTwice {
        /// The ID.
        id: u64,
        /// Where it was freed.
        line: usize,
    },
}
