//! What can be wrong with a record: every message names the file, the line and what it broke.

use super::header::FORMAT;
use crate::located::Located;

/// A record that cannot be used.
pub type RecordError = Located<Fault>;

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file system refuses.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// Compressed data that cannot be decoded, or text that is not UTF-8.
    #[error("damaged: {0}")]
    Damaged(std::io::Error),
    /// No object on the line.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// A row outside a run.
    #[error(
        "a record begins with a header, {{\"record\":{FORMAT},\"date\":...}}, as --record writes it; \
         this line has no key \"record\""
    )]
    NoHeader,
    /// A header of another format.
    #[error("a record of format {0}; this command reads formats up to {FORMAT}")]
    Format(String),
    /// A header without all it needs.
    #[error("not a header of a record: {0}")]
    Header(String),
    /// A row without all it needs, or with a figure that cannot be.
    #[error("not a row of a benchmark: {0}")]
    Row(String),
    /// What is left out is said in words.
    #[error("`skipped` must be a text, not {0}")]
    Skipped(String),
    /// An end that counts other rows than there are.
    #[error("the end of a run of {told} rows after {seen}")]
    End {
        /// What it says.
        told: String,
        /// Rows behind the header.
        seen: u64,
    },
    /// Headers only, or nothing at all.
    #[error("there is no row in it")]
    Empty,
}
