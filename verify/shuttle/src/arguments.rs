//! The command line of both programs: the parts and the share of the races that are run.

use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, FromArgMatches, Parser};

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

/// A share of the numbers from 0 on: every `n`th.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    first: u64,
    every: u64,
}

impl FromStr for Share {
    type Err = &'static str;

    /// Parses `K/N`: every `N`th number, from the remainder of `K` on.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(first, every)| {
            let every = every.parse().ok().filter(|&every| every > 0)?;
            Some(Self { first: first.parse::<u64>().ok()? % every, every })
        });
        numbers.ok_or("a share is K/N, of which N is above 0")
    }
}

impl Share {
    /// Iterates over those of the first `count` numbers that are in the share.
    pub fn of(self, count: u64) -> impl Iterator<Item = u64> {
        (self.first..count).step_by(self.every as usize)
    }
}
