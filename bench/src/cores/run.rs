//! One simulation.

use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::tools::{Tools, said};
use crate::median::median;

/// A simulation to run.
pub struct Request<'a> {
    pub machine: &'static str,
    pub harts: usize,
    pub name: &'a str,
    pub contender: &'a str,
    pub order: u32,
    pub units: u64,
    pub warm_up: u64,
    pub operations: u64,
}

/// The outcome of a simulation.
pub struct Outcome {
    pub clock_mhz: f64,
    /// What each hart measured.
    pub harts: Vec<Hart>,
    /// The number of lines that moved from one hart's caches to another's.
    pub transfers: f64,
    pub instructions: f64,
}

/// What a hart measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hart {
    pub operations: u64,
    pub cycles: u64,
    /// Operations until the last hart had measured, over which the simulator counts.
    pub all: u64,
}

/// What `simulate.py` prints.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Failed { failed: String },
    Done { clock_mhz: f64, console: String, transfers: f64, instructions: f64 },
}

impl Request<'_> {
    /// Runs the simulation.
    ///
    /// # Errors
    /// The simulator, or the program in it, fails: returns its message.
    pub fn run(&self, tools: &Tools) -> anyhow::Result<Outcome> {
        let &Self { machine, harts, name, contender, order, units, warm_up, operations } = self;
        let request = format!("{name} {contender} {order} {units} {warm_up} {operations}");
        let mut python = Command::new(&tools.python);
        python.arg(&tools.script).arg(&tools.image);
        python.args([machine, &harts.to_string(), &request]).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = python.output().context("the simulator does not start")?;
        ensure!(output.status.success(), "the simulator fails: {}", said(&output));
        match serde_json::from_slice(&output.stdout)? {
            Said::Failed { failed } => bail!("{request}, on {harts} cores: {failed}"),
            Said::Done { clock_mhz, console, transfers, instructions } => {
                let harts = console.lines().filter_map(Hart::read).collect();
                Ok(Outcome { clock_mhz, harts, transfers, instructions })
            }
        }
    }
}

impl Hart {
    /// Reads a line `hart OPERATIONS CYCLES ALL`.
    fn read(line: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix("hart ")?.split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { operations: next()?, cycles: next()?, all: next()? })
    }
}

impl Outcome {
    /// Returns the operations per second, of all harts together.
    pub fn per_second(&self) -> f64 {
        let per_cycle = |hart: &Hart| hart.operations as f64 / hart.cycles as f64;
        self.harts.iter().map(per_cycle).sum::<f64>() * self.clock_mhz * 1e6
    }

    /// Returns the cycles that an operation takes a hart, in the mean.
    pub fn cycles_per_op(&self) -> f64 {
        let cycles = |hart: &Hart| hart.cycles as f64 / hart.operations as f64;
        self.harts.iter().map(cycles).sum::<f64>() / self.harts.len() as f64
    }

    /// Returns the cycles that an operation takes the median hart: if one hart does something else, this is one of the
    /// others.
    pub fn median_cycles_per_op(&self) -> f64 {
        median(self.harts.iter().map(|hart| hart.cycles as f64 / hart.operations as f64))
    }

    /// Returns the number of measured operations.
    pub fn operations(&self) -> u64 {
        self.harts.iter().map(|hart| hart.operations).sum()
    }

    /// Divides a count of the simulator by the operations.
    pub fn per_op(&self, count: f64) -> f64 {
        count / self.harts.iter().map(|hart| hart.all as f64).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Hart, Outcome};

    #[test]
    fn one_hart_that_does_something_else_leaves_the_median_alone() {
        let hart = |cycles| Hart { operations: 100, cycles, all: 100 };
        let harts = vec![hart(90_000), hart(7_000), hart(8_000)];
        let outcome = Outcome { clock_mhz: 1.0, harts, transfers: 0.0, instructions: 0.0 };
        assert!((outcome.median_cycles_per_op() - 80.0).abs() < 1e-9);
        assert!((outcome.cycles_per_op() - 350.0).abs() < 1e-9);
    }

    #[test]
    fn lines_of_harts_are_read_and_others_are_not() {
        let hart = Hart { operations: 600, cycles: 49_000, all: 612 };
        assert_eq!(Hart::read("hart 600 49000 612"), Some(hart));
        assert_eq!(Hart::read("hart 600 49000"), None);
        assert_eq!(Hart::read("a line of the simulator's"), None);
    }
}
