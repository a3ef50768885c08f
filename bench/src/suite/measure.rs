//! All contenders on one case: rounds in turn, then each verified, timed by operation, and counted.

use std::path::Path;

use indicatif::ProgressBar;
use testkit::{BackEnd, Checked};

use super::round::{self, Outcome};
use super::row::rows;
#[cfg(unix)]
use super::suspended;
use super::worker::Setting;
use super::workloads::{Run, Workload};
use crate::clock::Clock;
use crate::market::{CheckedHeap, Contender, Heap, Kind};
use crate::output::in_turn;
use crate::row::Row;
use crate::trace::{HeapTrace, Trace};

/// What is replayed, by workloads that replay.
#[derive(Clone, Copy, Default)]
pub struct Traces<'a> {
    pub pages: Option<&'a Trace>,
    pub heap: Option<&'a HeapTrace>,
}

/// A workload with all that it is run with.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub workload: &'a Workload,
    /// Units of a back-end, bytes of a heap.
    pub units: u64,
    pub traces: Traces<'a>,
    /// Where the heap trace comes from, if it is not the built-in one.
    pub heap_trace: Option<&'a Path>,
    /// Whether it is only run once, and nothing else done: under a tool that counts.
    pub once: bool,
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
    #[cfg(unix)]
    if matches!(case.workload.run, Run::Suspended) {
        bar.inc((contenders.len() * passes(case.rounds)) as u64);
        return suspended::measure(case, contenders, clock);
    }
    let rounds = in_turn(contenders, case.rounds, bar, |contender| case.round(contender, clock));
    let mut all = Vec::new();
    for (contender, rounds) in contenders.iter().zip(&rounds) {
        if case.once {
            all.extend(rows(case, contender, rounds, &rounds[0], &rounds[0], None));
            continue;
        }
        let verified = case.verify(contender, clock);
        let latency = case.latency(contender, clock);
        let steps = case.count(contender, clock);
        bar.inc(3);
        all.extend(rows(case, contender, rounds, &verified, &latency, steps.as_ref()));
    }
    all
}

impl Case<'_> {
    fn run_on(&self, back_end: &dyn BackEnd, clock: &Clock) -> Outcome {
        match self.workload.run {
            Run::Blocks(run) => round::run(run, back_end, self.setting, clock),
            Run::Pages(run) => {
                let trace = self.traces.pages.expect("a replay has a trace");
                round::run_pages(run, back_end, trace, self.setting, clock)
            }
            _ => panic!("{} is not for back-ends", self.workload.name),
        }
    }

    fn run_on_heap(&self, heap: &dyn Heap, clock: &Clock) -> Outcome {
        let (setting, bytes, trace) = (self.setting, self.units, self.traces.heap);
        match self.workload.run {
            Run::Blocks(run) => round::run_sizes(run, heap, bytes, setting, clock),
            Run::Heap(run) => round::run_heap(run, heap, bytes, setting, clock, trace),
            _ => panic!("{} is not for heaps", self.workload.name),
        }
    }

    /// A round: runs the case again and again, until its shortest stretch is long beside the clock and the scheduler, or
    /// the time is up that a stretch may take.
    fn round(&self, contender: &Contender, clock: &Clock) -> Outcome {
        /// What part of that time its shortest stretch has to take: 20 ms, usually.
        const LONG_ENOUGH: f64 = 0.04;
        let (began, limit) = (clock.ticks(), self.setting.limit_ticks);
        let shortest = |outcome: &Outcome| {
            outcome.phases.iter().map(|phase| phase.ns).fold(f64::MAX, f64::min)
        };
        let mut outcome = self.run(contender, clock);
        while !self.once
            && outcome.violation.is_none()
            && shortest(&outcome) < LONG_ENOUGH * clock.ns(limit)
            && clock.ticks() - began < limit
        {
            outcome.add(self.run(contender, clock));
        }
        outcome
    }

    fn run(&self, contender: &Contender, clock: &Clock) -> Outcome {
        if contender.kind() == Kind::Heap {
            return contender.with_heap(self.units, |heap| self.run_on_heap(heap, clock));
        }
        contender.with_back_end(self.units, |back_end| self.run_on(back_end, clock))
    }

    /// The same again, with every single operation held against an owner map.
    fn verify(&self, contender: &Contender, clock: &Clock) -> Outcome {
        if contender.kind() == Kind::Heap {
            return contender.with_heap(self.units, |heap| {
                let checked = CheckedHeap::new(heap);
                let outcome = self.run_on_heap(&checked, clock);
                outcome.found(checked.finish().err())
            });
        }
        contender.with_back_end(self.units, |back_end| {
            let checked = Checked::concurrent(back_end);
            let outcome = self.run_on(&checked, clock);
            outcome.found(checked.violation())
        })
    }

    /// The same again, with every single operation timed.
    fn latency(&self, contender: &Contender, clock: &Clock) -> Outcome {
        let setting = Setting { latency: true, ..self.setting };
        Self { setting, ..*self }.run(contender, clock)
    }

    /// The same again, with read-modify-writes counted.
    fn count(&self, contender: &Contender, clock: &Clock) -> Option<Outcome> {
        contender.with_counted(self.units, |back_end| self.run_on(back_end, clock))
    }
}
