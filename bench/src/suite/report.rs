//! Tables: a line for each allocator and phase, a column for each number of threads.

use super::row::Row;
use crate::table::{bytes, table, time};

/// What stands below the tables.
pub const FOOTER: &str = "ns per operation, all threads together: the median over the rounds.
Times by operation, counts and metadata are of the most threads: an operation's read-modify-writes (RMW),
those that lost against another thread, and the cache lines that it wrote to.
  ~  the rounds lie more than a quarter of their median apart: too noisy
  *  cut by --duration, or by a refusal, before all was done
  FAILED  found wrong by the owner map, the counts, or its frees; times of it would say nothing";

/// The table of one workload and order; all rows are of it.
pub fn workload(rows: &[Row]) -> String {
    let threads = thread_counts(rows);
    let (kind, size) = match (rows[0].kind, rows[0].size_bytes) {
        ("heap", size) => (" on heaps", size.map_or("random sizes".to_owned(), bytes)),
        ("pool", size) => ("", size.map_or_else(String::new, bytes)),
        (_, size) => ("", size.map_or("random orders".to_owned(), bytes)),
    };
    let mut header = vec![format!("{}{kind}, {size}", rows[0].workload), "part".to_owned()];
    header.extend(threads.iter().map(|threads| format!("{threads} thr.")));
    let figures = ["median", "p99.9", "max", "RMW", "lost", "lines", "metadata"];
    header.extend(figures.map(str::to_owned));
    if let Some((title, _)) = extra(&rows[0]) {
        header.push(title.to_owned());
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&header, 2);
    for (allocator, phase) in lines(rows) {
        let of_line = || rows.iter().filter(|row| (row.allocator, row.phase) == (allocator, phase));
        let cell = |threads: usize| {
            of_line().find(|row| row.threads == threads).map_or("-".to_owned(), nanoseconds)
        };
        let Some(most) = of_line().max_by_key(|row| row.threads) else { continue };
        let mut cells = vec![label(most), phase.to_owned()];
        cells.extend(threads.iter().map(|&threads| cell(threads)));
        cells.extend([most.p50_ns, most.p999_ns, most.max_ns].map(|ns| or_dash(ns, time)));
        cells.push(or_dash(most.rmw_per_op, |steps| format!("{steps:.2}")));
        cells.push(or_dash(most.failed_cas_per_op, |lost| format!("{lost:.3}")));
        cells.push(or_dash(most.lines_written_per_op, |lines| format!("{lines:.2}")));
        cells.push(most.metadata_bytes.map_or("-".to_owned(), |some| bytes(some as u64)));
        cells.extend(extra(most).map(|(_, figure)| figure));
        table.add_row(cells);
    }
    table.to_string()
}

fn thread_counts(rows: &[Row]) -> Vec<usize> {
    let mut threads: Vec<usize> = rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Allocators and phases in the order in which they first occur; phases together.
fn lines(rows: &[Row]) -> Vec<(&'static str, &'static str)> {
    let mut phases: Vec<&str> = Vec::new();
    let mut allocators: Vec<&str> = Vec::new();
    for row in rows {
        if !phases.contains(&row.phase) {
            phases.push(row.phase);
        }
        if !allocators.contains(&row.allocator) {
            allocators.push(row.allocator);
        }
    }
    let of_phase = |phase| allocators.iter().map(move |&allocator| (allocator, phase));
    phases.into_iter().flat_map(of_phase).collect()
}

fn label(row: &Row) -> String {
    match (row.safe, row.private_caches) {
        (false, _) => format!("{} (UNSAFE)", row.allocator),
        (_, true) => format!("{} (caches)", row.allocator),
        _ => row.allocator.to_owned(),
    }
}

fn nanoseconds(row: &Row) -> String {
    let marks = [("~", row.noisy), ("*", !row.complete)];
    let marks: String = marks.into_iter().filter(|mark| mark.1).map(|mark| mark.0).collect();
    match row.ns_per_op {
        Some(ns) => format!("{marks}{ns:.1}"),
        None if row.verified => "-".to_owned(),
        None => "FAILED".to_owned(),
    }
}

/// What only one workload has.
fn extra(row: &Row) -> Option<(&'static str, String)> {
    let percent = |figure| format!("{figure:.1} %");
    match row.workload {
        "frag" => Some(("2 MiB free", or_dash(row.recovered_percent, percent))),
        "suspended" => {
            let (stalled, of) = (row.stalled?, row.suspensions?);
            let without = or_dash(row.baseline_p999_ns, time);
            Some(("stalled, p99.9 if not", format!("{stalled} of {of}, {without}")))
        }
        "fill" => Some(("GiB/s", or_dash(row.gib_per_s, |figure| format!("{figure:.1}")))),
        _ => None,
    }
}

fn or_dash(figure: Option<f64>, print: impl Fn(f64) -> String) -> String {
    figure.map_or("-".to_owned(), print)
}
