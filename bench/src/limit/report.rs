//! The tables of `bench limit`.

use crate::row::Row;
use crate::table::{
    About, Across, Column, Layout, bytes, notes, or_dash, thread_count, threads, time,
};

/// A table: its title, the cases in it, and how they are printed.
pub struct LimitTable {
    title: fn(&Row) -> String,
    pub cases: &'static [&'static str],
    layout: Layout<'static>,
}

/// Creates a layout with a line for each row.
const fn listed(
    lines: &'static [About<'static>],
    more: &'static [Column<'static>],
    left: usize,
) -> Layout<'static> {
    Layout { lines, across: None, more, left }
}

/// The pairs of one arena and one number of threads: a line for each order, a column for each fill.
pub static PAIRS: LimitTable = LimitTable {
    title: |row| {
        let (arena, threads) = (arena(row), threads(row.threads));
        format!("alloc/free pairs, {arena} in 4 KiB units, {threads}")
    },
    cases: &["pair"],
    layout: Layout {
        lines: &[("order", order)],
        across: Some(Across {
            place: |row| fill(row) as u64,
            title: |fill| format!("{fill} % full"),
            cell: pair,
        }),
        more: &[
            ("bare CAS\npair", |rows| {
                let bare = rows.iter().filter_map(|row| row.figure("bare_ns_per_op"));
                time(2.0 * bare.sum::<f64>() / rows.len() as f64)
            }),
            ("RMW per\nalloc", |rows| largest(rows.iter().copied(), "rmw_per_alloc")),
            ("RMW per\nfree", |rows| largest(rows.iter().copied(), "rmw_per_free")),
        ],
        left: 0,
    },
};

/// The pairs of one arena in each of the ways to ask for a block.
pub static WAYS: LimitTable = LimitTable {
    title: |row| {
        let (order, arena) = (order(row), arena(row));
        format!("pairs of order {order} as they can be called, {arena} in 4 KiB units")
    },
    cases: &["way"],
    layout: listed(
        &[("threads", thread_count), ("by", |row| row.text("by").to_owned())],
        OF_PAIRS,
        1,
    ),
};

/// The pairs of the heap.
pub static HEAP: LimitTable = LimitTable {
    title: |row| format!("pairs of nbbs-heap, {}", arena(row)),
    cases: &["heap"],
    layout: listed(
        &[
            ("threads", thread_count),
            ("block", |row| bytes(row.size_bytes.unwrap_or(0))),
            ("aligned to", |row| bytes(row.figure("align_bytes").unwrap_or(0.0) as u64)),
        ],
        OF_PAIRS,
        0,
    ),
};

/// How pairs compare with bare compare-and-swaps.
const OF_PAIRS: &[Column<'static>] = &[
    ("a pair", |rows| twice(rows[0].ns_per_op)),
    ("bare CAS\npair", |rows| twice(rows[0].figure("bare_ns_per_op"))),
    ("ratio", ratio),
    ("a tenth\nbelow", |rows| twice(rows[0].min_ns_per_op)),
    ("a tenth\nabove", |rows| twice(rows[0].max_ns_per_op)),
];

/// Bulk and random free.
pub static BULK: LimitTable = LimitTable {
    title: |_| "half the arena in blocks of order 0, allocated and freed".to_owned(),
    cases: &["bulk", "random_free"],
    layout: listed(
        &[("arena", arena), ("threads", thread_count), ("case", |row| row.text("case").to_owned())],
        &[
            ("per\noperation", |rows| or_dash(rows[0].ns_per_op, time)),
            ("one bare\nCAS", |rows| ns(rows, "bare_ns_per_op")),
            ("ratio", ratio),
            ("alloc", |rows| ns(rows, "alloc_ns")),
            ("free", |rows| ns(rows, "free_ns")),
            ("free,\nno order", |rows| ns(rows, "free_unsized_ns")),
            ("bare CAS\nthere", |rows| ns(rows, "floor_ns")),
            ("RMW per\nalloc", |rows| largest(rows.iter().copied(), "rmw_per_alloc")),
            ("RMW per\nfree", |rows| largest(rows.iter().copied(), "rmw_per_free")),
        ],
        0,
    ),
};

/// Refused allocations.
pub static FAIL: LimitTable = LimitTable {
    title: |_| "allocations that are refused".to_owned(),
    cases: &["fail"],
    layout: listed(
        &[("arena", arena), ("state", |row| row.text("state").to_owned()), ("order", order)],
        &[
            ("refusal", |rows| or_dash(rows[0].ns_per_op, time)),
            ("the first", |rows| ns(rows, "first_ns")),
            ("p99", |rows| or_dash(rows[0].p99_ns, time)),
            ("RMW", |rows| largest(rows.iter().copied(), "rmw_per_alloc")),
        ],
        0,
    ),
};

impl LimitTable {
    /// Returns the table of rows of its cases.
    pub fn of(&self, rows: &[&Row]) -> String {
        format!("{}\n{}{}\n", (self.title)(rows[0]), self.layout.table(rows), notes(rows))
    }
}

fn arena(row: &Row) -> String {
    bytes(row.arena_bytes.unwrap_or(0))
}

fn order(row: &Row) -> String {
    row.order.unwrap_or(0).to_string()
}

fn fill(row: &Row) -> f64 {
    row.figure("fill_percent").unwrap_or(0.0)
}

fn figure(row: &Row, name: &str) -> f64 {
    row.figure(name).unwrap_or(0.0)
}

fn ns(rows: &[&Row], name: &str) -> String {
    or_dash(rows[0].figure(name), time)
}

/// Prints the time of a pair, which is two operations.
fn twice(ns: Option<f64>) -> String {
    or_dash(ns.map(|ns| 2.0 * ns), time)
}

fn ratio(rows: &[&Row]) -> String {
    format!("{:.2}x", figure(rows[0], "ratio"))
}

/// Prints a pair as `33.0 ns 1.40x`, and on several threads how much slower it is than alone.
fn pair(row: &Row) -> String {
    let beside = slowdown(row).map(|times| format!(" {:+.0} %", (times - 1.0) * 100.0));
    format!("{} {:.2}x{}", twice(row.ns_per_op), figure(row, "ratio"), beside.unwrap_or_default())
}

/// Returns how many times as long it takes beside the other threads as alone.
fn slowdown(row: &Row) -> Option<f64> {
    Some(row.ns_per_op? / row.figure("alone_ns_per_op")?)
}

fn largest<'a>(rows: impl Iterator<Item = &'a Row>, name: &str) -> String {
    format!("{:.2}", rows.filter_map(|row| row.figure(name)).fold(0.0, f64::max))
}

/// Describes the worst cases in plain words.
pub fn worst(rows: &[Row]) -> String {
    let pairs = || rows.iter().filter(|row| row.text("case") == "pair");
    let place = |row: &Row| format!("order {}, {}, {} % full", order(row), arena(row), fill(row));
    let mut lines = Vec::new();
    for (name, orders) in [("0 to 4", 0..=4), ("5 to 9", 5..=9)] {
        let single =
            pairs().filter(|row| row.threads == 1 && orders.contains(&row.order.unwrap_or(0)));
        if let Some(row) = single.max_by(|a, b| figure(a, "ratio").total_cmp(&figure(b, "ratio"))) {
            let (ratio, place) = (figure(row, "ratio"), place(row));
            lines.push(format!(
                "Pairs of orders {name}: at most {ratio:.2} x bare CAS pairs ({place})."
            ));
        }
    }
    let shared = pairs().filter_map(|row| Some((row, slowdown(row)?)));
    if let Some((row, times)) = shared.max_by(|a, b| a.1.total_cmp(&b.1)) {
        let percent = (times - 1.0) * 100.0;
        let (threads, place) = (row.threads, place(row));
        lines.push(format!(
            "Pairs on {threads} threads: at most {percent:+.0} % beside one alone ({place})."
        ));
    }
    let (alloc, free) = (largest(pairs(), "rmw_per_alloc"), largest(pairs(), "rmw_per_free"));
    lines.push(format!("Read-modify-writes of pairs: at most {alloc} per alloc, {free} per free."));
    lines.extend(unrest(&pairs().collect::<Vec<_>>()));
    lines.join("\n") + "\n"
}

/// Returns a warning if the rounds differ, as they do beside other programs or on a busy host.
fn unrest(pairs: &[&Row]) -> Option<String> {
    let differ = |row: &&&Row| row.spread().is_some_and(|(least, most)| most > least * 1.25);
    let (unsteady, all) = (pairs.iter().filter(differ).count(), pairs.len());
    let line = format!(
        "The machine was busy: in {unsteady} of {all} cases the slow rounds took 25 % longer than the fast."
    );
    (unsteady * 10 > all).then_some(line)
}

/// Explains how to read the figures.
pub const FOOTER: &str = "\
A pair is an allocation and a free of the same block. A bare CAS pair is two dependent
compare-and-swaps on a word that nobody else uses. The two are timed in alternation, in
stretches of 20,000. Times are medians over the rounds; ratios are medians of the rounds'
ratios. N % full: every block of the order is allocated, then a random share is freed.
On several threads the figure is that of the slowest, with its slowdown beside one thread
while the others sleep. RMW: read-modify-writes, counted on a copy of the arena; the
largest count in the row.
Pairs as they can be called, and of the heap: nothing else is allocated, and a cache has
the block. The compiler does not know the size and alignment that the heap is asked for.
Bulk and random free: time per operation (bulk: the mean of both) beside one bare CAS. They
are timed in stretches of 16,384; the median of 15 stretches stands for all 15. The figures
are those of frees with the order (free_sized); without it (free), a free finds it. \"Bare CAS
there\": one CAS for each free, on words laid out like the leaf words, in the same order.
It has the cache misses that no allocator can avoid. Refused: full (every unit in use),
fragmented (every second unit in use), sprinkled (one unit in each 2 MiB in use).
No owner map judges these rows; those of other workloads are judged.";
