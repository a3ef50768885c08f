//! `nbbs bench requests`: exact sizes, batches, growth in place, placement.

use crate::args::Requests;
use crate::cmd::{print, print_json};
use crate::requests::{CASES, Row, measure};
use crate::table::{count, table, time};

/// Runs the command.
pub fn run(args: &Requests) -> anyhow::Result<bool> {
    let mut rows = Vec::new();
    for case in CASES {
        let row = measure(case, args.rounds);
        if args.json {
            print_json(&row)?;
        }
        rows.push(row);
    }
    if !args.json {
        print(&report(&rows))?;
        print(FOOTER)?;
    }
    Ok(rows.iter().all(|row| row.verified))
}

fn report(rows: &[Row]) -> String {
    let header =
        ["case", "workload", "by", "units asked for", "held", "per op", "RMW a unit", "granted"];
    let mut table = table(&header, 3);
    for row in rows {
        let wrong = if row.verified { "" } else { " WRONG" };
        table.add_row([
            row.case.to_owned(),
            row.workload.to_owned(),
            row.allocator.to_owned(),
            count(row.units_requested),
            count(row.units_held),
            time(row.ns_per_op),
            format!("{:.3}", row.rmw_per_unit),
            format!("{:.1} %{wrong}", row.success_rate * 100.0),
        ]);
    }
    table.to_string()
}

/// How to read the figures.
const FOOTER: &str = "\
An arena of 1 GiB in pages, one thread. Exact and placement: 2,000 runs of 1 to 999 units,
six in ten below 32, are allocated, half of them freed and allocated again, all freed; an
operation is either. Held: units in use at the fullest. Times are medians over the rounds.
RMW: read-modify-writes for each unit asked for or freed, counted with the owner map on.";
