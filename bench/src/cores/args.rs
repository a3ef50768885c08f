//! The command line of `nbbs bench cores`.

use clap::{Args, ValueEnum};

use super::plan::{Contender, Depth, LOOPS, Loop};
use crate::args::{Keep, threads};

/// Installs the simulator rvsim from PyPI, into a folder of its own under target/, and builds the program that it runs. It
/// takes python3 with its module venv, and Rust's target riscv64gc-unknown-none-elf.
#[derive(Debug, Args)]
pub struct Cores {
    /// Numbers of cores; one by itself is always measured, as figures stand beside it [default: 2,4,8,16,32,64; with --quick
    /// 2,4,8]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threads)]
    pub harts: Vec<usize>,

    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = find)]
    #[arg(help = format!("What they do, of {} [default: all; with --quick pairs]", names()))]
    pub loops: Vec<&'static Loop>,

    /// Allocators, by the names that the tables have [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = allocator)]
    pub allocators: Vec<String>,

    /// The machine: a server's, or one with a slow interconnect
    #[arg(long, value_name = "NAME", default_value = "server")]
    pub machine: Machine,

    /// Less of everything: two minutes
    #[arg(long, conflicts_with = "long")]
    pub quick: bool,

    /// Also those who wait for each other on more than 16 cores, which takes hours
    #[arg(long)]
    pub long: bool,

    /// Fails unless all that share nothing scale, and move next to nothing from cache to cache
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    pub keep: Keep,
}

/// The simulated machines: `bench/cores/machine.py` has their parameters.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Machine {
    Server,
    Far,
}

impl Cores {
    /// One, and the numbers of cores asked for, or the usual ones; each once, ascending.
    pub fn harts(&self) -> Vec<usize> {
        let usual: &[usize] = if self.quick { &[2, 4, 8] } else { &[2, 4, 8, 16, 32, 64] };
        let mut harts = if self.harts.is_empty() { usual.to_vec() } else { self.harts.clone() };
        harts.push(1);
        harts.sort_unstable();
        harts.dedup();
        harts
    }

    /// The loops asked for, or the usual ones.
    pub fn loops(&self) -> Vec<&'static Loop> {
        if !self.loops.is_empty() {
            return self.loops.clone();
        }
        let quick = if self.quick { 1 } else { LOOPS.len() };
        LOOPS[..quick].iter().collect()
    }

    /// Its orders; with --quick the first.
    pub fn orders(&self, of: &Loop) -> Vec<Option<u32>> {
        let orders = of.orders.iter().map(|&order| Some(order));
        let orders: Vec<_> = if self.quick { orders.take(1).collect() } else { orders.collect() };
        if orders.is_empty() { vec![None] } else { orders }
    }

    /// Whether that allocator takes part.
    pub fn wants(&self, contender: &Contender) -> bool {
        let is_named = self.allocators.iter().any(|name| name == contender.name);
        is_named || (self.allocators.is_empty() && !contender.patient)
    }

    /// How long it may take.
    pub fn depth(&self) -> Depth {
        match (self.quick, self.long) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Long,
            _ => Depth::Usual,
        }
    }
}

impl Machine {
    /// What `machine.py` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Far => "far",
        }
    }
}

/// The names of the loops.
fn names() -> String {
    let names: Vec<&str> = LOOPS.iter().map(|of| of.name).collect();
    names.join(", ")
}

fn find(name: &str) -> Result<&'static Loop, String> {
    let found = LOOPS.iter().find(|of| of.name == name);
    found.ok_or_else(|| format!("there is no loop of that name; there are: {}", names()))
}

fn allocator(name: &str) -> Result<String, String> {
    let mut names: Vec<&str> = Vec::new();
    for contender in LOOPS.iter().flat_map(|of| of.contenders) {
        if !names.contains(&contender.name) {
            names.push(contender.name);
        }
    }
    let refusal = || format!("there is no allocator of that name; there are: {}", names.join(", "));
    names.contains(&name).then(|| name.to_owned()).ok_or_else(refusal)
}

#[cfg(test)]
mod tests {
    use super::{allocator, find};

    #[test]
    fn unknown_names_get_the_known_ones() {
        assert!(find("pairs").is_ok() && allocator("linux-mcs").is_ok());
        assert!(find("triples").err().is_some_and(|message| message.contains("pairs, bulk")));
        assert!(allocator("jemalloc").is_err_and(|message| message.contains("nbbs, nbbs-lanes")));
    }
}
