//! The `nbbs` command.
//!
//! ```text
//! args     the command line          cmd      the verbs, one file each
//! trace    reading traces            replay   replaying them: timing, verification, report
//! limit    operations against the bare compare-and-swap
//! pool     objects of one size from arenas, pools and heaps
//! clock    timing one operation      counted  counting read-modify-writes
//! median   table   progress
//! ```
#![deny(unsafe_code)]

mod args;
mod clock;
mod cmd;
mod counted;
mod limit;
mod median;
mod pool;
mod progress;
mod replay;
mod table;
mod trace;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Bench, Cli, Command};

/// Ends with 0 if all is well, with 1 if an allocator was not verified, with 2 if the command cannot be
/// carried out.
fn main() -> ExitCode {
    let command = Cli::parse().command.unwrap_or_else(args::default_command);
    let result = match command {
        Command::Replay(args) => cmd::replay::run(&args),
        Command::Bench(Bench::Limit(args)) => cmd::limit::run(&args),
        Command::Bench(Bench::Pool(args)) => cmd::pool::run(&args),
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
