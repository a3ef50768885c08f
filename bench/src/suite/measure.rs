//! Measures all contenders on one case: runs rounds in turn, then verifies each, times single operations, and counts.

use indicatif::ProgressBar;
use testkit::{BackEnd, Checked};

use super::round::{self, Outcome};
use super::row::{Passes, rows};
use super::spurious::Judged;
#[cfg(unix)]
use super::suspended;
use super::worker::{REPEATS, Setting};
use super::workloads::{Run, Workload};
use crate::clock::Clock;
use crate::market::{CheckedHeap, Contender, Heap, Kind};
use crate::output::in_turn;
use crate::replay::{Replayed, verify};
use crate::row::Row;

/// A case: a workload with all its settings.
#[derive(Clone, Copy)]
pub struct WorkloadCase<'a> {
    pub workload: &'a Workload,
    /// The units of a back-end, or the bytes of a heap.
    pub units: u64,
    /// The trace that is replayed.
    pub trace: Option<&'a Replayed>,
    /// Whether it only runs once, under a tool that counts, and nothing else is done.
    pub once: bool,
    pub setting: Setting,
    pub rounds: usize,
}

/// Measures all contenders, and returns their rows.
pub fn measure(
    case: &WorkloadCase<'_>,
    contenders: &[&'static Contender],
    clock: &Clock,
    bar: &ProgressBar,
) -> Vec<Row> {
    #[cfg(unix)]
    if matches!(case.workload.run, Run::Suspended) {
        return suspended::measure(case, contenders, clock, bar);
    }
    let all_in_turn = |times, run: &dyn Fn(&Contender) -> Outcome| {
        in_turn(contenders, times, bar, |contender| run(contender))
    };
    let rounds = all_in_turn(case.rounds, &|contender| case.round(contender, clock));
    let latency = all_in_turn(case.timed(), &|contender| case.latency(contender, clock));
    let all = contenders.iter().zip(rounds.into_iter().zip(latency));
    let rows = |(contender, (rounds, latency)): (&&'static Contender, (Vec<_>, Vec<_>))| {
        let verified = (!case.once).then(|| case.verify(contender, clock));
        let steps = if case.once { None } else { case.count(contender, clock) };
        bar.inc(2);
        rows(case, contender, &Passes { clock, rounds, latency, verified, steps })
    };
    all.flat_map(rows).collect()
}

impl WorkloadCase<'_> {
    /// Returns how often each contender runs the case: the rounds, those that time single operations, and two more.
    pub fn steps(&self) -> usize {
        self.rounds + self.timed() + 2
    }

    /// Returns how many rounds time single operations.
    fn timed(&self) -> usize {
        match self.workload.by_operation {
            _ if self.once => 0,
            true => self.rounds,
            false => 1,
        }
    }

    fn run_on(&self, back_end: &dyn BackEnd, clock: &Clock) -> Outcome {
        match self.workload.run {
            Run::Blocks(run) => round::run(run, back_end, self.setting, clock),
            Run::Pages(run) => {
                let trace = self.trace.and_then(Replayed::pages).expect("a replay has a trace");
                round::run_pages(run, back_end, trace, self.setting, clock)
            }
            _ => panic!("{} does not run on back-ends", self.workload.name),
        }
    }

    fn run_on_heap(&self, heap: &dyn Heap, clock: &Clock) -> Outcome {
        let (setting, bytes) = (self.setting, self.units);
        let trace = self.trace.and_then(Replayed::heap);
        match self.workload.run {
            Run::Blocks(run) => round::run_sizes(run, heap, bytes, setting, clock),
            Run::Heap(run) => round::run_heap(run, heap, bytes, setting, clock, trace),
            _ => panic!("{} does not run on heaps", self.workload.name),
        }
    }

    /// Runs a round: runs the case again and again, until its shortest stretch is long enough, or that takes too long.
    fn round(&self, contender: &Contender, clock: &Clock) -> Outcome {
        let (began, enough) = (clock.ticks(), self.setting.enough_ticks);
        let shortest = |outcome: &Outcome| {
            outcome.phases.iter().map(|phase| phase.ns).fold(f64::MAX, f64::min)
        };
        let mut outcome = self.run(contender, clock);
        while !self.once
            && outcome.violation.is_none()
            && shortest(&outcome) < clock.ns(enough)
            && clock.ticks() - began < REPEATS * enough
        {
            outcome.add(self.run(contender, clock));
        }
        outcome
    }

    fn run(&self, contender: &Contender, clock: &Clock) -> Outcome {
        Outcome::unless_it_panics(|| {
            if contender.kind() == Kind::Heap {
                return contender.with_heap(self.units, |heap| self.run_on_heap(heap, clock));
            }
            contender.with_back_end(self.units, |back_end| self.run_on(back_end, clock))
        })
    }

    /// Runs the case again, and checks every operation against an owner map.
    fn verify(&self, contender: &Contender, clock: &Clock) -> Outcome {
        let outcome = Outcome::unless_it_panics(|| self.judged(contender, clock));
        let Some(trace) = self.trace.and_then(Replayed::pages) else { return outcome };
        outcome.replayed(verify::verify(contender, self.units, trace, self.setting.threads))
    }

    fn judged(&self, contender: &Contender, clock: &Clock) -> Outcome {
        if contender.kind() == Kind::Heap {
            return contender.with_heap(self.units, |heap| {
                let checked = CheckedHeap::new(heap);
                let outcome = self.run_on_heap(&checked, clock);
                outcome.found(checked.finish().err())
            });
        }
        contender.with_back_end(self.units, |back_end| {
            let judged = Judged::new(back_end);
            // On one thread every refusal can be judged; on several, those of single units, by `judged`.
            let check =
                if self.setting.threads == 1 { Checked::sequential } else { Checked::concurrent };
            let checked = check(&judged as &dyn BackEnd);
            let outcome = self.run_on(&checked, clock);
            let spurious = Some(judged.spurious());
            Outcome { spurious, ..outcome.found(checked.violation()) }
        })
    }

    /// Runs the case again, and times every operation.
    fn latency(&self, contender: &Contender, clock: &Clock) -> Outcome {
        let setting = Setting { latency: true, ..self.setting };
        Self { setting, ..*self }.run(contender, clock)
    }

    /// Runs the case again, and counts read-modify-writes.
    fn count(&self, contender: &Contender, clock: &Clock) -> Option<Outcome> {
        let count =
            |back_end: &dyn BackEnd| Outcome::unless_it_panics(|| self.run_on(back_end, clock));
        contender.with_counted(self.units, count)
    }
}
