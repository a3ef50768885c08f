//! The code of the Linux examples: [`reservation`] gives out addresses, and has them backed by memory only while they
//! are in use; [`balloon`] gives a running guest's free memory back to its host.
//!
//! ```text
//! mapping      memory by offset, and the words by which its contents are checked
//! blocks       which sizes are drawn, and how a block is named
//! table        how figures are printed
//! reservation  reserve, commit, decommit; the load; what the operating system saw
//! balloon      guest, host, what they share, and the course of the demonstration
//! ```
#![cfg(target_os = "linux")]

pub mod balloon;
mod blocks;
mod mapping;
pub mod reservation;
mod table;

use std::io::{self, ErrorKind, Write};

/// Prints a paragraph.
fn print(text: impl std::fmt::Display) -> io::Result<()> {
    // Not `println!`, which panics if standard output is closed.
    writeln!(io::stdout(), "{text}")
}

/// Returns the exit status of a program called `name`. Prints why, if it failed.
pub fn status(name: &str, result: anyhow::Result<()>) -> std::process::ExitCode {
    let is_broken_pipe = |error: &anyhow::Error| {
        let error = error.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        // The reader of the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
