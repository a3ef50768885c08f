//! The `nbbs` command.
//!
//! ```text
//! args     the command line          cmd      the verbs, one file each
//! market   everything that can be measured, by name
//! suite    the workloads, and the rounds that measure them
//!   limit     operations against the bare compare-and-swap     requests  exact sizes, batches, growth, placement
//!   pool      objects of one size from pools and heaps         replay    traces: verification, the table
//!   cores     many cores, simulated: the program that they run is in `bench/cores`
//! trace    reading traces
//! row      a measured case           output   what becomes of rows: printed, kept, shown
//! report   records of rows, comparisons, pages
//! clock    timing one operation      counted  counting read-modify-writes and lines
//! located  errors of files, by line  lines    metadata words on a cache-line boundary
//! crew     threads that begin together
//! verdict  faster, slower or undecided: by the rounds
//! keyed    reading objects of JSON           median   table   csv   progress
//! ```
//!
//! Other crates' allocators, the page, and everything else that the first `cargo run` can do without, need the feature
//! `suite`.
#![deny(unsafe_code)]

mod args;
mod clock;
mod cmd;
mod cores;
mod counted;
mod crew;
mod csv;
mod keyed;
mod limit;
pub mod lines;
mod located;
pub mod market;
mod median;
mod output;
mod pool;
mod progress;
mod replay;
mod report;
mod requests;
mod row;
mod suite;
mod table;
mod trace;
mod verdict;

use std::io;
use std::process::ExitCode;

use args::{Cli, Command, Replay};

/// Carries out the command line. Exits with 0 if all is well, with 1 if an allocator was not verified, and with 2 if
/// the command cannot be carried out.
#[must_use]
pub fn run() -> ExitCode {
    let command = Cli::read().command.unwrap_or_else(|| Command::Replay(Replay::default()));
    let result = match command {
        Command::Replay(args) => cmd::bench::run(&args.into()),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Compare(args) => cmd::compare::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of the output has seen enough of it.
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
