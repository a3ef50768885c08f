//! Makes the page that shows a record, and compares two records.
//!
//! ```text
//! args     the command lines of report and compare
//! record   rows with where they come from: reading, writing
//! section  the rows by workload         summary   who wins where
//! chart    what the page's script draws  table     the same, to be read
//! keep     what becomes of the rows of a run: a record, a page
//! replaced the files of both
//! pictures a trace replayed: where memory is in use over time
//! page     the template, the style and the script of the page
//! changes  what differs between two records
//! ```

pub mod args;
pub mod changes;
#[cfg(feature = "suite")]
mod chart;
pub mod keep;
#[cfg(feature = "suite")]
pub mod page;
#[cfg(feature = "suite")]
mod pictures;
pub mod record;
mod replaced;
#[cfg(feature = "suite")]
mod section;
#[cfg(feature = "suite")]
mod summary;
#[cfg(feature = "suite")]
mod table;

/// Returns the error for a command line that needs the feature `suite`.
#[cfg(not(feature = "suite"))]
pub fn takes_suite() -> anyhow::Error {
    let words = crate::args::command_line();
    anyhow::anyhow!(
        "nbbs {words} needs the feature `suite`: cargo run --release --features suite -- {words}"
    )
}
