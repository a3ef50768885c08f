//! Defines the command lines of `nbbs report` and `nbbs compare`.

use std::path::PathBuf;

use clap::Args;

use crate::args::number;

#[derive(Debug, Args)]
pub struct Report {
    /// Records to show together, as `bench --record` writes them [default: runs `bench all`, which takes hours]
    #[arg(value_name = "RECORD")]
    pub records: Vec<PathBuf>,

    /// Measures less of everything, which takes about two minutes
    #[arg(long, conflicts_with = "records")]
    pub quick: bool,

    /// File to write the page to. Replaces a page that it holds
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Also writes what was measured to a record; compressed if FILE ends in .zst. Replaces a record that FILE holds
    #[arg(long, value_name = "FILE", conflicts_with = "records")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// Record of the earlier run
    pub old: PathBuf,

    /// Record of the later run, whose times are divided by those of OLD
    pub new: PathBuf,

    /// Number of rows to print, those that changed most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = |text: &str| number(text, 0..=usize::MAX))]
    pub most: usize,

    /// Prints one JSON object per row instead of a table
    #[arg(long)]
    pub json: bool,
}
