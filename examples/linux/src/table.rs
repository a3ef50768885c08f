//! Prints figures.

use comfy_table::{CellAlignment, Table};

/// The lines of a table: above, below, and a double one under the header.
const LINES: &str = "  ── ══      ──    ";

/// Creates a table whose first `left` columns are text and whose others are figures.
pub fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(LINES).set_header(header);
    for (place, column) in table.column_iter_mut().enumerate() {
        let alignment = if place < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
    table
}

/// Prints bytes in a suitable unit, without decimals if there are none.
pub fn size(bytes: u64) -> String {
    let (one, unit) =
        if bytes != 0 && bytes < 1 << 20 { (1 << 10, "KiB") } else { (1 << 20, "MiB") };
    match bytes % one {
        0 => format!("{} {unit}", bytes / one),
        _ => format!("{:.1} {unit}", bytes as f64 / one as f64),
    }
}
