//! `nbbs report`: the page of a record, or of a run made for it.

use anyhow::ensure;

use crate::cmd::{bench, open_record};
use crate::output::print;
use crate::report::args::Report;
use crate::report::keep::is_same;
use crate::report::page::write_page;
use crate::report::record::Record;
use crate::suite::args::Suite;

/// Runs the command. Returns whether all allocators that are meant to be safe were verified.
pub fn run(args: &Report) -> anyhow::Result<bool> {
    let mut verified = true;
    if args.records.is_empty() {
        verified = bench::run(&Suite {
            html: Some(args.output.clone()),
            record: args.record.clone(),
            quick: args.quick,
            silent: true,
            ..Suite::of("all")
        })?;
    } else {
        let mut all = Record::default();
        for path in &args.records {
            let page = &args.output;
            ensure!(!is_same(path, page), "{} is a record, and cannot be the page", path.display());
            all.join(open_record(path)?);
        }
        write_page(&all, &args.output)?;
    }
    print(&format!("the page is {}", args.output.display()))?;
    Ok(verified)
}
