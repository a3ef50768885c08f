//! `nbbs report`: the page of a record, or of a run made for it.

use std::path::Path;

use anyhow::ensure;

use crate::cmd::{bench, open_record};
use crate::output::print;
use crate::report::args::Report;
use crate::report::keep::is_same;
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
        let mut records = Vec::new();
        for path in &args.records {
            records.push(open_record(path)?);
            let page = &args.output;
            ensure!(!is_same(path, page), "{} is a record, and cannot be the page", path.display());
        }
        show(records, &args.output)?;
    }
    print(&format!("the page is {}", args.output.display()))?;
    Ok(verified)
}

/// Writes the page of these records, joined.
#[cfg(feature = "suite")]
fn show(records: Vec<Record>, page: &Path) -> anyhow::Result<()> {
    let mut all = Record::default();
    records.into_iter().for_each(|record| all.join(record));
    crate::report::page::write_page(&all, page)
}

/// Refuses, once all records are known to be good.
#[cfg(not(feature = "suite"))]
fn show(_records: Vec<Record>, _page: &Path) -> anyhow::Result<()> {
    Err(crate::report::takes_suite())
}
