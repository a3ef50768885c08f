//! Defines the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::market::{CONTENDERS, Contender, absent};
use crate::report::args::{Compare, Report};
use crate::suite::args::{Suite, known};

/// One unit of every arena here: a page of 4 KiB.
pub const UNIT_BYTES: u64 = 4096;

/// Measures and verifies nbbs, a lock-free buddy allocator, beside others.
///
/// Without a command it replays a built-in trace: the page allocations of a Linux kernel under redis-benchmark.
#[derive(Debug, Parser)]
#[command(name = "nbbs", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Reads the command line; ends the program if that is malformed.
    pub fn read() -> Self {
        let matches = taking_negatives(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Takes a negative number for the value of the option before it, whose refusal names the limits, not for an option.
fn taking_negatives(command: clap::Command) -> clap::Command {
    let taking = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(taking).mut_subcommands(taking_negatives)
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replays page-allocation traces on several allocators, verified operation by operation
    ///
    /// It is `nbbs bench replay` with a choice of allocators, to the end of each trace. Exits with 1 if a safe
    /// allocator is found wrong.
    Replay(Replay),
    /// Runs workloads on allocators beside each other, and prints what operations cost
    ///
    /// To begin with: nbbs bench cached larson --quick --allocators nbbs,linux. What was asked for and cannot be
    /// measured is named on standard error. Exits with 1 if a safe allocator is found wrong.
    Bench(Box<Suite>),
    /// Writes a page that shows what was measured: one self-contained HTML file
    Report(Report),
    /// Compares two records; exits with 1 if a safe allocator that was verified in OLD is found wrong in NEW
    Compare(Compare),
}

#[derive(Debug, Default, Args)]
pub struct Replay {
    /// Trace files, compressed with zstd, such as traces/redis.trace.zst [default: the same, which is built in]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = back_end)]
    #[arg(help = format!("Allocators to replay on, from {} [default: {USUAL}]", names(", ")))]
    pub allocators: Vec<String>,

    /// Numbers of threads, which stand in for the trace's CPUs [default: 1, and one per CPU of the trace, at most 128]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,

    /// Memory to allocate from, such as 512M or 1G [default: at least twice the trace's peak]
    #[arg(long, value_name = "SIZE", value_parser = arena, allow_hyphen_values = true)]
    pub arena: Option<Arena>,

    /// Number of rounds; every figure is the median over the rounds [default: 5]
    #[arg(long, alias = "repeat", value_name = "N", value_parser = rounds)]
    pub rounds: Option<usize>,

    /// Prints one JSON object per row instead of tables
    #[arg(long)]
    pub json: bool,

    /// Also writes a record, which `report` and `compare` read; compressed if FILE ends in .zst. Replaces a record that
    /// FILE holds
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl From<Replay> for Suite {
    /// Runs as `bench replay`, to the end of the trace, on this project's allocator and Linux's, without caches and
    /// with.
    fn from(args: Replay) -> Self {
        const AN_HOUR: f64 = 3600.0;
        let usual = || USUAL.split(',').map(str::to_owned).collect();
        Self {
            traces: args.traces,
            allocators: if args.allocators.is_empty() { usual() } else { args.allocators },
            threads: args.threads,
            arena: args.arena.into_iter().collect(),
            rounds: args.rounds,
            duration: Some(AN_HOUR),
            json: args.json,
            record: args.record,
            ..Self::of("replay")
        }
    }
}

/// The allocators that a replay compares by default.
const USUAL: &str = "nbbs,nbbs-cached,linux,linux-pcp";

/// The most threads: those of `hermit`, more than there are lanes, so that some share one.
pub const MAX_THREADS: usize = 128;

/// A number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    pub units: u64,
}

/// What a build without the feature `suite` adds to a list of allocators.
pub const MORE: &str =
    if cfg!(feature = "suite") { "" } else { "; with `--features suite` there are more" };

/// Returns the arguments of this command as text, without its name.
pub fn command_line() -> String {
    testkit::arguments().join(" ")
}

/// Returns the names of all back-ends.
pub fn names(separator: &str) -> String {
    labels(CONTENDERS, separator)
}

/// Returns the labels of contenders: their names, with a warning on unsafe ones.
pub fn labels(contenders: &[Contender], separator: &str) -> String {
    let names: Vec<String> = contenders.iter().map(Contender::label).collect();
    names.join(separator)
}

/// Checks that an allocator has this name; the error says why none has it, or lists those that a replay runs on.
fn back_end(name: &str) -> Result<String, String> {
    let unknown = || format!("there is no such allocator; there are {}{MORE}", names(", "));
    known(name).map_err(|_| absent(name).unwrap_or_else(unknown))
}

pub fn threads(text: &str) -> Result<usize, String> {
    number(text, 1..=MAX_THREADS)
}

pub fn rounds(text: &str) -> Result<usize, String> {
    number(text, 1..=100_000)
}

/// Parses a number in `range`.
pub fn number<N: FromStr + PartialOrd + Display>(
    text: &str,
    range: RangeInclusive<N>,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
}

pub fn arena(text: &str) -> Result<Arena, String> {
    let bytes = parse_size::Config::new().with_binary().parse_size(text).ok();
    let pages = bytes.filter(|bytes| bytes % UNIT_BYTES == 0).map(|bytes| bytes / UNIT_BYTES);
    let units = pages.filter(|units| (1..=nbbs::MAX_UNITS).contains(units));
    units.map(|units| Arena { units }).ok_or_else(|| {
        let max = (nbbs::MAX_UNITS * UNIT_BYTES) >> 50;
        format!("expected a multiple of 4 KiB, at most {max} PiB, such as 512M, 1G or 1T")
    })
}

#[cfg(test)]
mod tests {
    use super::{Cli, arena, back_end, number, taking_negatives};
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        taking_negatives(Cli::command()).debug_assert();
    }

    #[test]
    fn sizes_are_binary() {
        let units = |text| arena(text).map(|arena| arena.units);
        assert_eq!(units("4K"), Ok(1));
        assert_eq!(units("512M"), Ok(1 << 17));
        assert_eq!(units("1G"), Ok(1 << 18));
        assert_eq!(units("1.5GiB"), Ok(3 << 17));
        assert_eq!(units("1TB"), Ok(1 << 28));
        for wrong in ["", "0", "1", "5000", "x", "-5", "-1G", "8P", "8E", "99999999999G"] {
            let message = "expected a multiple of 4 KiB, at most 4 PiB, such as 512M, 1G or 1T";
            assert_eq!(units(wrong), Err(message.to_owned()), "{wrong:?}");
        }
    }

    #[test]
    fn unknown_allocators_get_the_known_ones() {
        let message = back_end("nobody").unwrap_err();
        assert!(message.contains("nbbs") && message.contains("linux"), "{message}");
        assert!(!message.contains("nbbs-heap"), "{message}");
    }

    #[test]
    fn a_refused_number_gets_its_limits() {
        for wrong in ["", "-1", "0", "8", "99999999999999999999", "x"] {
            assert_eq!(number(wrong, 1..=7_u32), Err("expected a number from 1 to 7".to_owned()));
        }
        assert_eq!(number("7", 1..=7_u32), Ok(7));
    }
}
