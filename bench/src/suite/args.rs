//! Defines the command line of `nbbs bench NAME...`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches};

use super::on_heap;
use super::workloads::{Orders, Usual, WORKLOADS, Workload};
use crate::args::{Arena, MORE, UNIT_BYTES, arena, labels, names, number, rounds, threads};
use crate::cores::args::Cores;
use crate::limit::args::Limit;
use crate::market::{CONTENDERS, Contender, HEAPS, Kind, absent};
use crate::output::{Format, Output};
use crate::pool::{self, args::Objects};
use crate::report::keep::Kept;
use crate::{cores, limit};

/// The largest order that every contender serves.
const MAX_ORDER: u32 = 10;

#[derive(Debug, Args)]
pub struct Suite {
    /// Workloads to run, or `all` for all except `limit`, `requests` and `cores`
    #[arg(value_name = "NAME", required = true, value_parser = workload())]
    pub workloads: Vec<String>,

    /// Numbers of threads, or of cores [default: 1,2,4,8,16,32; with --quick 1,2,8; `limit` 1,2; `suspended` 2;
    /// `requests` and `first-failure` 1; `hermit` also 128; `replay` 1 and one per CPU of the trace; `cores`
    /// 2,4,8,16,32,64, with --quick 2,4,8, and 1 always]
    #[arg(long, value_name = "LIST", alias = "harts", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,

    /// Orders of the blocks of back-ends, which are allocators of pages, unless the workload sets them; a block of
    /// order N has 2^N pages of 4 KiB. Heaps take --sizes instead, and are measured too unless --allocators leaves
    /// them out [default: 0,3,6; with --quick 0; `limit` 0 to 9; `cores` 0,5,9]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = |text: &str| number(text, 0..=limit::MAX_ORDER))]
    pub orders: Vec<u32>,

    /// Sizes of the blocks of heaps, powers of two from 8 to 1M, unless the workload sets them. Back-ends take --orders
    /// instead, and are measured too unless --allocators leaves them out [default: 8,128,1024; with --quick 64;
    /// `hermit` 64, `cache-scratch` 8]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size_order,
          allow_hyphen_values = true)]
    pub sizes: Vec<u32>,

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = known)]
    #[arg(help = format!("Allocators to measure, from {} [default: all]", all_names()))]
    pub allocators: Vec<String>,

    /// Memory for back-ends to allocate from, such as 64M or 1G [default: 1G, with --quick 64M except for `replay`
    /// and `cores`; `limit` 1G,64G,1T, with --quick 1G,64G; doubled until the threads' blocks have room]
    #[arg(long, value_name = "LIST", alias = "arenas", value_delimiter = ',', value_parser = arena,
          allow_hyphen_values = true)]
    pub arena: Vec<Arena>,

    /// Memory for heaps to allocate from, such as 64M or 1G [default: 64M, for `heap-random` 160M, for
    /// `random-actions` and `heap-efficiency` 128M, for `replay-heap` 256M, for `first-failure` half of what the
    /// trace needs; most are smaller with --quick; doubled until the blocks have room]
    #[arg(long, value_name = "SIZE", value_parser = arena, allow_hyphen_values = true)]
    pub heap: Option<Arena>,

    /// Traces for `replay` [default: the built-in redis trace]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub traces: Vec<PathBuf>,

    /// Trace for `replay-heap` and `first-failure` [default: the built-in git trace]
    #[arg(long, value_name = "FILE")]
    pub heap_trace: Option<PathBuf>,

    /// Seconds after which each part of a round ends, even if it is not complete; `larson` and `stress` always take
    /// that long, and a round repeats a case until each part takes 20 ms, or this if it is less [default: 0.5; with --quick 0.02]
    #[arg(long, value_name = "SECONDS", alias = "seconds", value_parser = seconds)]
    pub duration: Option<f64>,

    /// Number of rounds; every figure is the median over the rounds [default: 5, with --quick 3; `requests` 11,
    /// with --quick 3; `limit` 101, with --quick 15]
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub rounds: Option<usize>,

    /// Measures less of everything: `all` takes minutes instead of hours (rbtree-vec, rbtree-linked and bitmap-tree need
    /// minutes for one case of `frag` in 1 GiB). --record keeps every case as soon as it is measured
    #[arg(long)]
    pub quick: bool,

    /// Also counts instructions, on one thread: those of an operation, and those of the loop around it, which are the
    /// same for all allocators. Needs valgrind, and takes seconds for each row
    #[arg(long)]
    pub instructions: bool,

    /// Runs only the rounds: no owner map, no counts
    #[arg(long, hide = true)]
    pub once: bool,

    /// Prints one JSON object per row instead of tables
    #[arg(long)]
    pub json: bool,

    /// Prints comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Also writes a page that shows what was measured. Replaces a page that FILE holds
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Also writes a record, which `report` and `compare` read; compressed if FILE ends in .zst. Replaces a record that
    /// FILE holds
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Prints no results.
    #[arg(skip)]
    pub silent: bool,

    #[command(flatten, next_help_heading = "Options of `pool`")]
    pub objects: Objects,

    #[command(flatten, next_help_heading = "Options of `limit`")]
    pub limit: Limit,

    #[command(flatten, next_help_heading = "Options of `cores`")]
    pub cores: Cores,
}

impl Suite {
    /// Returns the arguments of `nbbs bench` with only the name of a workload.
    pub fn of(name: &str) -> Self {
        let command = Self::augment_args(clap::Command::new("bench"));
        Self::from_arg_matches(&command.get_matches_from(["bench", name]))
            .expect("the name of a workload is all it needs")
    }

    /// Returns the workloads asked for, in the order of the table.
    pub fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        let all = self.workloads.iter().any(|name| name == "all");
        WORKLOADS.iter().filter(move |workload| self.names(workload) || (all && workload.of_all))
    }

    /// Returns whether a workload was asked for by its own name.
    pub fn names(&self, workload: &Workload) -> bool {
        self.workloads.iter().any(|name| name == workload.name)
    }

    /// Returns the defaults of a workload.
    fn usual(&self, workload: &Workload) -> Usual {
        if self.quick { workload.quick } else { workload.usual }
    }

    /// Returns the numbers of threads to run a workload with.
    pub fn threads(&self, workload: &Workload) -> Vec<usize> {
        let (least, most) = workload.threads;
        let mut threads = asked_or(&self.threads, self.usual(workload).threads);
        threads.retain(|threads| (least..=most).contains(threads));
        threads
    }

    /// Returns the orders to run a workload with.
    pub fn orders(&self, workload: &Workload, kind: Kind) -> Vec<u32> {
        let usual = self.usual(workload);
        match (workload.orders, kind) {
            (Orders::Asked, Kind::Heap) => asked_or(&self.sizes, usual.sizes),
            (Orders::Asked, _) => asked_or(&self.orders, usual.orders),
            _ => vec![0],
        }
    }

    /// Returns the allocators of a kind that were asked for, or all.
    pub fn contenders(&self, kind: Kind) -> Vec<&'static Contender> {
        self.market(kind).filter(|contender| self.takes_part(contender.name)).collect()
    }

    /// Returns all allocators of a kind that workloads can run on.
    pub fn market(&self, kind: Kind) -> impl Iterator<Item = &'static Contender> {
        CONTENDERS.iter().chain(HEAPS).filter(move |contender| contender.kind() == kind)
    }

    /// Returns whether an allocator of that name was asked for.
    pub fn takes_part(&self, name: &str) -> bool {
        self.allocators.is_empty() || self.allocators.iter().any(|asked| asked == name)
    }

    /// Returns the units of the arenas of a back-end, or the bytes of a heap, if these are enough.
    pub fn units(&self, workload: &Workload, kind: Kind) -> Vec<u64> {
        let usual = self.usual(workload);
        if kind == Kind::Heap {
            return vec![self.heap.map_or(usual.heap_bytes, |heap| heap.units * UNIT_BYTES)];
        }
        let asked: Vec<u64> = self.arena.iter().map(|arena| arena.units).collect();
        asked_or(&asked, usual.arena_units)
    }

    /// Returns whether the size of that memory was asked for.
    pub fn has_memory(&self, kind: Kind) -> bool {
        if kind == Kind::Heap { self.heap.is_some() } else { !self.arena.is_empty() }
    }

    /// Opens the output for the rows.
    ///
    /// # Errors
    /// A file cannot be written, or is a trace.
    pub fn output(&self) -> anyhow::Result<Output> {
        let format = match (self.json, self.csv, self.silent) {
            (true, ..) => Format::Json,
            (_, true, _) => Format::Csv,
            (.., true) => Format::Nothing,
            _ => Format::Tables,
        };
        let traces = self.traces.iter().chain(&self.heap_trace);
        let kept = Kept::new(self.record.as_deref(), self.html.as_deref(), traces)?;
        Ok(Output::new(format, kept))
    }

    /// Returns the seconds for each part of a round.
    pub fn duration(&self) -> f64 {
        self.duration.unwrap_or(if self.quick { 0.02 } else { 0.5 })
    }

    /// Returns the number of rounds.
    pub fn rounds(&self, workload: &Workload) -> usize {
        self.rounds.unwrap_or(self.usual(workload).rounds)
    }

    /// Returns the largest order that can be asked for.
    pub fn max_order(kind: Kind) -> u32 {
        if kind == Kind::Heap { on_heap::MAX_ORDER } else { MAX_ORDER }
    }
}

/// Checks that an allocator of any workload has this name; the error says why none has it, or lists the names that
/// exist.
pub fn known(name: &str) -> Result<String, String> {
    let found = crate::market::find(name).is_some()
        || pool::CONTENDERS.iter().any(|pool| pool.name == name)
        || cores::plan::names().contains(&name);
    let unknown = || format!("there is no such allocator; there are {}", all_names());
    found.then(|| name.to_owned()).ok_or_else(|| absent(name).unwrap_or_else(unknown))
}

fn all_names() -> String {
    let (heaps, pools) = (labels(HEAPS, ", "), pool::names(", "));
    let (back_ends, cores) = (names(", "), cores::plan::names().join(", "));
    format!(
        "the back-ends {back_ends}; the heaps {heaps}; the pools {pools}; on `cores` {cores}{MORE}"
    )
}

/// Parses a power of two of bytes, as an order of a heap's smallest blocks.
fn size_order(text: &str) -> Result<u32, String> {
    let max = on_heap::UNIT << on_heap::MAX_ORDER;
    let size = parse_size::Config::new().with_binary().parse_size(text);
    let size =
        size.ok().filter(|size| size.is_power_of_two() && (on_heap::UNIT..=max).contains(size));
    let order = size.map(|size| (size / on_heap::UNIT).trailing_zeros());
    order.ok_or_else(|| {
        format!("expected a power of two from {} to {max}, such as 64 or 1K", on_heap::UNIT)
    })
}

/// Returns what was asked for, each once, or what is usual.
fn asked_or<T: Clone + PartialEq>(asked: &[T], usual: &[T]) -> Vec<T> {
    let mut all = Vec::new();
    for one in if asked.is_empty() { usual } else { asked } {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    all
}

fn workload() -> impl TypedValueParser {
    let known = |workload: &Workload| PossibleValue::new(workload.name).help(workload.about);
    let all =
        PossibleValue::new("all").help("all workloads except `limit`, `requests` and `cores`");
    PossibleValuesParser::new(WORKLOADS.iter().map(known).chain([all]))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds from 0.001 to 3600".to_owned())
}
