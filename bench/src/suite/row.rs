//! A measured case.

use baselines::{Contender, Kind};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::measure::Case;
use super::on_heap;
use super::round::{Outcome, Phase};
use super::workloads::Orders;
use crate::args::UNIT_BYTES;
use crate::median::{hundredths, median, ten_thousandths};

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
    pub arena_bytes: Option<u64>,
    /// Allocations and frees of the median round.
    pub ops: u64,
    /// Of all threads together. (`replay`: if no thread had to wait for another.)
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
    pub metadata_bytes: Option<usize>,
    /// Compare-and-swaps, won or lost.
    pub rmw_per_op: Option<f64>,
    pub failed_cas_per_op: Option<f64>,
    /// Cache lines that an operation wrote to, or tried to.
    pub lines_written_per_op: Option<f64>,
    /// With --instructions, on one thread.
    pub instructions_per_op: Option<f64>,
    /// Allocations refused in the first round.
    pub refused: u64,
    pub gib_per_s: Option<f64>,
    /// `frag`: of the frames of 2 MiB that could be free, those that are.
    pub recovered_percent: Option<f64>,
    /// `suspended`: how often a thread was suspended within an operation, and how often the others waited for it;
    /// their 99.9th percentile if it is suspended between two.
    pub suspensions: Option<u64>,
    pub stalled: Option<u64>,
    pub baseline_p999_ns: Option<f64>,
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
                let times: Vec<_> = phases.iter().map(|phase| (phase.ns, phase.ops)).collect();
                row.set_times(&times);
                row.set_latency(latency.phases[place].latency.as_ref());
                row.set_counts(steps.map(|steps| &steps.phases[place]));
            }
            row
        };
        (0..rounds[0].phases.len()).map(row).collect()
    }

    /// A row with nothing measured yet.
    pub fn new(
        workload: &'static str,
        allocator: &'static str,
        kind: Kind,
        safe: bool,
        threads: usize,
    ) -> Self {
        Self {
            command: "bench",
            workload,
            phase: "",
            allocator,
            kind: kind.name(),
            safe,
            private_caches: false,
            threads,
            order: None,
            size_bytes: None,
            arena_bytes: None,
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
            metadata_bytes: None,
            rmw_per_op: None,
            failed_cas_per_op: None,
            lines_written_per_op: None,
            instructions_per_op: None,
            refused: 0,
            gib_per_s: None,
            recovered_percent: None,
            suspensions: None,
            stalled: None,
            baseline_p999_ns: None,
            verified: true,
            violation: None,
        }
    }

    /// A row of a case with no times yet.
    pub fn of_case(
        case: &Case<'_>,
        contender: &Contender,
        metadata_bytes: Option<usize>,
        violation: Option<String>,
    ) -> Self {
        let (kind, setting) = (contender.kind(), case.setting);
        let heap = kind == Kind::Heap;
        let asked = (case.workload.orders != Orders::Mixed).then_some(setting.order);
        let unit = if heap { on_heap::UNIT } else { UNIT_BYTES };
        Self {
            private_caches: contender.private_caches,
            order: asked.filter(|_| !heap),
            size_bytes: asked.map(|order| unit << order),
            arena_bytes: Some(if heap { case.units } else { case.units * UNIT_BYTES }),
            metadata_bytes,
            verified: violation.is_none(),
            violation,
            ..Self::new(case.workload.name, contender.name, kind, contender.safe, setting.threads)
        }
    }

    fn empty(
        case: &Case<'_>,
        contender: &Contender,
        rounds: &[Outcome],
        violation: Option<String>,
    ) -> Self {
        let recovered = rounds.iter().filter_map(|round| round.recovered_percent);
        let recovered = (case.workload.name == "frag").then(|| hundredths(median(recovered)));
        let metadata_bytes = rounds.iter().filter_map(|round| round.metadata_bytes).max();
        Self {
            refused: rounds[0].refused,
            recovered_percent: recovered.filter(|_| violation.is_none()),
            ..Self::of_case(case, contender, metadata_bytes, violation)
        }
    }

    /// Times of the rounds: nanoseconds and operations of each.
    pub fn set_times(&mut self, rounds: &[(f64, u64)]) {
        let times = || rounds.iter().map(|&(ns, ops)| ns / ops.max(1) as f64);
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

    fn set_counts(&mut self, counted: Option<&Phase>) {
        let Some(phase) = counted.filter(|phase| phase.ops > 0) else { return };
        let each = |count: u64| Some(ten_thousandths(count as f64 / phase.ops as f64));
        self.rmw_per_op = each(phase.counts.steps);
        self.failed_cas_per_op = each(phase.counts.lost);
        self.lines_written_per_op = each(phase.counts.lines);
    }

    /// Times of the operations, in tenths of nanoseconds.
    pub fn set_latency(&mut self, latency: Option<&Histogram<u64>>) {
        let Some(tenths) = latency.filter(|latency| !latency.is_empty()) else { return };
        let at = |quantile| Some(tenths.value_at_quantile(quantile) as f64 / 10.0);
        self.p50_ns = at(0.5);
        self.p99_ns = at(0.99);
        self.p999_ns = at(0.999);
        self.max_ns = Some(tenths.max() as f64 / 10.0);
    }
}
