//! The `nbbs` command.
//!
//! ```text
//! args     the command line          cmd      the verbs, one file each
//! market   everything that can be measured, by name
//! trace    reading traces            replay   replaying them: timing, verification, report
//! limit    operations against the bare compare-and-swap
//! suite    the field's workloads on every back-end and every heap: feature `suite`
//! requests exact sizes, batches, growth, placement
//! cores    many cores, simulated: the program that they run is in `bench/cores`
//! row      a measured case           output   what becomes of rows: printed, kept, shown
//! report   records of rows, comparisons, pages
//! pool     objects of one size from pools and heaps: feature `suite`
//! clock    timing one operation      counted  counting read-modify-writes and lines
//! located  errors of files, by line  lines    metadata words on a cache-line boundary
//! crew     threads that begin together            without  what stands where the suite would
//! median   table   progress
//! ```
//!
//! Without the feature `suite` the command replays traces, measures single operations and compares records: what the
//! first `cargo run` needs, with half of the crates.
#![deny(unsafe_code)]

mod args;
mod clock;
mod cmd;
mod cores;
mod counted;
mod crew;
#[cfg(feature = "suite")]
mod csv;
mod limit;
pub mod lines;
mod located;
pub mod market;
mod median;
mod output;
#[cfg(feature = "suite")]
mod pool;
mod progress;
mod replay;
mod report;
mod requests;
mod row;
#[cfg(feature = "suite")]
mod suite;
mod table;
mod trace;
#[cfg(not(feature = "suite"))]
mod without;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// Carries out the command line. Ends with 0 if all is well, with 1 if an allocator was not verified, with 2 if the
/// command cannot be carried out.
#[must_use]
pub fn run() -> ExitCode {
    let command = Cli::parse().command.unwrap_or_else(args::default_command);
    let result = match command {
        Command::Replay(args) => cmd::replay::run(&args),
        Command::Bench(measure) => cmd::bench(*measure),
        #[cfg(feature = "suite")]
        Command::Report(args) => cmd::report::run(&args),
        #[cfg(not(feature = "suite"))]
        Command::Report(_) => Err(without::refusal()),
        Command::Compare(args) => cmd::compare::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
