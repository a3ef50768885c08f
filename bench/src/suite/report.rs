//! Tables: a line for each allocator and phase, a column for each number of threads.

use super::workloads::Workload;
use crate::row::Row;
use crate::table::{Across, Column, Layout, bytes, marked, most, or_dash, time};

/// What stands below the tables.
pub const FOOTER: &str = "ns per operation, all threads together: the median over the rounds.
Times by operation, counts and metadata are of the most threads: an operation's read-modify-writes (RMW),
those that lost against another thread, and the cache lines that it wrote to.
  ~  the rounds lie more than a quarter of their median apart: too noisy
  *  cut by --duration, or by a refusal, before all was done
  FAILED  found wrong by the owner map, the counts, or its frees; times of it would say nothing";

const FIGURES: [Column<'static>; 7] = [
    ("median", |rows| or_dash(most(rows).p50_ns, time)),
    ("p99.9", |rows| or_dash(most(rows).p999_ns, time)),
    ("max", |rows| or_dash(most(rows).max_ns, time)),
    ("RMW", |rows| or_dash(most(rows).rmw_per_op, |steps| format!("{steps:.2}"))),
    ("lost", |rows| or_dash(most(rows).failed_cas_per_op, |lost| format!("{lost:.3}"))),
    ("lines", |rows| or_dash(most(rows).lines_written_per_op, |lines| format!("{lines:.2}"))),
    ("metadata", |rows| most(rows).metadata_bytes.map_or("-".to_owned(), bytes)),
];

/// The table of a workload and order; all rows are of it.
pub fn table(workload: &Workload, rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    let phases: Vec<_> = rows.iter().map(|row| row.phase.clone()).collect();
    // Phases together, in the order in which they first occur.
    rows.sort_by_key(|row| phases.iter().position(|phase| *phase == row.phase));
    let title = title(rows[0]);
    let own = workload.own.and_then(|own| own.column);
    let more: Vec<Column<'_>> = FIGURES.into_iter().chain(own).collect();
    let layout = Layout {
        lines: &[(&title, Row::label), ("part", |row| row.phase.clone().into_owned())],
        across: Some(Across::threads(|row| marked(row, |ns| format!("{ns:.1}")))),
        more: &more,
        left: 2,
    };
    layout.table(&rows).to_string()
}

fn title(row: &Row) -> String {
    let size = |mixed: &str| row.size_bytes.map_or(mixed.to_owned(), bytes);
    match &*row.kind {
        "heap" => format!("{} on heaps, {}", row.workload, size("random sizes")),
        "pool" => format!("{}, {}", row.workload, size("")),
        _ => format!("{}, {}", row.workload, size("random orders")),
    }
}
