//! The command line.

use std::path::PathBuf;

use clap::{Args, FromArgMatches, Parser, Subcommand};

use crate::cores::args::Cores;
use crate::market::{CONTENDERS, Contender};
use crate::output::{Format, Output};
use crate::report::args::{Compare, Report};
use crate::report::keep::Kept;
#[cfg(feature = "suite")]
use crate::suite::args::Suite;
#[cfg(not(feature = "suite"))]
use crate::without::Suite;

/// One unit of every arena here: a page of 4 KiB.
pub const UNIT_BYTES: u64 = 4096;

/// Measures and verifies nbbs, a lock-free buddy allocator, beside others.
///
/// Without a command it replays the page allocations of a Linux kernel under redis-benchmark, which
/// are built in.
#[derive(Debug, Parser)]
#[command(name = "nbbs", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replays page-allocation traces on several allocators, verified operation by operation
    Replay(Replay),
    /// Measures allocators beside each other, or single operations
    Bench(Box<Measure>),
    /// Writes a page that shows what was measured: one HTML file, which needs nothing else
    Report(Report),
    /// Compares two records: ends with 1 if a safe allocator that was verified in OLD is found wrong in NEW
    Compare(Compare),
}

/// Workloads by name, or a measurement with a command line of its own.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Measure {
    #[command(subcommand)]
    pub own: Option<Bench>,

    #[command(flatten)]
    pub suite: Option<Suite>,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// What an operation of nbbs costs against its floor, a bare compare-and-swap
    Limit(Limit),
    /// Exact sizes, batches, growth in place and placement
    Requests(Requests),
    /// What throughput becomes of on 1 to 64 cores, on a simulated machine
    Cores(Cores),
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Trace files [default: the built-in redis trace]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = contender)]
    #[arg(help = format!("Allocators, of {} [default: {USUAL}]", names(", ")))]
    pub allocators: Vec<&'static Contender>,

    /// Numbers of threads that stand in for the trace's CPUs [default: 1, and one per CPU]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,

    /// Memory to allocate from, such as 512M or 1G [default: at least twice the trace's peak]
    #[arg(long, value_name = "SIZE", value_parser = arena)]
    pub arena: Option<Arena>,

    /// Rounds; every figure is the median over them
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds)]
    pub repeat: usize,

    #[command(flatten)]
    pub keep: Keep,
}

/// What becomes of rows.
#[derive(Debug, Args)]
pub struct Keep {
    /// Prints one JSON object per row instead of tables
    #[arg(long)]
    pub json: bool,

    /// Also writes a record, which `report` and `compare` read; compressed if FILE ends in .zst
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl Keep {
    /// Where the rows of a run go that has so many steps.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn output(&self, steps: usize) -> anyhow::Result<Output> {
        let format = if self.json { Format::Json } else { Format::Tables };
        Ok(Output::new(format, steps, Kept::new(self.record.as_deref())?))
    }
}

#[derive(Debug, Args)]
pub struct Limit {
    /// Orders of the blocks
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2,3,4,5,6,7,8,9",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_ORDER)))]
    pub orders: Vec<u32>,

    /// Sizes of the arenas [default: 1G,64G,1T; with --quick 1G,64G]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = arena)]
    pub arenas: Vec<Arena>,

    /// Percent of the arena that is in use while pairs are measured
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,50,90,99",
          value_parser = clap::value_parser!(u32).range(0..=99))]
    pub fills: Vec<u32>,

    /// Numbers of threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2", value_parser = threads)]
    pub threads: Vec<usize>,

    /// Rounds; every figure is the median over them [default: 101; with --quick 15]
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub rounds: Option<usize>,

    /// Less of everything: under half a minute
    #[arg(long)]
    pub quick: bool,

    #[command(flatten)]
    pub keep: Keep,
}

#[derive(Debug, Args)]
pub struct Requests {
    /// Rounds; every time is the median over them
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = rounds)]
    pub rounds: usize,

    #[command(flatten)]
    pub keep: Keep,
}

/// What `nbbs` alone does: `nbbs replay`.
pub fn default_command() -> Command {
    let replay = Replay::augment_args(clap::Command::new("replay"));
    let matches = replay.get_matches_from(["replay"]);
    Command::Replay(
        Replay::from_arg_matches(&matches).expect("every argument of replay is optional"),
    )
}

/// What a replay compares unless told otherwise.
const USUAL: &str = "nbbs,nbbs-cached,linux,linux-pcp";

/// The largest order that `bench limit` takes: a block of half of the smallest arena, 1 GiB.
const MAX_ORDER: u32 = 17;

/// The most threads: as many as there are lanes.
const MAX_THREADS: usize = 64;

/// A number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    pub units: u64,
}

impl Replay {
    /// The allocators asked for, or the usual ones: this project's, and what everybody knows, without caches and with.
    pub fn contenders(&self) -> Vec<&'static Contender> {
        if self.allocators.is_empty() {
            USUAL.split(',').filter_map(crate::market::find).collect()
        } else {
            self.allocators.clone()
        }
    }
}

impl Limit {
    /// The arenas asked for, or the usual ones.
    pub fn arenas(&self) -> Vec<Arena> {
        let usual: &[u64] =
            if self.quick { &[1 << 18, 1 << 24] } else { &[1 << 18, 1 << 24, 1 << 28] };
        if self.arenas.is_empty() {
            usual.iter().map(|&units| Arena { units }).collect()
        } else {
            self.arenas.clone()
        }
    }

    /// The rounds asked for, or the usual ones.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 15 } else { 101 })
    }
}

pub fn contender(name: &str) -> Result<&'static Contender, String> {
    let found = CONTENDERS.iter().find(|contender| contender.name == name);
    let more =
        if cfg!(feature = "suite") { "" } else { "; with `--features suite` there are more" };
    let refusal =
        || format!("there is no allocator of that name; there are: {}{more}", names(", "));
    found.ok_or_else(refusal)
}

/// The names of all back-ends.
pub fn names(separator: &str) -> String {
    labels(CONTENDERS, separator)
}

/// Their names, with a warning where there is one.
pub fn labels(contenders: &[Contender], separator: &str) -> String {
    let names: Vec<String> = contenders.iter().map(Contender::label).collect();
    names.join(separator)
}

pub fn threads(text: &str) -> Result<usize, String> {
    number(text, MAX_THREADS)
}

pub fn rounds(text: &str) -> Result<usize, String> {
    number(text, 100_000)
}

fn number(text: &str, max: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("it takes a number from 1 to {max}"))
}

pub fn arena(text: &str) -> Result<Arena, String> {
    let bytes = parse_size::Config::new()
        .with_binary()
        .parse_size(text)
        .map_err(|error| format!("{error}; it takes a size such as 512M, 1G or 1T"))?;
    let units = bytes / UNIT_BYTES;
    if bytes % UNIT_BYTES != 0 || !(1..=nbbs::MAX_UNITS).contains(&units) {
        let max = (nbbs::MAX_UNITS * UNIT_BYTES) >> 50;
        return Err(format!("an arena is a multiple of 4 KiB, at least 4 KiB, at most {max} PiB"));
    }
    Ok(Arena { units })
}

#[cfg(test)]
mod tests {
    use super::{Cli, arena, contender};
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_binary() {
        let units = |text| arena(text).map(|arena| arena.units);
        assert_eq!(units("4K"), Ok(1));
        assert_eq!(units("512M"), Ok(1 << 17));
        assert_eq!(units("1G"), Ok(1 << 18));
        assert_eq!(units("1.5GiB"), Ok(3 << 17));
        assert_eq!(units("1TB"), Ok(1 << 28));
        for wrong in ["", "0", "1", "4097", "x", "-1G", "8E"] {
            assert!(units(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn unknown_allocators_get_the_known_ones() {
        let message = contender("jemalloc").unwrap_err();
        assert!(message.contains("nbbs") && message.contains("linux"), "{message}");
    }
}
