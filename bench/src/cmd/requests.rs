//! `nbbs bench requests`: exact sizes, batches, growth in place, placement.

use crate::args::Requests;
use crate::requests::report::{FOOTER, LAYOUT};
use crate::requests::{CASES, measure};

/// Runs the command.
pub fn run(args: &Requests) -> anyhow::Result<bool> {
    let mut output = args.keep.output(CASES.len())?;
    let mut rows = Vec::new();
    for case in CASES {
        let row = measure(case, args.rounds);
        output.add(std::slice::from_ref(&row))?;
        output.bar.inc(1);
        rows.push(row);
    }
    output.print(|| LAYOUT.table(&rows.iter().collect::<Vec<_>>()).to_string())?;
    output.finish(FOOTER)
}
