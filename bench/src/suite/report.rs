//! Prints tables: a line for each allocator and phase, a column for each number of threads.

use super::workloads::Workload;
use crate::row::Row;
use crate::table::{Across, Layout, bytes, columns, marked, notes};

/// The text below the tables.
pub const FOOTER: &str = "ns per operation, all threads together: the median over the rounds. An allocation that is refused is an operation, too.
Times of single operations, counts and metadata are those of the most threads. The counts are: read-modify-writes (RMW)
of an operation, those that lost against another thread, cache lines that it wrote to, loads of the worst operation.
Refused: allocations that were refused in all parts together, in the run and with the number of threads with the most.
Spurious: allocations of a unit, in all parts together, that were refused while one was free and in no operation's hands.
  ~  the rounds lie more than a quarter of their median apart: too noisy
  *  cut short by --duration, or by a refusal, before all was done
  FAILED  found wrong by the owner map, the counts, or its frees; its times would say nothing";

/// Returns the table of a workload and order; all rows belong to it.
pub fn table(workload: &Workload, rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    let phases: Vec<_> = rows.iter().map(|row| row.phase.clone()).collect();
    // Rows of one phase stand together, in the order in which phases first occur.
    rows.sort_by_key(|row| phases.iter().position(|phase| *phase == row.phase));
    let title = title(rows[0]);
    let more = columns(workload.own, &rows.iter().map(|&row| vec![row]).collect::<Vec<_>>());
    let layout = Layout {
        lines: &[(&title, Row::label), ("part", |row| row.phase.clone().into_owned())],
        across: Some(Across::threads(|row| marked(row, |ns| format!("{ns:.1}")))),
        more: &more,
        left: 2,
    };
    format!("{}{}", layout.table(&rows), notes(&rows))
}

fn title(row: &Row) -> String {
    let size = |mixed: &str| row.size_bytes.map_or(mixed.to_owned(), bytes);
    match &*row.kind {
        "heap" => format!("{} on heaps, {}", row.workload, size("random sizes")),
        "pool" => format!("{}, {}", row.workload, size("")),
        _ => format!("{}, {}", row.workload, size("random orders")),
    }
}
