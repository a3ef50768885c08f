//! What a replay prints.

use crate::args::UNIT_BYTES;
use crate::row::Row;
use crate::table::{Layout, bytes, count, or_dash, percent, threads, time};
use crate::trace::Trace;

/// All that is printed about one trace.
pub fn trace(trace: &Trace, rows: &[Row]) -> String {
    let mut lines = vec![title(trace, rows.first().and_then(|row| row.arena_bytes).unwrap_or(0))];
    let same_table = |a: &Row, b: &Row| rows.len() <= SIDE_BY_SIDE || a.threads == b.threads;
    let groups = rows.chunk_by(same_table).flat_map(|rows| rows.chunks(SIDE_BY_SIDE));
    lines.extend(groups.map(|rows| LAYOUT.turned(&rows.iter().collect::<Vec<_>>()).to_string()));
    lines.extend(violations(rows));
    lines.extend(comparisons(rows));
    lines.join("\n") + "\n"
}

/// How many allocators fit a line.
const SIDE_BY_SIDE: usize = 7;

fn title(trace: &Trace, arena_bytes: u64) -> String {
    format!(
        "{}: page allocations on {} CPU{}, up to {} at once, from an arena of {}",
        trace.name,
        trace.cpus,
        if trace.cpus == 1 { "" } else { "s" },
        bytes(trace.peak_units * UNIT_BYTES),
        bytes(arena_bytes),
    )
}

/// The name, with a warning unless it is safe: that some have caches is said below.
fn name(row: &Row) -> String {
    Row { private_caches: false, ..row.clone() }.label()
}

static LAYOUT: Layout<'static> = Layout {
    lines: &[("", |row| format!("{}\n{}", name(row), threads(row.threads)))],
    across: None,
    more: &[
        ("operations", |rows| count(rows[0].ops.unwrap_or(0))),
        ("mean", |rows| or_dash(rows[0].ns_per_op, time)),
        ("median", |rows| or_dash(rows[0].p50_ns, time)),
        ("p99", |rows| or_dash(rows[0].p99_ns, time)),
        ("p99.9", |rows| or_dash(rows[0].p999_ns, time)),
        ("maximum", |rows| or_dash(rows[0].max_ns, time)),
        ("failed allocations", |rows| count(rows[0].refused)),
        ("peak use, units", |rows| count(figure(rows[0], "peak_units") as u64)),
        ("  of the arena", |rows| {
            let of = figure(rows[0], "peak_units") as u64 * 1000;
            percent(of / figure(rows[0], "arena_units").max(1.0) as u64)
        }),
        ("metadata", |rows| bytes(rows[0].metadata_bytes.unwrap_or(0))),
        ("  bits per unit", |rows| format!("{:.2}", figure(rows[0], "metadata_bits_per_unit"))),
        ("largest free at the end", |rows| {
            let order = rows[0].figure("largest_free_order");
            order.map_or("none".to_owned(), |order| format!("order {order}"))
        }),
        ("fragmented at the end", |rows| percent(figure(rows[0], "unusable_huge_permille") as u64)),
        ("verified", |rows| if rows[0].verified { "yes" } else { "NO" }.to_owned()),
    ],
    left: 1,
};

fn figure(row: &Row, name: &str) -> f64 {
    row.figure(name).unwrap_or(0.0)
}

/// What went wrong, a line for each.
fn violations(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| {
        let violation = row.violation.as_ref()?;
        Some(format!("NOT VERIFIED: {}, {}: {violation}", name(row), threads(row.threads)))
    })
}

/// Who was faster, in plain words, by number of threads: each allocator is compared with the first of its kind, with caches
/// or without, and the first with caches with the first of all.
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
        at("in the mean", first.ns_per_op, other.ns_per_op, 0.0),
        at("at p99.9", first.p999_ns, other.p999_ns, figure(first, "clock_step_ns")),
    )
}

/// How to read the figures.
pub fn footer(clock_ns: f64, clock_step_ns: f64, rounds: usize) -> String {
    format!(
        "\
Every operation is timed by itself; what the clock itself costs ({clock_ns:.1} ns, measured on
nothing between the operations) is taken off. It goes in steps of {clock_step_ns:.1} ns: what differs
by one is alike, save for means, which are finer. Times are medians over {rounds} rounds, each on
a fresh allocator, allocators taking turns. Waiting for a block that another thread has
yet to allocate does not count. With nbbs-cached and linux-pcp each thread keeps free blocks
of its own. The traces were recorded above such caches, and have few hits left for others.
\"Verified\", peak and end come from passes of their own with an owner map: once in the
order of the trace, then, if there are several threads, on all of them at once. The end
is where the trace ends, before what it leaves is freed. Fragmented: of the free
memory, the share that lies outside free, aligned 2 MiB. A unit is a page of 4 KiB."
    )
}
