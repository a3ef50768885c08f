//! A measured case.

use baselines::Contender;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::measure::Case;
use super::round::{Outcome, Phase};
use super::workloads::Orders;
use crate::args::UNIT_BYTES;
use crate::median::{hundredths, median};

/// A cell of the tables, an object of `--json`, a line of `--csv`. What a case does not have is null, and so
/// is every time of an allocator that was found wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub command: &'static str,
    pub workload: &'static str,
    /// The part of the workload.
    pub phase: &'static str,
    pub allocator: &'static str,
    pub kind: &'static str,
    pub safe: bool,
    pub private_caches: bool,
    pub threads: usize,
    pub order: Option<u32>,
    pub size_bytes: Option<u64>,
    pub arena_bytes: u64,
    /// Allocations and frees of the median round.
    pub ops: u64,
    /// Of all threads together.
    pub ops_per_s: Option<f64>,
    /// The same as time: all threads together.
    pub ns_per_op: Option<f64>,
    /// Of the fastest round and of the slowest.
    pub min_ns_per_op: Option<f64>,
    pub max_ns_per_op: Option<f64>,
    /// Whether the rounds lie so far apart that their median says little.
    pub noisy: bool,
    /// Whether the workload came to its end before time was up.
    pub complete: bool,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub p999_ns: Option<f64>,
    pub max_ns: Option<f64>,
    pub metadata_bytes: usize,
    pub rmw_per_op: Option<f64>,
    /// Needs the processor's counters.
    pub instructions_per_op: Option<f64>,
    /// Allocations refused in the first round.
    pub refused: u64,
    pub gib_per_s: Option<f64>,
    /// `frag`: of the frames of 2 MiB that could be free, those that are.
    pub recovered_percent: Option<f64>,
    pub verified: bool,
    pub violation: Option<String>,
}

/// The spread of the rounds, as a part of their median, from which on a row is called noisy.
pub const NOISY: f64 = 0.25;

impl Row {
    /// A row for each phase.
    pub fn of(
        case: &Case<'_>,
        contender: &Contender,
        rounds: &[Outcome],
        verified: &Outcome,
        latency: &Outcome,
        steps: Option<&Outcome>,
    ) -> Vec<Self> {
        let all = || rounds.iter().chain([verified, latency]).chain(steps);
        let violation = all().find_map(|outcome| outcome.violation.clone());
        let common = Self::empty(case, contender, rounds, violation);
        let row = |place: usize| {
            let phases: Vec<&Phase> = rounds.iter().map(|round| &round.phases[place]).collect();
            let mut row = common.clone();
            row.phase = phases[0].name;
            row.ops = median(phases.iter().map(|phase| phase.ops as f64)) as u64;
            row.complete = phases.iter().all(|phase| phase.complete);
            row.recovered_percent = row.recovered_percent.filter(|_| row.complete);
            if row.verified && row.ops > 0 {
                row.set_times(&phases);
                row.set_latency(latency.phases[place].latency.as_ref());
                let steps = steps.map(|steps| &steps.phases[place]).filter(|phase| phase.ops > 0);
                row.rmw_per_op =
                    steps.map(|phase| hundredths(phase.steps as f64 / phase.ops as f64));
            }
            row
        };
        (0..rounds[0].phases.len()).map(row).collect()
    }

    fn empty(
        case: &Case<'_>,
        contender: &Contender,
        rounds: &[Outcome],
        violation: Option<String>,
    ) -> Self {
        let order = match case.workload.orders {
            Orders::Mixed => None,
            _ => Some(case.setting.order),
        };
        let recovered = rounds.iter().filter_map(|round| round.recovered_percent);
        let recovered = (case.workload.name == "frag").then(|| hundredths(median(recovered)));
        Self {
            command: "bench",
            workload: case.workload.name,
            phase: "",
            allocator: contender.name,
            kind: contender.build.kind(),
            safe: contender.safe,
            private_caches: contender.private_caches,
            threads: case.setting.threads,
            order,
            size_bytes: order.map(|order| UNIT_BYTES << order),
            arena_bytes: case.units * UNIT_BYTES,
            ops: 0,
            ops_per_s: None,
            ns_per_op: None,
            min_ns_per_op: None,
            max_ns_per_op: None,
            noisy: false,
            complete: false,
            p50_ns: None,
            p99_ns: None,
            p999_ns: None,
            max_ns: None,
            metadata_bytes: rounds.iter().map(|round| round.metadata_bytes).max().unwrap_or(0),
            rmw_per_op: None,
            instructions_per_op: None,
            refused: rounds[0].refused,
            gib_per_s: None,
            recovered_percent: recovered.filter(|_| violation.is_none()),
            verified: violation.is_none(),
            violation,
        }
    }

    fn set_times(&mut self, phases: &[&Phase]) {
        let times = || phases.iter().map(|phase| phase.ns / phase.ops.max(1) as f64);
        let ns = median(times());
        let (min, max) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
        self.noisy = max - min > NOISY * ns;
        self.ns_per_op = Some(hundredths(ns));
        self.min_ns_per_op = Some(hundredths(min));
        self.max_ns_per_op = Some(hundredths(max));
        self.ops_per_s = Some((1e9 / ns).round());
        if self.workload == "fill" {
            let gib_per_ns = UNIT_BYTES as f64 / ns / (1_u64 << 30) as f64;
            self.gib_per_s = Some(hundredths(gib_per_ns * 1e9));
        }
    }

    fn set_latency(&mut self, latency: Option<&Histogram<u64>>) {
        let Some(tenths) = latency.filter(|latency| !latency.is_empty()) else { return };
        let at = |quantile| Some(tenths.value_at_quantile(quantile) as f64 / 10.0);
        self.p50_ns = at(0.5);
        self.p99_ns = at(0.99);
        self.p999_ns = at(0.999);
        self.max_ns = Some(tenths.max() as f64 / 10.0);
    }
}
