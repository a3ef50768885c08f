//! Options of `bench cores`, beside those of all workloads.

use clap::{Args, ValueEnum};

use super::plan::{LOOPS, Loop};

#[derive(Debug, Args)]
pub struct Cores {
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = find)]
    #[arg(help = format!("Loops that the cores run, from {} [default: all; with --quick pairs]", names()))]
    pub loops: Vec<&'static Loop>,

    /// Machine to simulate: a server, or one with a slow interconnect [default: server]
    #[arg(long, value_name = "NAME")]
    pub machine: Option<Machine>,

    /// Also runs allocators whose cores wait for each other on more than 16 cores, which takes hours
    #[arg(long, conflicts_with = "quick")]
    pub long: bool,

    /// Fails unless all cores that share nothing scale, and move almost nothing from cache to cache
    #[arg(long)]
    pub check: bool,
}

/// The simulated machines: `bench/cores/machine.py` has their parameters.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Machine {
    #[default]
    Server,
    Far,
}

impl Machine {
    /// Returns the name that `machine.py` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Far => "far",
        }
    }
}

/// Returns the names of the loops.
fn names() -> String {
    let names: Vec<&str> = LOOPS.iter().map(|of| of.name).collect();
    names.join(", ")
}

fn find(name: &str) -> Result<&'static Loop, String> {
    let found = LOOPS.iter().find(|of| of.name == name);
    found.ok_or_else(|| format!("there is no such loop; there are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn unknown_names_get_the_known_ones() {
        assert!(find("pairs").is_ok());
        assert!(
            find("triples")
                .err()
                .is_some_and(|message| message.contains("pairs, ") && message.contains("bulk"))
        );
    }
}
