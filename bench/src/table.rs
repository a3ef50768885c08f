//! How figures are printed.

use comfy_table::{CellAlignment, Table};
use indicatif::HumanCount;

/// Lines above and below, and a double one under the header.
const LINES: &str = "  ── ══      ──    ";

/// A table whose first `left` columns are text and whose others are figures.
pub fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(LINES).set_header(header);
    for (place, column) in table.column_iter_mut().enumerate() {
        let alignment = if place < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
    table
}

/// Nanoseconds in the unit that suits.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 99.95 => format!("{ns:.1} ns"),
        _ if ns < 9_999.5 => format!("{ns:.0} ns"),
        _ if ns < 999_500.0 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// A count with separators.
pub fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Bytes in the binary unit that suits, without decimals if there are none.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1).ilog2() / 10).min(5);
    let unit = UNITS[power as usize];
    match 1 << (10 * power) {
        one if bytes.is_multiple_of(one) => format!("{} {unit}", bytes / one),
        one => format!("{:.1} {unit}", bytes as f64 / one as f64),
    }
}

/// Thousandths as percent.
pub fn percent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::{bytes, percent, time};

    #[test]
    fn figures_read_well() {
        assert_eq!(
            [time(9.94), time(99.96), time(12_345.0), time(7.6e6)],
            ["9.9 ns", "100 ns", "12.3 µs", "7.6 ms"]
        );
        assert_eq!([bytes(0), bytes(1 << 30), bytes(74_112)], ["0 B", "1 GiB", "72.4 KiB"]);
        assert_eq!([percent(0), percent(432), percent(1000)], ["0.0 %", "43.2 %", "100.0 %"]);
    }
}
