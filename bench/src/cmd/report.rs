//! `nbbs report`: the page of a record, or of a run made for it.

use clap::{Args, FromArgMatches};

use crate::cmd::{open_record, suite};
use crate::output::print;
use crate::report::args::Report;
use crate::report::page::write_page;
use crate::report::record::Record;
use crate::suite::args::Suite;

/// Runs the command; says whether all allocators that are meant to be safe were verified.
pub fn run(args: &Report) -> anyhow::Result<bool> {
    let mut verified = true;
    if args.records.is_empty() {
        verified = suite::run(&Suite {
            html: Some(args.output.clone()),
            record: args.record.clone(),
            silent: true,
            ..whole_suite(args.quick)
        })?;
    } else {
        let mut all = Record::default();
        for path in &args.records {
            all.join(open_record(path)?);
        }
        write_page(&all, &args.output)?;
    }
    print(&format!("the page is {}", args.output.display()))?;
    Ok(verified)
}

/// What `nbbs bench all` runs.
fn whole_suite(quick: bool) -> Suite {
    let words = ["bench", "all"].into_iter().chain(quick.then_some("--quick"));
    let matches = Suite::augment_args(clap::Command::new("bench")).get_matches_from(words);
    Suite::from_arg_matches(&matches).expect("the name of a workload is all it needs")
}
