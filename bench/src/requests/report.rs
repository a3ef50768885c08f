//! The table of `bench requests`.

use crate::row::Row;
use crate::table::{Layout, count, or_dash, time};

/// The layout of the table: a line for each case.
pub static LAYOUT: Layout<'static> = Layout {
    lines: &[
        ("case", |row| row.text("case").to_owned()),
        ("workload", |row| row.text("asked").to_owned()),
        ("by", |row| row.allocator.clone().into_owned()),
    ],
    across: None,
    more: &[
        ("units asked for", |rows| units(rows, "units_requested")),
        ("held", |rows| units(rows, "units_held")),
        ("per op", |rows| or_dash(rows[0].ns_per_op, time)),
        ("RMW a unit", |rows| {
            or_dash(rows[0].figure("rmw_per_unit"), |steps| format!("{steps:.3}"))
        }),
        ("granted", |rows| {
            let wrong = if rows[0].is_wrong() { " WRONG" } else { "" };
            let percent = |rate: f64| format!("{:.1} %{wrong}", rate * 100.0);
            or_dash(rows[0].figure("success_rate"), percent)
        }),
    ],
    left: 3,
};

fn units(rows: &[&Row], name: &str) -> String {
    or_dash(rows[0].figure(name), |units| count(units as u64))
}

/// Explains how to read the figures.
pub const FOOTER: &str = "\
The arena is 1 GiB in pages; there is one thread. Exact and placement: 2,000 runs of 1 to 999
units, six in ten below 32, are allocated; half of them are freed and allocated again; then all
are freed. An operation is an allocation, granted or refused, or a free. Held: units in use at the
fullest. Times are medians over the rounds. RMW: read-modify-writes for each unit asked for or
freed. These and the units held are counted with the owner map on.";
