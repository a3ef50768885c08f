//! The `nbbs` command.
//!
//! ```text
//! args     the command line          cmd      the verbs, one file each
//! trace    reading traces            replay   replaying them: timing, verification, report
//! limit    operations against the bare compare-and-swap
//! suite    the field's workloads on every back-end and every heap
//! requests exact sizes, batches, growth, placement
//! report   pages and comparisons of what was measured
//! pool     objects of one size from arenas, pools and heaps
//! clock    timing one operation      counted  counting read-modify-writes and lines
//! located  errors of files, by line
//! median   table   progress
//! ```
#![deny(unsafe_code)]

mod args;
mod clock;
mod cmd;
mod counted;
mod limit;
mod located;
mod median;
mod pool;
mod progress;
mod replay;
mod report;
mod requests;
mod suite;
mod table;
mod trace;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Bench, Cli, Command, Measure};

/// Ends with 0 if all is well, with 1 if an allocator was not verified, with 2 if the command cannot be
/// carried out.
fn main() -> ExitCode {
    let command = Cli::parse().command.unwrap_or_else(args::default_command);
    let result = match command {
        Command::Replay(args) => cmd::replay::run(&args),
        Command::Bench(measure) => bench(*measure),
        Command::Report(args) => cmd::report::run(&args),
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

fn bench(measure: Measure) -> anyhow::Result<bool> {
    match measure {
        Measure { own: Some(Bench::Limit(args)), .. } => cmd::limit::run(&args),
        Measure { own: Some(Bench::Requests(args)), .. } => cmd::requests::run(&args),
        Measure { own: None, suite: Some(args) } => cmd::suite::run(&args),
        Measure { own: None, suite: None } => anyhow::bail!("it takes the name of a workload"),
    }
}
