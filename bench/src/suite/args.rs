//! `nbbs bench NAME...`: the command line.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::on_heap;
use super::workloads::{Orders, WORKLOADS, Workload};
use crate::args::{Arena, UNIT_BYTES, arena, labels, names, rounds, threads};
use crate::market::{CONTENDERS, Contender, HEAPS, Kind};
use crate::output::{Format, Output};
use crate::pool::{self, Case};
use crate::report::keep::Kept;

/// The largest order: the largest that every contender serves.
const MAX_ORDER: u32 = 10;

#[derive(Debug, Args)]
pub struct Suite {
    /// Workloads, or `all`
    #[arg(value_name = "NAME", required = true, value_parser = workload())]
    pub workloads: Vec<String>,

    /// Numbers of threads [default: 1,2,4,8,16,32; with --quick 1,2,8]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,

    /// Orders of the blocks, where the workload does not say [default: 0,3,6; with --quick 0]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_ORDER)))]
    pub orders: Vec<u32>,

    /// Sizes of the blocks of heaps, in bytes [default: 8,128,1024; with --quick 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size_order)]
    pub sizes: Vec<u32>,

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = known)]
    #[arg(help = format!("Allocators, of {} [default: all]", all_names()))]
    pub allocators: Vec<String>,

    /// Memory for back-ends to allocate from [default: 1G; with --quick 64M, but for `replay`; where the threads'
    /// blocks have no room in that, twice as much, and again]
    #[arg(long, value_name = "SIZE", value_parser = arena)]
    pub arena: Option<Arena>,

    /// Memory for heaps to allocate from [default: 64M, for `heap-random` 160M, for `replay-heap` 256M; with
    /// --quick a quarter, a tenth and a half of that; twice as much, and again, where the blocks have no room]
    #[arg(long, value_name = "SIZE", value_parser = arena)]
    pub heap: Option<Arena>,

    /// What `replay-heap` replays [default: the built-in git trace]
    #[arg(long, value_name = "FILE")]
    pub heap_trace: Option<PathBuf>,

    /// What `pool` measures [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub cases: Vec<Case>,

    /// Allocations of `pool`, and as many frees, over all threads [default: 50000000; with --quick 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub pairs: Option<u64>,

    /// Seconds after which each part of a round ends, whatever it has done; `larson` and `stress` go on so
    /// long, and what is over before a 25th of it runs again [default: 0.5; with --quick 0.003]
    #[arg(long, value_name = "SECONDS", alias = "seconds", value_parser = seconds)]
    pub duration: Option<f64>,

    /// Rounds; every figure is the median over them [default: 5; with --quick 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub rounds: Option<usize>,

    /// Less of everything: `all` takes about two minutes, and without it hours: the trees of the workshop need
    /// minutes for a case of `frag` in 1 GiB. --record keeps every case as soon as it is measured
    #[arg(long)]
    pub quick: bool,

    /// Counts instructions too, on one thread: an operation's, and some 65 of the loop around it that are the same
    /// for all. Takes valgrind, and seconds for each row
    #[arg(long)]
    pub instructions: bool,

    /// Runs every round, and nothing else: no owner map, no counts
    #[arg(long, hide = true)]
    pub once: bool,

    // Not `Keep`: an optional command line has no such parts.
    /// Prints one JSON object per row instead of tables
    #[arg(long)]
    pub json: bool,

    /// Prints comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Also writes a page that shows what was measured
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Also writes a record, which `report` and `compare` read; compressed if FILE ends in .zst
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Prints nothing of what is measured.
    #[arg(skip)]
    pub silent: bool,
}

impl Suite {
    /// The workloads asked for, in the order of the table.
    pub fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        let asked = |name: &str| self.workloads.iter().any(|asked| asked == name || asked == "all");
        WORKLOADS.iter().filter(move |workload| asked(workload.name))
    }

    /// The numbers of threads asked for, or the usual ones.
    pub fn threads(&self) -> Vec<usize> {
        let usual: &[usize] = if self.quick { &[1, 2, 8] } else { &[1, 2, 4, 8, 16, 32] };
        asked_or(&self.threads, usual)
    }

    /// The numbers of threads to run a workload with.
    pub fn threads_of(&self, workload: &Workload) -> Vec<usize> {
        match workload.least_threads {
            1 => self.threads(),
            least if self.threads.is_empty() => vec![least],
            least => self.threads.iter().copied().filter(|&threads| threads >= least).collect(),
        }
    }

    /// The orders to run a workload with.
    pub fn orders(&self, workload: &Workload, kind: Kind) -> Vec<u32> {
        let (asked, usual): (_, &[u32]) = match (kind, self.quick) {
            (Kind::Heap, true) => (&self.sizes, &[3]),
            (Kind::Heap, false) => (&self.sizes, &[0, 4, 7]),
            (_, true) => (&self.orders, &[0]),
            (_, false) => (&self.orders, &[0, 3, 6]),
        };
        match workload.orders {
            Orders::Asked => asked_or(asked, usual),
            Orders::Units | Orders::Mixed => vec![0],
        }
    }

    /// The allocators of a kind that were asked for, or all.
    pub fn contenders(&self, kind: Kind) -> Vec<&'static Contender> {
        let of_kind =
            |contender: &&Contender| contender.kind() == kind && self.takes_part(contender.name);
        CONTENDERS.iter().chain(HEAPS).filter(of_kind).collect()
    }

    /// The pools that were asked for, or all.
    pub fn pools(&self) -> Vec<&'static pool::Contender> {
        pool::CONTENDERS.iter().filter(|contender| self.takes_part(contender.name)).collect()
    }

    fn takes_part(&self, name: &str) -> bool {
        self.allocators.is_empty() || self.allocators.iter().any(|asked| asked == name)
    }

    /// The cases of `pool` that were asked for, or all.
    pub fn cases(&self) -> Vec<Case> {
        asked_or(&self.cases, Case::value_variants())
    }

    /// Allocations of `pool`.
    pub fn pairs(&self) -> u64 {
        self.pairs.unwrap_or(if self.quick { 1_000_000 } else { 50_000_000 })
    }

    /// Units of a back-end's arena, bytes of a heap, if that is enough.
    pub fn units(&self, workload: &Workload, kind: Kind) -> u64 {
        let memory = &workload.memory;
        let (asked, (usual, quick), unit) = match kind {
            Kind::Heap => (self.heap, memory.heap_bytes, UNIT_BYTES),
            _ => (self.arena, memory.arena_units, 1),
        };
        let usual = if self.quick { quick } else { usual };
        asked.map_or(usual, |arena| arena.units * unit)
    }

    /// Whether the size of that memory was asked for.
    pub fn has_memory(&self, kind: Kind) -> bool {
        if kind == Kind::Heap { self.heap.is_some() } else { self.arena.is_some() }
    }

    /// Where the rows of a run go that has so many steps.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn output(&self, steps: usize) -> anyhow::Result<Output> {
        let format = match (self.json, self.csv, self.silent) {
            (true, ..) => Format::Json,
            (_, true, _) => Format::Csv,
            (.., true) => Format::Nothing,
            _ => Format::Tables,
        };
        let kept = Kept::new(self.record.as_deref())?.with_page(self.html.as_deref())?;
        Ok(Output::new(format, steps, kept))
    }

    /// Seconds for each part of a round.
    pub fn duration(&self) -> f64 {
        self.duration.unwrap_or(if self.quick { 0.003 } else { 0.5 })
    }

    /// Rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// The largest order of which blocks can be asked for.
    pub fn max_order(kind: Kind) -> u32 {
        if kind == Kind::Heap { on_heap::MAX_ORDER } else { MAX_ORDER }
    }
}

fn known(name: &str) -> Result<String, String> {
    let pool = pool::CONTENDERS.iter().any(|pool| pool.name == name);
    let found = pool || CONTENDERS.iter().chain(HEAPS).any(|contender| contender.name == name);
    let refusal = || format!("there is no allocator of that name; there are: {}", all_names());
    found.then(|| name.to_owned()).ok_or_else(refusal)
}

fn all_names() -> String {
    let (heaps, pools) = (labels(HEAPS, ", "), pool::names(", "));
    format!("the back-ends {}; the heaps {heaps}; the pools {pools}", names(", "))
}

/// A power of two of bytes, as an order of what a heap's smallest blocks are.
fn size_order(text: &str) -> Result<u32, String> {
    let max = on_heap::UNIT << on_heap::MAX_ORDER;
    let size = parse_size::Config::new().with_binary().parse_size(text);
    let size =
        size.ok().filter(|size| size.is_power_of_two() && (on_heap::UNIT..=max).contains(size));
    let order = size.map(|size| (size / on_heap::UNIT).trailing_zeros());
    order.ok_or_else(|| format!("it takes a power of two from {} to {max}", on_heap::UNIT))
}

fn asked_or<T: Clone>(asked: &[T], usual: &[T]) -> Vec<T> {
    if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
}

fn workload() -> impl TypedValueParser {
    let known = |workload: &Workload| PossibleValue::new(workload.name).help(workload.about);
    let all = PossibleValue::new("all").help("every one of them");
    PossibleValuesParser::new(WORKLOADS.iter().map(known).chain([all]))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "it takes seconds from 0.001 to 3600".to_owned())
}
