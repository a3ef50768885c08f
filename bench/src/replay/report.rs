//! The table and texts that a replay prints.

use crate::args::UNIT_BYTES;
use crate::row::Row;
use crate::suite::workloads::Workload;
use crate::table::{Layout, bytes, count, or_dash, percent, threads, time};

/// Returns all that is printed about one trace.
pub fn table(_: &Workload, rows: &[Row]) -> String {
    let mut lines = vec![title(&rows[0])];
    let same_table = |a: &Row, b: &Row| rows.len() <= SIDE_BY_SIDE || a.threads == b.threads;
    let groups = rows.chunk_by(same_table).flat_map(|rows| rows.chunks(SIDE_BY_SIDE));
    lines.extend(groups.map(|rows| LAYOUT.turned(&rows.iter().collect::<Vec<_>>()).to_string()));
    lines.extend(violations(rows));
    lines.extend(comparisons(rows));
    lines.push(clock(&rows[0]));
    lines.join("\n") + "\n"
}

/// The number of allocators that fit on a line.
const SIDE_BY_SIDE: usize = 7;

fn title(row: &Row) -> String {
    let cpus = figure(row, "trace_cpus");
    format!(
        "{}: page allocations on {cpus} CPU{}, up to {} at once, from an arena of {}",
        row.text("trace"),
        if cpus == 1.0 { "" } else { "s" },
        bytes(figure(row, "trace_bytes") as u64),
        bytes(row.arena_bytes.unwrap_or(0)),
    )
}

fn clock(row: &Row) -> String {
    format!(
        "The clock costs {:.1} ns, which is subtracted, and has steps of {:.1} ns. Medians over {} rounds.",
        figure(row, "clock_ns"),
        figure(row, "clock_step_ns"),
        figure(row, "rounds"),
    )
}

/// Returns the name, with a warning unless it is safe. The footer says which have caches.
fn name(row: &Row) -> String {
    Row { private_caches: false, ..row.clone() }.label()
}

static LAYOUT: Layout<'static> = Layout {
    lines: &[("", |row| format!("{}\n{}", name(row), threads(row.threads)))],
    across: None,
    more: &[
        ("operations", |rows| {
            let cut = if rows[0].complete { "" } else { "*" };
            format!("{cut}{}", count(rows[0].ops.unwrap_or(0)))
        }),
        ("all threads together", |rows| or_dash(rows[0].ns_per_op, time)),
        ("mean", |rows| or_dash(rows[0].mean_ns, time)),
        ("median", |rows| or_dash(rows[0].p50_ns, time)),
        ("p99", |rows| or_dash(rows[0].p99_ns, time)),
        ("p99.9", |rows| or_dash(rows[0].p999_ns, time)),
        ("maximum", |rows| or_dash(rows[0].max_ns, time)),
        ("failed allocations", |rows| count(rows[0].refused)),
        ("peak use, units", |rows| count(figure(rows[0], "peak_units") as u64)),
        ("  of the arena", |rows| {
            let of = figure(rows[0], "peak_units") as u64 * 1000;
            percent(of * UNIT_BYTES / rows[0].arena_bytes.unwrap_or(1))
        }),
        ("metadata", |rows| bytes(rows[0].metadata_bytes.unwrap_or(0))),
        ("  bits per unit", |rows| format!("{:.2}", figure(rows[0], "metadata_bits_per_unit"))),
        ("largest free at the end", |rows| {
            let order = rows[0].figure("largest_free_order");
            order.map_or("none".to_owned(), |order| format!("order {order}"))
        }),
        ("fragmented at the end", |rows| percent(figure(rows[0], "unusable_huge_permille") as u64)),
        ("verified", |rows| if rows[0].is_wrong() { "NO" } else { "yes" }.to_owned()),
    ],
    left: 1,
};

fn figure(row: &Row, name: &str) -> f64 {
    row.figure(name).unwrap_or(0.0)
}

/// Returns a line for each violation.
fn violations(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| {
        let violation = row.violation.as_ref()?;
        Some(format!("NOT VERIFIED: {}, {}: {violation}", name(row), threads(row.threads)))
    })
}

/// Says in plain words which allocator was faster, by number of threads. Each allocator is compared with the first of
/// its kind, with caches or without, and the first with caches is compared with the first of all.
fn comparisons(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().enumerate().filter_map(|(place, other)| {
        let mut before = rows[..place].iter().filter(|row| row.threads == other.threads);
        let of_kind = before.clone().find(|row| row.private_caches == other.private_caches);
        Some(compare(of_kind.or_else(|| before.next())?, other))
    })
}

fn compare(first: &Row, other: &Row) -> String {
    let at = |name: &str, first: Option<f64>, other: Option<f64>, step: f64| {
        let (first, other) = (first.unwrap_or(0.0), other.unwrap_or(0.0));
        match other / first.max(0.01) {
            _ if (first - other).abs() <= step => format!("as fast {name}"),
            ratio if ratio >= 1.005 => format!("{ratio:.2} times as fast {name}"),
            ratio if ratio > 0.995 => format!("as fast {name}"),
            ratio => format!("{:.2} times SLOWER {name}", 1.0 / ratio),
        }
    };
    format!(
        "{}: {} beside {}: {}, {}.",
        threads(first.threads),
        name(first),
        name(other),
        at("in the mean", first.mean_ns, other.mean_ns, 0.0),
        at("at p99.9", first.p999_ns, other.p999_ns, figure(first, "clock_step_ns")),
    )
}

/// Explains how to read the figures.
pub const FOOTER: &str = "\
Every operation is timed by itself. Between operations the clock times nothing, to learn its own
cost. Times that differ by one step of the clock count as equal, except means, which are finer.
\"All threads together\" comes from rounds without a clock: the time from the first operation to
the last, divided by their number. It includes waiting for a block that another thread has yet to
allocate; the other times leave this out. Each round has a fresh allocator, and allocators take
turns. With nbbs-cached and linux-pcp each thread keeps free blocks of its own; the traces were
recorded above the kernel's own such lists. \"Verified\", peak and end come from separate passes
with an owner map: one in the order of the trace, and one on all threads. The end is where the
trace ends, before the blocks that it leaves are freed. Fragmented: the share of the free memory
that lies outside free, aligned 2 MiB. A unit is a page of 4 KiB.";
