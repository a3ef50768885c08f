//! Options of `bench limit`, beside those of all workloads.

use clap::Args;

#[derive(Debug, Args)]
pub struct Limit {
    /// Percent of the arena that is in use while pairs are measured
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,50,90,99",
          value_parser = clap::value_parser!(u32).range(0..=99))]
    pub fills: Vec<u32>,
}
