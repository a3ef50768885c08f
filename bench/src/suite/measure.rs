//! All contenders on one case: rounds in turn, then each verified, timed by operation, and counted.

use baselines::Contender;
use indicatif::ProgressBar;
use testkit::{BackEnd, Checked};

use super::counted::with_counted;
use super::round::{self, Outcome};
use super::row::Row;
use super::worker::Setting;
use super::workloads::Workload;
use crate::clock::Clock;

/// A workload with all that it is run with.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub workload: &'a Workload,
    pub units: u64,
    pub setting: Setting,
    pub rounds: usize,
}

/// How often each contender runs a case: the rounds and the three passes after them.
pub fn passes(rounds: usize) -> usize {
    rounds + 3
}

/// The rows of all contenders.
pub fn measure(
    case: &Case<'_>,
    contenders: &[&'static Contender],
    clock: &Clock,
    bar: &ProgressBar,
) -> Vec<Row> {
    let mut rounds: Vec<Vec<Outcome>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..case.rounds {
        // Whoever runs behind a slow one finds another machine: each round begins with the next.
        for turn in 0..contenders.len() {
            let place = (round + turn) % contenders.len();
            rounds[place].push(case.run(contenders[place], clock));
            bar.inc(1);
        }
    }
    let mut rows = Vec::new();
    for (contender, rounds) in contenders.iter().zip(&rounds) {
        let verified = case.verify(contender, clock);
        let latency = case.latency(contender, clock);
        let steps = case.count(contender, clock);
        bar.inc(3);
        rows.extend(Row::of(case, contender, rounds, &verified, &latency, steps.as_ref()));
    }
    rows
}

impl Case<'_> {
    fn run_on(&self, back_end: &dyn BackEnd, clock: &Clock) -> Outcome {
        round::run(self.workload, back_end, self.setting, clock)
    }

    fn run(&self, contender: &Contender, clock: &Clock) -> Outcome {
        contender.with_back_end(self.units, |back_end| self.run_on(back_end, clock))
    }

    /// The same again, with every single operation held against an owner map.
    fn verify(&self, contender: &Contender, clock: &Clock) -> Outcome {
        contender.with_back_end(self.units, |back_end| {
            let checked = Checked::concurrent(back_end);
            let mut outcome = self.run_on(&checked, clock);
            let violation = checked.violation().map(|violation| violation.to_string());
            outcome.violation = violation.or(outcome.violation);
            outcome
        })
    }

    /// The same again, with every single operation timed.
    fn latency(&self, contender: &Contender, clock: &Clock) -> Outcome {
        let setting = Setting { latency: true, ..self.setting };
        Self { setting, ..*self }.run(contender, clock)
    }

    /// The same again, with read-modify-writes counted.
    fn count(&self, contender: &Contender, clock: &Clock) -> Option<Outcome> {
        with_counted(contender.name, self.units, |back_end| self.run_on(back_end, clock))
    }
}
