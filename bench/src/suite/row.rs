//! What was measured of a contender at a case of the suite, as rows.

use hdrhistogram::Histogram;

use super::measure::Case;
use super::on_heap;
use super::round::{Outcome, Phase};
use super::workloads::Orders;
use crate::args::UNIT_BYTES;
use crate::market::{Contender, Kind};
use crate::median::{median, ten_thousandths};
use crate::row::Row;

/// A row for each phase.
pub fn rows(
    case: &Case<'_>,
    contender: &Contender,
    rounds: &[Outcome],
    verified: &Outcome,
    latency: &Outcome,
    steps: Option<&Outcome>,
) -> Vec<Row> {
    let all = || rounds.iter().chain([verified, latency]).chain(steps);
    let violation = all().find_map(|outcome| outcome.violation.clone());
    let metadata_bytes = rounds.iter().filter_map(|round| round.metadata_bytes).max();
    let common = row(case, contender, metadata_bytes, violation);
    let common = Row { refused: rounds[0].refused, ..common };
    let of_phase = |place: usize| {
        let phases: Vec<&Phase> = rounds.iter().map(|round| &round.phases[place]).collect();
        let mut row = common.clone();
        row.phase = phases[0].name.into();
        row.ops = Some(median(phases.iter().map(|phase| phase.ops as f64)) as u64);
        row.complete = phases.iter().all(|phase| phase.complete);
        if row.verified && row.ops > Some(0) {
            let times: Vec<_> = phases.iter().map(|phase| (phase.ns, phase.ops)).collect();
            row.set_times(&times);
            set_latency(&mut row, latency.phases[place].latency.as_ref());
            set_counts(&mut row, steps.map(|steps| &steps.phases[place]));
        }
        if let Some(own) = case.workload.own.filter(|_| row.verified) {
            (own.set)(&mut row, rounds);
        }
        row
    };
    (0..rounds[0].phases.len()).map(of_phase).collect()
}

/// A row of a case with no times yet.
pub fn row(
    case: &Case<'_>,
    contender: &Contender,
    metadata_bytes: Option<u64>,
    violation: Option<String>,
) -> Row {
    let heap = contender.kind() == Kind::Heap;
    let asked = (case.workload.orders != Orders::Mixed).then_some(case.setting.order);
    let unit = if heap { on_heap::UNIT } else { UNIT_BYTES };
    Row {
        order: asked.filter(|_| !heap),
        size_bytes: asked.map(|order| unit << order),
        arena_bytes: Some(if heap { case.units } else { case.units * UNIT_BYTES }),
        metadata_bytes,
        verified: violation.is_none(),
        violation,
        ..Row::new(case.workload.name, contender, case.setting.threads)
    }
}

fn set_counts(row: &mut Row, counted: Option<&Phase>) {
    let Some(phase) = counted.filter(|phase| phase.ops > 0) else { return };
    let each = |count: u64| Some(ten_thousandths(count as f64 / phase.ops as f64));
    row.rmw_per_op = each(phase.counts.steps);
    row.failed_cas_per_op = each(phase.counts.lost);
    row.lines_written_per_op = each(phase.counts.lines);
}

/// Times of the operations, in tenths of nanoseconds.
pub fn set_latency(row: &mut Row, latency: Option<&Histogram<u64>>) {
    let Some(tenths) = latency.filter(|latency| !latency.is_empty()) else { return };
    let at = |quantile| Some(tenths.value_at_quantile(quantile) as f64 / 10.0);
    row.p50_ns = at(0.5);
    row.p99_ns = at(0.99);
    row.p999_ns = at(0.999);
    row.max_ns = Some(tenths.max() as f64 / 10.0);
}
