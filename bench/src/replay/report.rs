//! The table and texts that a replay prints.

use crate::args::UNIT_BYTES;
use crate::row::Row;
use crate::suite::workloads::Workload;
use crate::table::{
    Layout, bytes, count, crowd_note, or_dash, percent, threads, time, with_threads,
};
use crate::verdict::{Rounds, Verdict};

/// Returns all that is printed about one trace.
pub fn table(_: &Workload, rows: &[Row]) -> String {
    let mut lines = vec![title(&rows[0])];
    lines.extend(judgement(rows));
    lines.extend(comparisons(rows));
    let same_table = |a: &Row, b: &Row| rows.len() <= SIDE_BY_SIDE || a.threads == b.threads;
    let groups = rows.chunk_by(same_table).flat_map(|rows| rows.chunks(SIDE_BY_SIDE));
    lines.extend(groups.map(|rows| LAYOUT.turned(&rows.iter().collect::<Vec<_>>()).to_string()));
    lines.extend(crowd_note(rows));
    lines.extend(violations(rows));
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

/// Says what was verified, unless somebody was found wrong: that is listed below the tables.
fn judgement(rows: &[Row]) -> Option<String> {
    let judged = || rows.iter().filter_map(|row| row.verified);
    let replays = match judged().count() {
        0 => return None,
        1 => "One replay".to_owned(),
        replays => format!("{replays} replays"),
    };
    let operations = count(ops(&rows[0]));
    judged().all(|right| right).then(|| {
        format!("{replays} of {operations} operations, judged by a map of who owns each page: none was ever in two blocks.")
    })
}

/// Returns the operations of the trace, which a round may have replayed several times; or, if it was cut short, how many
/// it came to.
fn ops(row: &Row) -> u64 {
    let of_trace = row.figure("trace_ops").filter(|_| row.complete);
    of_trace.map_or(row.ops.unwrap_or(0), |ops| ops as u64)
}

fn clock(row: &Row) -> String {
    format!(
        "The clock costs {:.1} ns, which is subtracted, and has steps of {:.1} ns. {}.",
        figure(row, "clock_ns"),
        row.clock_step_ns.unwrap_or(0.0),
        match row.rounds.unwrap_or(0) {
            1 => "One round".to_owned(),
            rounds => format!("Medians over {rounds} rounds"),
        },
    )
}

/// Returns the name, with a warning unless it is safe. The footer says which have caches.
fn name(row: &Row) -> String {
    Row { private_caches: false, ..row.clone() }.label()
}

static LAYOUT: Layout<'static> = Layout {
    lines: &[("", |row| format!("{}\n{}", name(row), with_threads(row)))],
    across: None,
    more: &[
        ("operations", |rows| {
            let cut = if rows[0].complete { "" } else { "*" };
            format!("{cut}{}", count(ops(rows[0])))
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
        ("verified", |rows| {
            or_dash(rows[0].verified, |right| if right { "yes" } else { "NO" }.to_owned())
        }),
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
        compare(of_kind.or_else(|| before.next())?, other)
    })
}

/// Compares two rows, unless one was found wrong and has no times.
fn compare(first: &Row, other: &Row) -> Option<String> {
    let (all, all_of_other) = (Rounds::of(first)?, Rounds::of(other)?);
    let (one, two) = (name(first), name(other));
    let factor = all_of_other.ns / all.ns.max(0.01);
    let why = all.doubt(&all_of_other).unwrap_or_default();
    let over_all = match all.beside(&all_of_other) {
        Verdict::Faster => format!("{one} is {factor:.2} times as fast as {two}"),
        Verdict::Slower => {
            format!("{one} is SLOWER than {two}, by a factor of {:.2}", 1.0 / factor)
        }
        Verdict::Undecided => format!("undecided whether {one} or {two} is faster, as {why}"),
    };
    let slow = slow_ones(first).zip(slow_ones(other)).map(|(ours, theirs)| {
        let step_ns = first.clock_step_ns.unwrap_or(0.0);
        let is_equal = (ours.ns - theirs.ns).abs() <= step_ns;
        let factor = theirs.ns / ours.ns.max(0.01);
        match ours.beside(&theirs) {
            Verdict::Faster if !is_equal => format!("{one} is {factor:.2} times as fast"),
            Verdict::Slower if !is_equal => {
                format!("{one} is SLOWER, by a factor of {:.2}", 1.0 / factor)
            }
            _ => "undecided".to_owned(),
        }
    });
    let slow = slow.map_or(String::new(), |slow| format!("; at p99.9: {slow}"));
    Some(format!("{}: {over_all}{slow}.", threads(first.threads)))
}

/// Returns the p99.9 of single operations.
fn slow_ones(row: &Row) -> Option<Rounds> {
    let (least, most) = (row.figure("min_p999_ns")?, row.figure("max_p999_ns")?);
    Some(Rounds { ns: row.p999_ns?, least, most, count: row.rounds })
}

/// Explains how to read the figures.
pub const FOOTER: &str = "\
\"All threads together\" comes from rounds without a clock: the time from the first operation to
the last, divided by their number. It includes waiting for a block that another thread has yet to
allocate. The other times leave this out: they come from rounds in which every operation is timed
by itself. Between operations the clock times nothing, to learn its own cost. An allocator is
called faster if each of its rounds, three at least, was faster than every round of the other, by
the time of all threads together; at p99.9 by more than a step of the clock, too. A round replays
the trace until that took 20 ms, each time on a fresh allocator; they take turns. Failed
allocations are those of one replay, the one with the most. More rounds (--rounds) may decide what
is undecided.
With nbbs-cached and linux-pcp each thread keeps free blocks of its own; the traces were
recorded above the kernel's own such lists. \"Verified\" (- if nobody judged), peak and end come
from separate passes with an owner map: one in the order of the trace, and one on all threads. The
end is where the trace ends, before the blocks that it leaves are freed. Fragmented: the share of
the free memory that lies outside free, aligned 2 MiB. A unit is a page of 4 KiB.";

#[cfg(test)]
mod tests {
    use super::{LAYOUT, compare};
    use crate::row::Row;

    fn row(allocator: &'static str, rounds: [f64; 3], slow: [f64; 3]) -> Row {
        let mut row = Row { allocator: allocator.into(), safe: true, threads: 2, ..Row::default() };
        row.set_times(&rounds.map(|ns| (ns, 1)));
        row.p999_ns = Some(slow[1]);
        row.clock_step_ns = Some(10.0);
        let figures = [("min_p999_ns", slow[0]), ("max_p999_ns", slow[2])];
        row.with_all(figures.map(|(name, figure)| (name, Some(figure))))
    }

    #[test]
    fn who_is_faster_is_told_by_rounds_that_do_not_overlap() {
        let nbbs = row("nbbs", [9.0, 10.0, 11.0], [90.0, 100.0, 110.0]);
        for (other, told) in [
            (
                row("linux", [19.0, 20.0, 21.0], [140.0, 150.0, 160.0]),
                "2 threads: nbbs is 2.00 times as fast as linux; at p99.9: nbbs is 1.50 times as fast.",
            ),
            (
                row("linux", [4.0, 5.0, 6.0], [40.0, 50.0, 60.0]),
                "2 threads: nbbs is SLOWER than linux, by a factor of 2.00; at p99.9: nbbs is SLOWER, by a factor of 2.00.",
            ),
            // The medians are far apart, but the rounds overlap.
            (
                row("linux", [10.9, 20.0, 21.0], [109.0, 150.0, 160.0]),
                "2 threads: undecided whether nbbs or linux is faster, as their rounds overlap; at p99.9: undecided.",
            ),
            // The rounds do not overlap, but the clock tells no more than a step.
            (
                row("linux", [11.1, 12.0, 13.0], [110.0, 110.0, 110.0]),
                "2 threads: nbbs is 1.20 times as fast as linux; at p99.9: undecided.",
            ),
        ] {
            assert_eq!(compare(&nbbs, &other).unwrap(), told);
        }
        assert_eq!(compare(&nbbs, &Row::default()), None);
    }

    #[test]
    fn only_what_was_judged_is_called_verified() {
        for (verified, told) in [(Some(true), "yes"), (Some(false), "NO"), (None, "-")] {
            let row = Row { verified, ..Row::default() };
            let (titles, lines) = LAYOUT.cells(&[&row]);
            let place = titles.iter().position(|title| title == "verified").unwrap();
            assert_eq!(lines[0][place], told);
        }
    }

    #[test]
    fn one_round_decides_nothing() {
        let once = |allocator, ns: f64| {
            let mut row = Row { allocator, safe: true, threads: 2, ..Row::default() };
            row.set_times(&[(ns, 1)]);
            row
        };
        let told = compare(&once("nbbs".into(), 1.0), &once("linux".into(), 2.0)).unwrap();
        assert_eq!(
            told,
            "2 threads: undecided whether nbbs or linux is faster, as fewer than three rounds say too little."
        );
    }
}
