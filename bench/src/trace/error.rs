//! The errors of traces: every message names the line, the value and the limit.

use super::heap::{MAX_BYTES, MAX_THREAD};
use super::{MAX_CPU, MAX_ORDER};
use crate::located::Located;

/// A trace that cannot be replayed.
pub type TraceError = Located<Fault>;

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file system refuses to read it.
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
        /// The header that it must be.
        header: &'static str,
        /// The line that was found.
        found: String,
    },
    /// Comments only.
    #[error("there is no event in it")]
    Empty,
    /// A line that is not an event.
    #[error("{line:?} is neither {forms}")]
    NotAnEvent {
        /// The line.
        line: String,
        /// The forms of an event.
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
    /// Not an alignment.
    #[error("alignment {0:?} is not a power of two from 1 to {MAX_BYTES}")]
    Align(String),
    /// Not a number, or above its limit.
    #[error("ID {0:?} is not a number from 0 to {max}", max = u64::MAX)]
    Id(String),
    /// An ID that was allocated before.
    #[error("ID {id} is allocated again: line {line} allocated it, and IDs are never reused")]
    Reused {
        /// The ID.
        id: u64,
        /// The line that allocated it.
        line: usize,
    },
    /// An ID that was never allocated.
    #[error("no line before allocates ID {0}")]
    Unknown(u64),
    /// An ID that was freed before.
    #[error("ID {id} is no longer allocated: line {line} freed it")]
    FreedTwice {
        /// The ID.
        id: u64,
        /// The line that freed it.
        line: usize,
    },
}
