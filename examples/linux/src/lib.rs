//! What the examples of Linux are made of: [`reservation`] gives out addresses and has them backed by memory only while
//! they are in use; [`balloon`] gives a running guest's free memory back to its host.
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

/// How a program called `name` ends; prints why, if it did not do its part.
pub fn status(name: &str, result: anyhow::Result<()>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
