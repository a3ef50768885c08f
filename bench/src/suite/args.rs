//! `nbbs bench NAME...`: the command line.

use baselines::{CONTENDERS, Contender};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::workloads::{Orders, WORKLOADS, Workload};
use crate::args::{Arena, arena, contender, names, rounds, threads};

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

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = contender)]
    #[arg(help = format!("Allocators, of {} [default: all]", names(", ")))]
    pub allocators: Vec<&'static Contender>,

    /// Memory to allocate from [default: 1G; with --quick 128M]
    #[arg(long, value_name = "SIZE", value_parser = arena)]
    pub arena: Option<Arena>,

    /// Seconds after which each part of a round ends, whatever it has done; `larson` and `stress` go on so
    /// long [default: 0.5; with --quick 0.005]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,

    /// Rounds; every figure is the median over them [default: 5; with --quick 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub rounds: Option<usize>,

    /// Less of everything: `all` takes two to three minutes
    #[arg(long)]
    pub quick: bool,

    /// Prints one JSON object per row instead of tables
    #[arg(long)]
    pub json: bool,

    /// Prints comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
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

    /// The orders to run a workload with.
    pub fn orders(&self, workload: &Workload) -> Vec<u32> {
        let usual: &[u32] = if self.quick { &[0] } else { &[0, 3, 6] };
        match workload.orders {
            Orders::Asked => asked_or(&self.orders, usual),
            Orders::Units | Orders::Mixed => vec![0],
        }
    }

    /// The allocators asked for, or all.
    pub fn contenders(&self) -> Vec<&'static Contender> {
        let all: Vec<&Contender> = CONTENDERS.iter().collect();
        asked_or(&self.allocators, &all)
    }

    /// Units of the arena.
    pub fn units(&self) -> u64 {
        let usual = if self.quick { 1 << 15 } else { 1 << 18 };
        self.arena.map_or(usual, |arena| arena.units)
    }

    /// Seconds for each part of a round.
    pub fn duration(&self) -> f64 {
        self.duration.unwrap_or(if self.quick { 0.005 } else { 0.5 })
    }

    /// Rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// Whether blocks of so many orders above can be asked for as well.
    pub fn serves(order: u32, workload: &Workload) -> bool {
        order + workload.orders_above <= MAX_ORDER
    }
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
