//! Options of `bench limit`, beside those of all workloads.

use clap::Args;

use crate::args::number;

#[derive(Debug, Args)]
pub struct Limit {
    /// Percent of the arena that is in use while pairs are measured [default: 0,50,90,99]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = |text: &str| number(text, 0..=99_u32))]
    pub fills: Vec<u32>,
}

impl Limit {
    /// Returns the percentages that were asked for, or the usual ones: each once, ascending.
    pub fn fills(&self) -> Vec<u32> {
        let mut fills = self.fills.clone();
        if fills.is_empty() {
            fills = vec![0, 50, 90, 99];
        }
        fills.sort_unstable();
        fills.dedup();
        fills
    }
}
