//! Turns what was measured of a contender at a case of the suite into rows.

use super::gauge::Latency;
use super::measure::WorkloadCase;
use super::on_heap;
use super::round::{Outcome, Phase};
use super::workloads::Orders;
use crate::args::UNIT_BYTES;
use crate::clock::Clock;
use crate::market::{Contender, Kind};
use crate::median::{hundredths, median, ten_thousandths};
use crate::row::Row;

/// All passes of a contender.
pub struct Passes<'a> {
    pub clock: &'a Clock,
    pub rounds: Vec<Outcome>,
    /// The passes that timed every operation by itself.
    pub latency: Vec<Outcome>,
    /// The pass that checked every operation against an owner map.
    pub verified: Option<Outcome>,
    /// The pass that counted read-modify-writes.
    pub steps: Option<Outcome>,
}

/// Returns a row for each phase. Passes that a panic ended have none; if no pass has any, the row of the whole case says
/// what is wrong.
pub fn rows(case: &WorkloadCase<'_>, contender: &Contender, passes: &Passes<'_>) -> Vec<Row> {
    let Passes { clock, rounds, latency, verified, steps } = passes;
    let all = || rounds.iter().chain(latency).chain(verified).chain(steps);
    let violation = all().find_map(|outcome| outcome.violation.clone());
    let metadata_bytes = rounds.iter().filter_map(|round| round.metadata_bytes).max();
    let common = row(case, contender, metadata_bytes, violation);
    let spurious = verified.as_ref().and_then(|outcome| outcome.spurious);
    let common = Row {
        refused: rounds.iter().map(|round| round.refused).max().unwrap_or(0),
        spurious_refusals: spurious,
        clock_step_ns: (!latency.is_empty()).then(|| hundredths(clock.step_ns())),
        // Without the pass with an owner map nobody has found it right.
        verified: common.verified.filter(|right| !right || verified.is_some()),
        ..common
    };
    let named = all().map(|outcome| &outcome.phases).max_by_key(|phases| phases.len());
    let named = named.map_or(&[][..], Vec::as_slice);
    let of_phase = |place: usize| {
        let phases: Vec<&Phase> =
            rounds.iter().filter_map(|round| round.phases.get(place)).collect();
        let mut row = common.clone();
        row.phase = named.get(place).map_or("".into(), |phase| phase.name.clone());
        row.ops = Some(median(phases.iter().map(|phase| phase.ops as f64)) as u64);
        row.complete = phases.iter().all(|phase| phase.complete);
        if !row.is_wrong() && row.ops > Some(0) {
            let times: Vec<_> = phases.iter().map(|phase| (phase.ns, phase.ops)).collect();
            row.set_times(&times);
            let latency = latency.iter().filter_map(|pass| pass.phases[place].latency.as_ref());
            set_latency(&mut row, &latency.collect::<Vec<_>>(), clock);
            set_counts(&mut row, steps.as_ref().map(|steps| &steps.phases[place]));
        }
        if let Some(own) = case.workload.own {
            (own.set)(&mut row, case, passes);
        }
        row
    };
    (0..named.len().max(1)).map(of_phase).collect()
}

/// Returns a row of a case with no times yet.
pub fn row(
    case: &WorkloadCase<'_>,
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
        verified: Some(violation.is_none()),
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
    row.worst_loads = Some(phase.counts.worst_loads);
}

/// Sets the times of the operations: medians over the passes that timed them.
fn set_latency(row: &mut Row, passes: &[&Latency], clock: &Clock) {
    if passes.iter().all(|pass| pass.count() == 0) {
        return;
    }
    let over = |figure: &dyn Fn(&Latency) -> f64| median(passes.iter().map(|pass| figure(pass)));
    row.mean_ns = Some(hundredths(over(&|pass| pass.mean_ns(clock))));
    row.set_percentiles(|quantile| over(&|pass| pass.quantile_ns(quantile, clock)));
}
