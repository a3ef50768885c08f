//! What a replay prints.

use comfy_table::Table;

use crate::args::UNIT_BYTES;
use crate::table::{bytes, count, percent, table, time};
use crate::trace::Trace;

use super::row::Row;

/// All that is printed about one trace.
pub fn trace(trace: &Trace, rows: &[Row]) -> String {
    let mut lines = vec![title(trace, rows.first().map_or(0, |row| row.arena_units))];
    let same_table = |a: &Row, b: &Row| rows.len() <= SIDE_BY_SIDE || a.threads == b.threads;
    let groups = rows.chunk_by(same_table).flat_map(|rows| rows.chunks(SIDE_BY_SIDE));
    lines.extend(groups.map(|rows| side_by_side(rows).to_string()));
    lines.extend(violations(rows));
    lines.extend(comparisons(rows));
    lines.join("\n") + "\n"
}

/// How many allocators fit a line.
const SIDE_BY_SIDE: usize = 7;

fn title(trace: &Trace, arena_units: u64) -> String {
    format!(
        "{}: page allocations on {} CPU{}, up to {} at once, from an arena of {}",
        trace.name,
        trace.cpus,
        if trace.cpus == 1 { "" } else { "s" },
        bytes(trace.peak_units * UNIT_BYTES),
        bytes(arena_units * UNIT_BYTES),
    )
}

fn side_by_side(rows: &[Row]) -> Table {
    let head = |row: &Row| format!("{}\n{}", row.label, threads(row.threads));
    let heads: Vec<String> = rows.iter().map(head).collect();
    let mut header = vec![""];
    header.extend(heads.iter().map(String::as_str));
    let mut table = table(&header, 1);
    for (name, figure) in FIGURES {
        let cells = rows.iter().map(figure);
        table.add_row(std::iter::once((*name).to_owned()).chain(cells));
    }
    table
}

/// A figure's name, and how it is printed.
type Figure = (&'static str, fn(&Row) -> String);

const FIGURES: &[Figure] = &[
    ("operations", |row| count(row.ops)),
    ("mean", |row| time(row.mean_ns)),
    ("median", |row| time(row.median_ns)),
    ("p99", |row| time(row.p99_ns)),
    ("p99.9", |row| time(row.p999_ns)),
    ("maximum", |row| time(row.max_ns)),
    ("failed allocations", |row| count(row.failed)),
    ("peak use, units", |row| count(row.peak_units)),
    ("  of the arena", |row| percent(row.peak_units * 1000 / row.arena_units)),
    ("metadata", |row| bytes(row.metadata_bytes as u64)),
    ("  bits per unit", |row| format!("{:.2}", row.metadata_bits_per_unit)),
    ("largest free at the end", |row| {
        row.largest_free_order.map_or("none".to_owned(), |order| format!("order {order}"))
    }),
    ("fragmented at the end", |row| percent(row.unusable_huge_permille)),
    ("verified", |row| if row.verified { "yes" } else { "NO" }.to_owned()),
];

fn threads(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

/// What went wrong, a line for each.
fn violations(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| {
        let violation = row.violation.as_ref()?;
        Some(format!("NOT VERIFIED: {}, {}: {violation}", row.label, threads(row.threads)))
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
    let at = |name: &str, first: f64, other: f64, step: f64| match other / first.max(0.01) {
        _ if (first - other).abs() <= step => format!("as fast {name}"),
        ratio if ratio >= 1.005 => format!("{ratio:.2} times as fast {name}"),
        ratio if ratio > 0.995 => format!("as fast {name}"),
        ratio => format!("{:.2} times SLOWER {name}", 1.0 / ratio),
    };
    format!(
        "{}: {} beside {}: {}, {}.",
        threads(first.threads),
        first.label,
        other.label,
        at("in the mean", first.mean_ns, other.mean_ns, 0.0),
        at("at p99.9", first.p999_ns, other.p999_ns, first.clock_step_ns),
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
