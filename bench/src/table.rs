//! Prints figures in tables.

use std::collections::BTreeMap;

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
        let mut places: BTreeMap<u64, bool> = BTreeMap::new();
        if let Some(across) = &self.across {
            for row in rows {
                *places.entry((across.place)(row)).or_default() |= row.is_crowded();
            }
        }
        let line = |(about, rows): (Vec<String>, Vec<&Row>)| {
            let cell = |place: u64| {
                let across = self.across.as_ref()?;
                rows.iter().find(|row| (across.place)(row) == place).map(|row| (across.cell)(row))
            };
            let across = places.keys().map(|&place| cell(place).unwrap_or("-".to_owned()));
            let more = self.more.iter().map(|more| more.1(&rows));
            about.into_iter().chain(across).chain(more).collect()
        };
        let lines = groups.into_iter().map(line).collect();
        let about = self.lines.iter().map(|line| line.0.to_owned());
        let more = self.more.iter().map(|more| more.0.to_owned());
        let title = |(&place, &crowded): (&u64, &bool)| {
            let across = self.across.as_ref()?;
            Some((across.title)(place) + if crowded { CROWDED } else { "" })
        };
        let across = places.iter().filter_map(title);
        (about.chain(across).chain(more).collect(), lines)
    }
}

/// The mark at a number of threads above that of the processors.
const CROWDED: &str = "†";

/// Prints the row's number of threads, marked if there were fewer processors.
pub fn thread_count(row: &Row) -> String {
    format!("{}{}", row.threads, if row.is_crowded() { CROWDED } else { "" })
}

/// Prints the same in words.
pub fn with_threads(row: &Row) -> String {
    threads(row.threads) + if row.is_crowded() { CROWDED } else { "" }
}

/// Explains the mark, if one of the rows has it.
pub fn crowd_note<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let note = "more threads than processors: the holder of a lock can lose its processor";
    rows.into_iter().any(Row::is_crowded).then(|| format!("{CROWDED} {note}"))
}

/// Says how fine the times of single operations are, if one of the rows has some.
pub fn clock_note<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let is_timed = |row: &&Row| row.p50_ns.or(row.p99_ns).or(row.p999_ns).is_some();
    let step_ns = rows.into_iter().filter(is_timed).find_map(|row| row.clock_step_ns)?;
    Some(format!("times of single operations have steps of {step_ns:.1} ns, those of the clock"))
}

/// Returns the lines below a table of these rows.
pub fn notes(rows: &[&Row]) -> String {
    let notes = [crowd_note(rows.iter().copied()), clock_note(rows.iter().copied())];
    notes.into_iter().flatten().map(|note| format!("\n  {note}")).collect()
}

/// Prints a figure, or a dash if there is none.
pub fn or_dash<T>(figure: Option<T>, print: impl Fn(T) -> String) -> String {
    figure.map_or("-".to_owned(), print)
}

/// Columns of figures that rows of any workload may have, for the most threads.
const FIGURES: [Column<'static>; 12] = [
    ("median", |rows| or_dash(most(rows).p50_ns, time)),
    ("p99", |rows| or_dash(most(rows).p99_ns, time)),
    ("p99.9", |rows| or_dash(most(rows).p999_ns, time)),
    ("max", |rows| or_dash(most(rows).max_ns, time)),
    ("RMW", |rows| or_dash(most(rows).rmw_per_op, hundredths)),
    ("lost", |rows| or_dash(most(rows).failed_cas_per_op, |lost| format!("{lost:.3}"))),
    ("lines", |rows| or_dash(most(rows).lines_written_per_op, hundredths)),
    ("most loads", |rows| or_dash(most(rows).worst_loads, count)),
    ("instructions", |rows| or_dash(most(rows).instructions_per_op, |count| format!("{count:.0}"))),
    ("refused", |rows| {
        // Not only with the most threads: no refusal is to be missed.
        let most = rows.iter().map(|row| row.refused).max();
        or_dash(most.filter(|&refused| refused > 0), count)
    }),
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
    counted(threads, "thread")
}

/// Prints a number of things, whose name in the plural ends in s.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
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
    use super::{Across, Column, Layout, bytes, columns, notes, percent, time};
    use crate::row::Row;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            [time(9.94), time(99.96), time(12_345.0), time(7.6e6)],
            ["9.9 ns", "100 ns", "12.3 µs", "7.6 ms"]
        );
        assert_eq!([bytes(0), bytes(1 << 30), bytes(74_112)], ["0 B", "1 GiB", "72.4 KiB"]);
        assert_eq!([percent(0), percent(432), percent(1000)], ["0.0 %", "43.2 %", "100.0 %"]);
    }

    #[test]
    fn refusals_are_shown_where_one_was_refused_anything() {
        let row = |threads, refused| Row { threads, refused, ..Row::default() };
        let titles = |lines: &[Vec<&Row>]| {
            columns(None, lines).into_iter().map(|column| column.0).collect::<Vec<_>>()
        };
        let (none, few, more, last) = (row(1, 0), row(1, 7), row(2, 1200), row(2, 0));
        assert!(titles(&[vec![&none]]).is_empty());
        // The line with refusals on one thread, and none on two.
        let lines = [vec![&none, &none], vec![&few, &last], vec![&few, &more]];
        assert_eq!(titles(&lines), ["refused"]);
        let column: Column<'_> = columns(None, &lines)[0];
        assert_eq!(lines.each_ref().map(|rows| column.1(rows)), ["-", "7", "1,200"]);
    }

    #[test]
    fn columns_with_more_threads_than_processors_are_marked_and_explained() {
        let row = |threads| Row { threads, cpus: Some(2), ..Row::default() };
        let rows = [row(1), row(2), row(3)];
        let layout = Layout {
            lines: &[],
            across: Some(Across::threads(|_| String::new())),
            more: &[],
            left: 0,
        };
        let (header, _) = layout.cells(&rows.iter().collect::<Vec<_>>());
        assert_eq!(header, ["1 thr.", "2 thr.", "3 thr.†"]);
        assert_eq!(notes(&[&rows[0], &rows[1]]), "");
        assert!(notes(&[&rows[2]]).contains("† more threads than processors"));
        let simulated = Row { workload: "cores".into(), ..row(64) };
        assert_eq!(notes(&[&simulated]), "");
    }

    #[test]
    fn the_step_of_the_clock_is_told_where_single_operations_are_timed() {
        let untimed = Row { clock_step_ns: Some(17.5), ..Row::default() };
        let timed = Row { p999_ns: Some(100.0), ..untimed.clone() };
        assert_eq!(notes(&[&untimed]), "");
        assert!(notes(&[&untimed, &timed]).contains("steps of 17.5 ns"));
    }
}
