//! The errors of records: every message names the file, the line and the rule that is broken.

use super::header::FORMAT;
use crate::located::Located;

/// A record that cannot be used.
pub type RecordError = Located<Fault>;

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file system refuses to read it.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// Compressed data that cannot be decoded, or text that is not UTF-8.
    #[error("damaged: {0}")]
    Damaged(std::io::Error),
    /// A line without an object.
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
    /// A header that lacks something.
    #[error("not a header of a record: {0}")]
    Header(String),
    /// A row that lacks something, or has an impossible figure.
    #[error("not a row of a benchmark: {0}")]
    Row(String),
    /// A note about what was not measured that is not a text.
    #[error("`skipped` must be a text, not {0}")]
    Skipped(String),
    /// An end with another number of rows than there are.
    #[error("the end of a run of {told} rows after {seen}")]
    End {
        /// The number of rows that it states.
        told: String,
        /// The number of rows after the header.
        seen: u64,
    },
    /// Headers only, or nothing at all.
    #[error("there is no row in it")]
    Empty,
}
