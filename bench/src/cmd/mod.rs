//! The verbs, one file each. Each says whether everything was as it should be.

pub mod compare;
pub mod limit;
pub mod replay;
pub mod report;
pub mod requests;
pub mod suite;

use std::io::{self, Write};

use serde::Serialize;

/// Prints a paragraph.
fn print(text: &str) -> anyhow::Result<()> {
    // Not `println!`, which panics when the reader has gone.
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Prints a row of `--json`.
fn print_json(row: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string(row)?)
}
