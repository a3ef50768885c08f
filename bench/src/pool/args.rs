//! Options of `bench pool`, beside those of all workloads.

use clap::{Args, ValueEnum};

use super::ObjectCase;
use crate::args::number;

/// More than any machine does in an hour, and few enough to be added up.
const MAX_PAIRS: u64 = 1_000_000_000_000;

#[derive(Debug, Args)]
pub struct Objects {
    /// What to do with objects [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    cases: Vec<ObjectCase>,

    /// Number of allocations, and of frees, over all threads [default: 50000000; with --quick 20000000]
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, 1..=MAX_PAIRS))]
    pub pairs: Option<u64>,
}

impl Objects {
    /// Returns whether cases were asked for.
    pub fn has_cases(&self) -> bool {
        !self.cases.is_empty()
    }

    /// Returns the cases that were asked for, or all.
    pub fn cases(&self) -> &[ObjectCase] {
        if self.cases.is_empty() { ObjectCase::value_variants() } else { &self.cases }
    }
}
