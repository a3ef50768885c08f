//! The figures of one allocator on one trace.

use baselines::Contender;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::timing::Times;
use super::verify::Verdict;
use crate::clock::Clock;
use crate::median::{hundredths, median};

/// A row of the table, and an object of `--json`. Times are medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub command: &'static str,
    pub trace: String,
    pub allocator: &'static str,
    pub threads: usize,
    pub arena_bytes: u64,
    pub arena_units: u64,
    pub rounds: usize,
    pub ops: u64,
    pub mean_ns: f64,
    pub median_ns: f64,
    pub p99_ns: f64,
    pub p999_ns: f64,
    pub max_ns: f64,
    pub alloc_median_ns: f64,
    pub alloc_p999_ns: f64,
    pub free_median_ns: f64,
    pub free_p999_ns: f64,
    pub failed: u64,
    pub peak_units: u64,
    pub metadata_bytes: usize,
    pub metadata_bits_per_unit: f64,
    pub largest_free_order: Option<u32>,
    pub fragmentation_permille: u64,
    pub unusable_huge_permille: u64,
    pub verified: bool,
    pub violation: Option<String>,
    /// False for a faithful copy of a system that is known to be broken.
    pub safe: bool,
    /// The allocator's name as the table shows it.
    #[serde(skip)]
    pub label: String,
    pub clock_ns: f64,
    /// Between two times that the clock can tell apart.
    pub clock_step_ns: f64,
    /// Whether it keeps free blocks for each thread.
    pub private_caches: bool,
}

/// What a row is about.
pub struct Subject<'a> {
    pub trace: &'a str,
    pub contender: &'static Contender,
    pub threads: usize,
    pub arena_units: u64,
    pub metadata_bytes: usize,
}

impl Row {
    /// Sums up the rounds and the verification of one allocator.
    pub fn new(subject: &Subject<'_>, rounds: &[Times], verdict: &Verdict, clock: &Clock) -> Self {
        let over = |pick: fn(&Times) -> Histogram<u64>, quantile: f64| {
            let of_round =
                |times| Times::operation_ns(times, pick(times).value_at_quantile(quantile), clock);
            hundredths(median(rounds.iter().map(of_round)))
        };
        let allocs = |times: &Times| times.allocs.clone();
        let frees = |times: &Times| times.frees.clone();
        let broken = rounds.iter().find_map(|times| times.broken.clone());
        let violation = verdict.violation.clone().or(broken);
        let arena_units = subject.arena_units;
        let bits_per_unit = subject.metadata_bytes as f64 * 8.0 / arena_units as f64;
        let failed = rounds.iter().map(|times| times.failed).chain([verdict.failed]).max();
        Self {
            command: "replay",
            trace: subject.trace.to_owned(),
            allocator: subject.contender.name,
            threads: subject.threads,
            arena_bytes: arena_units * crate::args::UNIT_BYTES,
            arena_units,
            rounds: rounds.len(),
            ops: rounds.first().map_or(0, |times| times.all().len()),
            mean_ns: hundredths(median(rounds.iter().map(|times| times.mean_ns(clock)))),
            median_ns: over(Times::all, 0.5),
            p99_ns: over(Times::all, 0.99),
            p999_ns: over(Times::all, 0.999),
            max_ns: over(Times::all, 1.0),
            alloc_median_ns: over(allocs, 0.5),
            alloc_p999_ns: over(allocs, 0.999),
            free_median_ns: over(frees, 0.5),
            free_p999_ns: over(frees, 0.999),
            failed: failed.unwrap_or(0),
            peak_units: verdict.peak_units,
            metadata_bytes: subject.metadata_bytes,
            metadata_bits_per_unit: hundredths(bits_per_unit),
            largest_free_order: verdict.end.largest_order,
            fragmentation_permille: verdict.end.fragmentation_permille,
            unusable_huge_permille: verdict.end.unusable_huge_permille,
            verified: violation.is_none(),
            violation,
            safe: subject.contender.safe,
            label: subject.contender.label(),
            clock_ns: hundredths(median(rounds.iter().map(|times| times.clock_ns(clock)))),
            clock_step_ns: hundredths(clock.step_ns()),
            private_caches: subject.contender.private_caches,
        }
    }
}
