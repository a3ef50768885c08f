//! Rows: measured cases, which are printed, kept in records, shown on pages and compared.

mod impossible;

use std::borrow::Cow;
use std::thread::available_parallelism;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::args::UNIT_BYTES;
use crate::keyed::keyed;
use crate::market::{Contender, Kind};
use crate::median::{hundredths, median};
use impossible::{impossible, outlying};

/// A name, of this program or read from a record.
pub type Name = Cow<'static, str>;

/// A row: a cell of the tables, an object of `--json`, a line of `--csv` and of records. Figures that a case does not
/// have are null, and so is every time of an allocator that was found wrong.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Row {
    #[serde(default)]
    pub command: Name,
    pub workload: Name,
    /// The part of the workload.
    #[serde(default)]
    pub phase: Name,
    #[serde(deserialize_with = "name_of_today")]
    pub allocator: Name,
    #[serde(default = "back_end")]
    pub kind: Name,
    #[serde(default = "yes")]
    pub safe: bool,
    #[serde(default)]
    pub private_caches: bool,
    pub threads: usize,
    pub order: Option<u32>,
    pub size_bytes: Option<u64>,
    pub arena_bytes: Option<u64>,
    /// The allocations, granted or refused, and the frees of the median round.
    pub ops: Option<u64>,
    /// The operations per second, of all threads together.
    pub ops_per_s: Option<f64>,
    /// The same as a time, of all threads together.
    pub ns_per_op: Option<f64>,
    /// The times of the fastest round and of the slowest; if there are many rounds, the times that a tenth of them stay
    /// below and exceed.
    pub min_ns_per_op: Option<f64>,
    pub max_ns_per_op: Option<f64>,
    /// The number of rounds, or null if it is not known: in old records, and where nothing varies.
    pub rounds: Option<usize>,
    /// Whether the rounds lie so far apart that their median says little.
    #[serde(default)]
    pub noisy: bool,
    /// Whether the workload was complete before time was up.
    #[serde(default = "yes")]
    pub complete: bool,
    /// The times of single operations, each timed by itself.
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub p999_ns: Option<f64>,
    pub max_ns: Option<f64>,
    /// The time between two readings of the clock that differ: the times of single operations are no finer.
    pub clock_step_ns: Option<f64>,
    pub metadata_bytes: Option<u64>,
    /// Compare-and-swaps, won or lost.
    pub rmw_per_op: Option<f64>,
    pub failed_cas_per_op: Option<f64>,
    /// The cache lines that an operation wrote to, or tried to.
    pub lines_written_per_op: Option<f64>,
    /// The loads of bookkeeping by the operation with the most loads.
    pub worst_loads: Option<u64>,
    /// The instructions per operation, with `--instructions`, on one thread.
    pub instructions_per_op: Option<f64>,
    /// The allocations that were refused in all parts together, in the run of the case with the most of them. A round
    /// may run the case several times.
    #[serde(default)]
    pub refused: u64,
    /// The allocations of single units, in the pass with an owner map, that were refused while a unit was free and in
    /// no operation's hands.
    pub spurious_refusals: Option<u64>,
    /// Whether an oracle found nothing wrong, or null if none has judged.
    #[serde(default)]
    pub verified: Option<bool>,
    pub violation: Option<String>,
    /// The number of logical CPUs of the machine. In a record the header has it.
    #[serde(skip)]
    pub cpus: Option<usize>,
    #[serde(flatten)]
    pub more: Figures,
}

/// Figures that only one workload has, by name, in its order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub struct Figures(Vec<(Name, Value)>);

impl From<Map<String, Value>> for Figures {
    fn from(map: Map<String, Value>) -> Self {
        Self(map.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns today's name of an allocator: records up to 2026-11-22 call `nbbs-pool` the arena.
fn name_of_today<'de, D: Deserializer<'de>>(name: D) -> Result<Name, D::Error> {
    let name = Name::deserialize(name)?;
    Ok(match &*name {
        "arena" | "arena-box" | "arena-pointer" | "arena-single" => {
            name.replacen("arena", "nbbs-pool", 1).into()
        }
        "arena-untagged" | "arena-tagged" | "arena-sl" | "arena-mutex" => {
            name.replacen("arena", "freelist", 1).into()
        }
        _ => name,
    })
}

fn back_end() -> Name {
    Kind::BackEnd.name().into()
}

fn yes() -> bool {
    true
}

/// What is measured, without the allocator: two rows of one case can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Case {
    pub kind: Name,
    pub workload: Name,
    pub phase: Name,
    pub order: Option<u32>,
    pub size_bytes: Option<u64>,
    pub arena_bytes: Option<u64>,
    pub threads: usize,
}

/// The spread of the rounds, as a part of their median, above which a row is called noisy.
const NOISY: f64 = 0.25;

/// The workload that runs on simulated cores, each with a thread.
const SIMULATED: &str = "cores";

impl Row {
    /// Creates a row with nothing measured and nothing judged yet.
    pub fn new(workload: &'static str, contender: &Contender, threads: usize) -> Self {
        let &Contender { name, safe, private_caches, .. } = contender;
        Self { safe, private_caches, ..Self::named(workload, name, contender.kind(), threads) }
    }

    /// Creates such a row for something that is not a contender of the market.
    pub fn named(
        workload: &'static str,
        allocator: &'static str,
        kind: Kind,
        threads: usize,
    ) -> Self {
        Self {
            command: "bench".into(),
            workload: workload.into(),
            allocator: allocator.into(),
            kind: kind.name().into(),
            safe: true,
            threads,
            cpus: available_parallelism().ok().map(usize::from),
            ..Self::default()
        }
    }

    /// Sets the arena's number of units, and the order of the blocks.
    pub fn on(self, units: u64, order: Option<u32>) -> Self {
        let size_bytes = order.map(|order| UNIT_BYTES << order);
        Self { order, size_bytes, arena_bytes: Some(units * UNIT_BYTES), ..self }
    }

    /// Sets a figure that only this workload has, or null if there is none.
    pub fn set(&mut self, name: &'static str, figure: impl Into<Value>) {
        self.more.0.push((name.into(), figure.into()));
    }

    /// Returns the row with such a figure.
    pub fn with(mut self, name: &'static str, figure: impl Into<Value>) -> Self {
        self.set(name, figure);
        self
    }

    /// Returns the row with figures that only this workload has, rounded to hundredths. Missing ones are left out.
    pub fn with_all<const N: usize>(self, figures: [(&'static str, Option<f64>); N]) -> Self {
        let there = figures.into_iter().filter_map(|(name, figure)| Some((name, figure?)));
        there.fold(self, |row, (name, figure)| row.with(name, hundredths(figure)))
    }

    /// Returns the workload's own figure of that name.
    fn find(&self, name: &str) -> Option<&Value> {
        self.more.0.iter().find(|figure| figure.0 == name).map(|figure| &figure.1)
    }

    /// Returns a number among the workload's own figures.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.find(name).and_then(Value::as_f64)
    }

    /// Returns a text among the workload's own figures.
    pub fn text(&self, name: &str) -> &str {
        self.find(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns whether the allocator was found wrong.
    pub fn is_wrong(&self) -> bool {
        self.verified == Some(false)
    }

    /// Returns whether nothing was found wrong, or the allocator is not meant to be safe.
    pub fn is_good(&self) -> bool {
        !self.is_wrong() || !self.safe
    }

    /// Returns the name, and what a reader must know about the allocator.
    pub fn label(&self) -> String {
        match (self.safe, self.private_caches) {
            (false, _) => format!("{} (UNSAFE)", self.allocator),
            (_, true) => format!("{} (caches)", self.allocator),
            _ => self.allocator.clone().into_owned(),
        }
    }

    /// Returns whether it had more threads than processors.
    pub fn is_crowded(&self) -> bool {
        self.workload != SIMULATED && self.cpus.is_some_and(|cpus| self.threads > cpus)
    }

    /// Returns the case that is measured.
    pub fn case(&self) -> Case {
        Case {
            kind: self.kind.clone(),
            workload: self.workload.clone(),
            phase: self.phase.clone(),
            order: self.order,
            size_bytes: self.size_bytes,
            arena_bytes: self.arena_bytes,
            threads: self.threads,
        }
    }

    /// Returns the fastest round and the slowest, or the median if they are not known.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let ns = self.ns_per_op?;
        Some((self.min_ns_per_op.unwrap_or(ns), self.max_ns_per_op.unwrap_or(ns)))
    }

    /// Reads a row from a record; the oldest records call the phase `case`.
    ///
    /// # Errors
    /// The row lacks something, or has a figure that no measurement can have; the error names the first.
    pub fn read(value: &Value) -> Result<Self, String> {
        outlying(value).map_or(Ok(()), Err)?;
        let mut row: Self = keyed(value)?;
        if row.phase.is_empty() {
            row.phase = row.text("case").to_owned().into();
        }
        impossible(&row, value).map_or(Ok(row), Err)
    }

    /// Sets the times of the rounds, from the nanoseconds and operations of each.
    pub fn set_times(&mut self, rounds: &[(f64, u64)]) {
        let times = || rounds.iter().map(|&(ns, ops)| ns / ops.max(1) as f64);
        let (min, max) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
        self.rounds = Some(rounds.len());
        self.set_median(median(times()), (min, max));
    }

    /// Sets the times of single operations: `ns` returns the time that a part of them stays below.
    pub fn set_percentiles(&mut self, ns: impl Fn(f64) -> f64) {
        let at = |quantile| Some(hundredths(ns(quantile)));
        self.p50_ns = at(0.5);
        self.p99_ns = at(0.99);
        self.p999_ns = at(0.999);
        self.max_ns = at(1.0);
    }

    /// Sets the median time of an operation over the rounds, and their spread.
    pub fn set_median(&mut self, ns: f64, (min, max): (f64, f64)) {
        self.noisy = max - min > NOISY * ns;
        self.ns_per_op = Some(hundredths(ns));
        self.min_ns_per_op = Some(hundredths(min));
        self.max_ns_per_op = Some(hundredths(max));
        self.ops_per_s = Some((1e9 / ns).round());
    }
}
