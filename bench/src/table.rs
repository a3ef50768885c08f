//! Prints figures in tables.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Table};
use indicatif::HumanCount;

use crate::row::Row;
use crate::suite::own::Own;

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

/// A title, and the text of a row under it.
pub type About<'a> = (&'a str, fn(&Row) -> String);

/// A title, and the text of the rows of a line under it.
pub type Column<'a> = (&'a str, fn(&[&Row]) -> String);

/// The layout of rows: which of them share a line, which of those stand side by side, and what else a line shows.
pub struct Layout<'a> {
    /// The columns that identify a line, with titles. Rows that agree in all of them share a line, if lines can be
    /// shared.
    pub lines: &'a [About<'a>],
    /// The columns for the rows of a line, side by side; without them each row has a line.
    pub across: Option<Across>,
    /// More columns of a line, with titles. Its rows are in the order in which they were given.
    pub more: &'a [Column<'a>],
    /// The number of text columns.
    pub left: usize,
}

/// Columns for rows that share a line.
pub struct Across {
    /// The column that a row belongs to; the smallest comes first.
    pub place: fn(&Row) -> u64,
    pub title: fn(u64) -> String,
    pub cell: fn(&Row) -> String,
}

impl Across {
    /// Makes a column for each number of threads.
    pub fn threads(cell: fn(&Row) -> String) -> Self {
        Self { place: |row| row.threads as u64, title: |threads| format!("{threads} thr."), cell }
    }
}

impl Layout<'_> {
    /// Returns the table of some rows, with lines and columns in the order in which they first occur.
    pub fn table(&self, rows: &[&Row]) -> Table {
        let (header, lines) = self.cells(rows);
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut table = table(&header, self.left);
        table.add_rows(lines);
        table
    }

    /// Returns the table transposed: what identifies the rows stands at the top.
    pub fn turned(&self, rows: &[&Row]) -> Table {
        let (titles, lines) = self.cells(rows);
        let column = |place: usize| lines.iter().map(move |line| line[place].as_str());
        let header: Vec<&str> = [titles[0].as_str()].into_iter().chain(column(0)).collect();
        let mut table = table(&header, self.left);
        for (place, title) in titles.iter().enumerate().skip(1) {
            table.add_row([title.as_str()].into_iter().chain(column(place)));
        }
        table
    }

    /// Returns the titles, and the lines under them.
    pub fn cells(&self, rows: &[&Row]) -> (Vec<String>, Vec<Vec<String>>) {
        let about = |row: &Row| self.lines.iter().map(|line| line.1(row)).collect::<Vec<_>>();
        let mut groups: Vec<(Vec<String>, Vec<&Row>)> = Vec::new();
        for &row in rows {
            let about = about(row);
            let shared = self.across.is_some();
            match groups.iter_mut().find(|group| shared && group.0 == about) {
                Some(group) => group.1.push(row),
                None => groups.push((about, vec![row])),
            }
        }
        let places: BTreeSet<(u64, String)> = (self.across.iter())
            .flat_map(|across| {
                rows.iter()
                    .map(|row| (across.place)(row))
                    .map(|place| (place, (across.title)(place)))
            })
            .collect();
        let line = |(about, rows): (Vec<String>, Vec<&Row>)| {
            let cell = |place: u64| {
                let across = self.across.as_ref()?;
                rows.iter().find(|row| (across.place)(row) == place).map(|row| (across.cell)(row))
            };
            let across = places.iter().map(|&(place, _)| cell(place).unwrap_or("-".to_owned()));
            let more = self.more.iter().map(|more| more.1(&rows));
            about.into_iter().chain(across).chain(more).collect()
        };
        let lines = groups.into_iter().map(line).collect();
        let about = self.lines.iter().map(|line| line.0.to_owned());
        let more = self.more.iter().map(|more| more.0.to_owned());
        let across = places.iter().map(|(_, title)| title.clone());
        (about.chain(across).chain(more).collect(), lines)
    }
}

/// Prints a figure, or a dash if there is none.
pub fn or_dash<T>(figure: Option<T>, print: impl Fn(T) -> String) -> String {
    figure.map_or("-".to_owned(), print)
}

/// Columns of figures that rows of any workload may have, for the most threads.
const FIGURES: [Column<'static>; 11] = [
    ("median", |rows| or_dash(most(rows).p50_ns, time)),
    ("p99", |rows| or_dash(most(rows).p99_ns, time)),
    ("p99.9", |rows| or_dash(most(rows).p999_ns, time)),
    ("max", |rows| or_dash(most(rows).max_ns, time)),
    ("RMW", |rows| or_dash(most(rows).rmw_per_op, hundredths)),
    ("lost", |rows| or_dash(most(rows).failed_cas_per_op, |lost| format!("{lost:.3}"))),
    ("lines", |rows| or_dash(most(rows).lines_written_per_op, hundredths)),
    ("most loads", |rows| or_dash(most(rows).worst_loads, count)),
    ("instructions", |rows| or_dash(most(rows).instructions_per_op, |count| format!("{count:.0}"))),
    ("spurious", |rows| {
        or_dash(most(rows).spurious_refusals.filter(|&refused| refused > 0), count)
    }),
    ("metadata", |rows| most(rows).metadata_bytes.map_or("-".to_owned(), bytes)),
];

/// Returns these columns and those of the workload, without columns that are empty in all lines.
pub fn columns(own: Option<&Own>, lines: &[Vec<&Row>]) -> Vec<Column<'static>> {
    let own = own.into_iter().flat_map(|own| own.columns.iter().copied());
    let is_used = |column: &Column<'_>| lines.iter().any(|rows| column.1(rows) != "-");
    FIGURES.into_iter().chain(own).filter(is_used).collect()
}

/// Prints a figure to hundredths.
pub fn hundredths(figure: f64) -> String {
    format!("{figure:.2}")
}

/// Returns the row with the most threads.
pub fn most<'a>(rows: &[&'a Row]) -> &'a Row {
    rows.iter().max_by_key(|row| row.threads).expect("a line has a row")
}

/// Prints the time per operation, with marks for what a reader must know about it.
pub fn marked(row: &Row, print: fn(f64) -> String) -> String {
    let marks = [("~", row.noisy), ("*", !row.complete)];
    let marks: String = marks.into_iter().filter(|mark| mark.1).map(|mark| mark.0).collect();
    match row.ns_per_op {
        Some(ns) => format!("{marks}{}", print(ns)),
        None if row.is_wrong() => "FAILED".to_owned(),
        None => "-".to_owned(),
    }
}

/// Prints a number of threads in words.
pub fn threads(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

/// Prints nanoseconds in a suitable unit.
pub fn time(ns: f64) -> String {
    match ns {
        _ if ns < 99.95 => format!("{ns:.1} ns"),
        _ if ns < 9_999.5 => format!("{ns:.0} ns"),
        _ if ns < 999_500.0 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// Prints a count with separators.
pub fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Prints bytes in a suitable binary unit, without decimals if there are none.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1).ilog2() / 10).min(5);
    let unit = UNITS[power as usize];
    match 1 << (10 * power) {
        one if bytes.is_multiple_of(one) => format!("{} {unit}", bytes / one),
        one => format!("{:.1} {unit}", bytes as f64 / one as f64),
    }
}

/// Prints thousandths as percent.
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
