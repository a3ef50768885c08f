//! The command line of both programs: the parts and the share of the races that are run.

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, FromArgMatches, Parser};
use testkit::Share;

/// Runs races on the allocator's own code, then on allocators that are known to be broken.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The only part to run
    part: Option<String>,
    /// Run fifty times as many races
    #[arg(long)]
    pub long: bool,
    /// End at the first finding in ours, and leave the patients out
    #[arg(long)]
    pub first: bool,
    /// Run every Nth of the races, from the Kth on
    #[arg(long, value_name = "K/N", default_value = "0/1")]
    pub share: Share,
}

impl Arguments {
    /// Reads the command line of a program that has these parts; ends the program if that is malformed.
    #[must_use]
    pub fn read(parts: &[&'static str]) -> Self {
        let named = PossibleValuesParser::new(parts);
        let command = Self::command().mut_arg("part", |part| part.value_parser(named));
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// Returns whether a part is to run.
    #[must_use]
    pub fn asks_for(&self, name: &str) -> bool {
        self.part.as_ref().is_none_or(|part| part == name)
    }
}
