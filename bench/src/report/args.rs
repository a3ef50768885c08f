//! `nbbs report` and `nbbs compare`: the command lines.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct Report {
    /// Records to show together [default: the whole suite is run]
    #[arg(value_name = "RECORD")]
    pub records: Vec<PathBuf>,

    /// Runs less of everything
    #[arg(long, conflicts_with = "records")]
    pub quick: bool,

    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Keeps what was measured as a record too, compressed if FILE ends in .zst
    #[arg(long, value_name = "FILE", conflicts_with = "records")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The record to compare with
    pub old: PathBuf,

    /// The record that is compared
    pub new: PathBuf,

    /// How many rows to print, those that changed most
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub most: usize,

    /// Prints one JSON object for every row instead of a table
    #[arg(long)]
    pub json: bool,
}
