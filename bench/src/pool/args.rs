//! Options of `bench pool`, beside those of all workloads.

use clap::{Args, ValueEnum};

use super::Case;

#[derive(Debug, Args)]
pub struct Objects {
    /// What to do with objects [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    cases: Vec<Case>,

    /// Number of allocations, and of frees, over all threads [default: 50000000; with --quick 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub pairs: Option<u64>,
}

impl Objects {
    /// Returns the cases that were asked for, or all.
    pub fn cases(&self) -> &[Case] {
        if self.cases.is_empty() { Case::value_variants() } else { &self.cases }
    }
}
