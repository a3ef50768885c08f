//! A balloon in the manner of HyperAlloc: the host works on the guest's own frame allocator, in shared memory.

mod bits;
mod course;
mod guest;
mod host;
mod processes;
mod shared;

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use procfs::{Current, Meminfo};

use crate::table::size;
use processes::Processes;
use shared::{FRAME, Shared};

/// Gives a running guest's free memory back to its host, and then to the guest again. Guest and host are processes; the
/// host is killed again and again.
#[derive(Debug, clap::Parser)]
#[command(name = "balloon")]
pub struct Args {
    /// The guest's memory, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
    /// Number of threads of the guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    cpus: u16,
    /// Number of hosts that are killed.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Makes the host take frames that it saw free, without claiming them: the guest must notice.
    #[arg(long)]
    broken: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What the other processes are.
#[derive(Debug, Clone, clap::Subcommand)]
enum Part {
    /// Only for this program itself.
    #[command(hide = true)]
    Guest { memory: PathBuf, state: PathBuf },
    /// Only for this program itself.
    #[command(hide = true)]
    Host { memory: PathBuf, state: PathBuf },
}

/// Runs the example, or one of its parts.
///
/// # Errors
/// The operating system refuses, or a check fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.part {
        Some(Part::Guest { memory, state }) => guest::run(&open(memory, state)?, args.cpus.into()),
        Some(Part::Host { memory, state }) => host::run(&open(memory, state)?, args.broken),
        None => demonstrate(args),
    }
}

fn demonstrate(args: &Args) -> anyhow::Result<()> {
    let bytes = (u64::from(args.memory) << 20).next_multiple_of(FRAME);
    let available = Meminfo::current()?.mem_available.unwrap_or(u64::MAX);
    ensure!(
        bytes <= available / 2,
        "--memory {}: at most half of the memory that is available, {}",
        args.memory,
        size(available)
    );
    let (state, shared) = Shared::create(bytes)?;
    let processes = Processes::new(args, &state, &shared)?;
    course::run(processes, &shared, args.kills)
}

fn open(memory: &PathBuf, state: &PathBuf) -> anyhow::Result<Shared> {
    let open = |path: &PathBuf| {
        let file = File::options().read(true).write(true).open(path);
        file.with_context(|| path.display().to_string())
    };
    Shared::open(open(memory)?, &open(state)?)
}
