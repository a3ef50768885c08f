//! The figures of one allocator on one trace, as a row.

use hdrhistogram::Histogram;

use super::timing::Times;
use super::verify::Verdict;
use crate::clock::Clock;
use crate::market::Contender;
use crate::median::{hundredths, median};
use crate::row::Row;

/// What a row is about.
pub struct Subject<'a> {
    pub trace: &'a str,
    pub contender: &'static Contender,
    pub threads: usize,
    pub arena_units: u64,
    pub metadata_bytes: usize,
}

/// Sums up the rounds and the verification of one allocator. Times are medians over the rounds; `ns_per_op` is the mean
/// of single operations.
pub fn row(subject: &Subject<'_>, rounds: &[Times], verdict: &Verdict, clock: &Clock) -> Row {
    let over = |pick: fn(&Times) -> Histogram<u64>, quantile: f64| {
        let of_round =
            |times| Times::operation_ns(times, pick(times).value_at_quantile(quantile), clock);
        hundredths(median(rounds.iter().map(of_round)))
    };
    let allocs = |times: &Times| times.allocs.clone();
    let frees = |times: &Times| times.frees.clone();
    let broken = rounds.iter().find_map(|times| times.broken.clone());
    let violation = verdict.violation.clone().or(broken);
    let refused = rounds.iter().map(|times| times.failed).chain([verdict.failed]).max();
    let mut row = Row {
        command: "replay".into(),
        phase: format!("{}, by operation", subject.trace).into(),
        ops: Some(rounds.first().map_or(0, |times| times.all().len())),
        complete: true,
        p50_ns: Some(over(Times::all, 0.5)),
        p99_ns: Some(over(Times::all, 0.99)),
        p999_ns: Some(over(Times::all, 0.999)),
        max_ns: Some(over(Times::all, 1.0)),
        metadata_bytes: Some(subject.metadata_bytes as u64),
        refused: refused.unwrap_or(0),
        verified: violation.is_none(),
        violation,
        ..Row::new("replay", subject.contender, subject.threads).on(subject.arena_units, None)
    };
    let means: Vec<_> = rounds.iter().map(|times| (times.mean_ns(clock), 1)).collect();
    row.set_times(&means);
    let clock_ns = median(rounds.iter().map(|times| times.clock_ns(clock)));
    let bits_per_unit = subject.metadata_bytes as f64 * 8.0 / subject.arena_units as f64;
    row.with("trace", subject.trace)
        .with("rounds", rounds.len())
        .with("arena_units", subject.arena_units)
        .with("alloc_p50_ns", over(allocs, 0.5))
        .with("alloc_p999_ns", over(allocs, 0.999))
        .with("free_p50_ns", over(frees, 0.5))
        .with("free_p999_ns", over(frees, 0.999))
        .with("peak_units", verdict.peak_units)
        .with("metadata_bits_per_unit", hundredths(bits_per_unit))
        .with("largest_free_order", verdict.end.largest_order)
        .with("fragmentation_permille", verdict.end.fragmentation_permille)
        .with("unusable_huge_permille", verdict.end.unusable_huge_permille)
        .with("clock_ns", hundredths(clock_ns))
        .with("clock_step_ns", hundredths(clock.step_ns()))
}
