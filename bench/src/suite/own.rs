//! Figures that only the rows of one workload have: how they are made, and how the table shows them.

use super::measure::WorkloadCase;
use super::row::Passes;
use crate::args::UNIT_BYTES;
use crate::median::{hundredths, median};
use crate::row::Row;
use crate::table::{Column, hundredths as to_hundredths, most, or_dash};

/// A figure that only one workload has.
pub struct Own {
    /// Fills it in, or sets null if it is not known.
    pub set: fn(&mut Row, &WorkloadCase<'_>, &Passes<'_>),
    /// The columns that show it.
    pub columns: &'static [Column<'static>],
}

/// The share of the frames of 2 MiB that are free, of those that could be.
pub static RECOVERED: Own = Own {
    set: |row, _, passes| {
        let recovered = passes.rounds.iter().filter_map(|round| round.recovered_percent);
        let recovered = (row.complete && !row.is_wrong()).then(|| hundredths(median(recovered)));
        row.set("recovered_percent", recovered);
    },
    columns: &[("2 MiB free", |rows| {
        or_dash(most(rows).figure("recovered_percent"), |percent| format!("{percent:.1} %"))
    })],
};

/// The share of a heap's memory that its blocks had asked for when it was full.
pub static EFFICIENCY: Own = Own {
    set: |row, _, passes| {
        let efficiency = passes.rounds.iter().filter_map(|round| round.efficiency_percent);
        let efficiency: Vec<f64> = efficiency.collect();
        let there = row.complete && !efficiency.is_empty();
        row.set("efficiency_percent", there.then(|| median(efficiency)));
    },
    columns: &[("in use when full", |rows| {
        or_dash(most(rows).figure("efficiency_percent"), |percent| format!("{percent:.2} %"))
    })],
};

/// The time of a pair of operations on one thread while the others do as much, at each number of threads.
pub static PAIR_OF_A_THREAD: Own = Own {
    set: |row, _, _| {
        let pair = row.ns_per_op.map(|ns| ns * 2.0 * row.threads as f64);
        row.set("ns_per_pair_of_a_thread", pair);
    },
    columns: &[("ns a pair, each thread", |rows| {
        let pair =
            |row: &&Row| or_dash(row.figure("ns_per_pair_of_a_thread"), |ns| format!("{ns:.0}"));
        rows.iter().map(pair).collect::<Vec<_>>().join(" / ")
    })],
};

/// The memory that is handed out in a second, unit by unit.
pub static SPEED: Own = Own {
    set: |row, _, _| {
        let gib_per_ns = |ns: f64| UNIT_BYTES as f64 / ns / (1_u64 << 30) as f64;
        row.set("gib_per_s", row.ns_per_op.map(|ns| hundredths(gib_per_ns(ns) * 1e9)));
    },
    columns: &[("GiB/s", |rows| {
        or_dash(most(rows).figure("gib_per_s"), |figure| format!("{figure:.1}"))
    })],
};

/// The throughput beside that of one core, and the cost. `cores` itself fills it in.
pub static SCALING: Own = Own {
    set: |_, _, _| {},
    columns: &[
        ("cycles a pair", |rows| {
            or_dash(most(rows).figure("cycles_per_pair"), |count| format!("{count:.0}"))
        }),
        ("beside one core", |rows| {
            or_dash(most(rows).figure("beside_one"), |times| format!("{times:.2} x"))
        }),
        ("lines moved a pair", |rows| {
            or_dash(most(rows).figure("transfers_per_pair"), to_hundredths)
        }),
    ],
};

/// How often the other threads waited for a suspended one. The module `suspended` fills it in.
#[cfg(unix)]
pub static STALLED: Own = Own {
    set: |_, _, _| {},
    columns: &[("stalled, p99.9 if not", |rows| {
        let row = most(rows);
        let figures = row.figure("stalled").zip(row.figure("suspensions"));
        let Some((stalled, of)) = figures else { return "-".to_owned() };
        format!(
            "{stalled} of {of}, {}",
            or_dash(row.figure("baseline_p999_ns"), crate::table::time)
        )
    })],
};

/// How much memory a replay takes, and the layout of the rest.
pub static REPLAYED: Own = Own {
    set: |row, case, passes| {
        let trace = case.trace.expect("a replay has a trace");
        let bits = row.metadata_bytes.unwrap_or(0) as f64 * 8.0 / case.units as f64;
        let clock_ns =
            passes.latency.iter().filter_map(|pass| pass.phases.first()?.latency.as_ref());
        let clock_ns = median(clock_ns.map(|latency| latency.clock_ns(passes.clock)));
        row.set("trace", trace.name());
        row.set("trace_cpus", trace.threads());
        row.set("trace_ops", trace.ops());
        row.set("trace_bytes", trace.peak_bytes());
        row.set("metadata_bits_per_unit", hundredths(bits));
        row.set("clock_ns", hundredths(clock_ns));
        if row.p999_ns.is_some() {
            let timed =
                passes.latency.iter().filter_map(|pass| pass.phases.first()?.latency.as_ref());
            let slow: Vec<f64> = timed.map(|pass| pass.quantile_ns(0.999, passes.clock)).collect();
            row.set("min_p999_ns", hundredths(slow.iter().copied().fold(f64::MAX, f64::min)));
            row.set("max_p999_ns", hundredths(slow.iter().copied().fold(0.0, f64::max)));
        }
        let Some(verdict) = passes.verified.as_ref().and_then(|pass| pass.replayed.as_ref()) else {
            return;
        };
        row.refused = row.refused.max(verdict.failed);
        row.set("peak_units", verdict.peak_units);
        row.set("largest_free_order", verdict.end.largest_order);
        row.set("fragmentation_permille", verdict.end.fragmentation_permille);
        row.set("unusable_huge_permille", verdict.end.unusable_huge_permille);
    },
    columns: &[],
};
