//! A workload on one allocator: its threads, its times, and an owner map of what it left.

use hdrhistogram::Histogram;
use testkit::{BackEnd, Block, Oracle, Violation};

use super::worker::{Common, Setting, Stretch, Worker};
use super::workloads::Workload;
use crate::clock::Clock;
use crate::limit::crew::Crew;

/// A stretch of all threads together.
#[derive(Clone, Debug)]
pub struct Phase {
    pub name: &'static str,
    /// From the first thread's beginning to the last one's end.
    pub ns: f64,
    pub ops: u64,
    pub steps: u64,
    pub complete: bool,
    pub latency: Option<Histogram<u64>>,
}

/// What a round did.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub phases: Vec<Phase>,
    /// Allocations that were refused.
    pub refused: u64,
    /// Of the frames of 2 MiB that could be free, those that are: percent.
    pub recovered_percent: Option<f64>,
    pub metadata_bytes: usize,
    /// What was wrong.
    pub violation: Option<String>,
}

/// Runs the workload once, on an allocator that holds nothing, and leaves it so.
pub fn run(
    workload: &Workload,
    back_end: &dyn BackEnd,
    setting: Setting,
    clock: &Clock,
) -> Outcome {
    let common = Common::new(back_end, setting, clock);
    let threads: Vec<Thread> = Crew::run(setting.threads, |crew, lane| {
        let mut worker = Worker::new(&common, crew, lane);
        (workload.run)(&mut worker);
        Thread::from(worker)
    });
    let held = threads.iter().flat_map(|thread| thread.held.iter().copied());
    let held: Vec<Block> = held.chain(common.into_mail()).collect();
    let metadata_bytes = back_end.metadata_bytes();
    let oracle = Oracle::of(back_end);
    let violation = check(back_end, &oracle, &threads, &held);
    let recovered_percent = violation.as_ref().ok().and_then(|&recovered| recovered);
    Outcome {
        phases: phases(&threads, clock),
        refused: threads.iter().map(|thread| thread.refused).sum(),
        recovered_percent,
        metadata_bytes,
        violation: violation.err(),
    }
}

/// What is left of a worker.
struct Thread {
    held: Vec<Block>,
    stretches: Vec<Stretch>,
    allocs: u64,
    frees: u64,
    refused: u64,
    wrong_frees: u64,
}

impl From<Worker<'_>> for Thread {
    fn from(worker: Worker<'_>) -> Self {
        let Worker { held, stretches, allocs, frees, refused, wrong_frees, .. } = worker;
        Self { held, stretches, allocs, frees, refused, wrong_frees }
    }
}

/// The threads' stretches, in their order; those of one name are one phase.
fn phases(threads: &[Thread], clock: &Clock) -> Vec<Phase> {
    let count = threads.first().map_or(0, |thread| thread.stretches.len());
    let mut phases: Vec<Phase> = Vec::new();
    for place in 0..count {
        let stretches = threads.iter().map(|thread| &thread.stretches[place]);
        let phase = Phase::of(stretches, clock);
        match phases.iter_mut().find(|other| other.name == phase.name) {
            Some(other) => other.add(&phase),
            None => phases.push(phase),
        }
    }
    phases
}

impl Phase {
    /// One stretch of all threads.
    fn of<'a>(stretches: impl Iterator<Item = &'a Stretch> + Clone, clock: &Clock) -> Self {
        let all = || stretches.clone();
        let began = all().map(|stretch| stretch.began).min().unwrap_or(0);
        let ended = all().map(|stretch| stretch.ended).max().unwrap_or(0);
        Self {
            name: all().next().map_or("", |stretch| stretch.name),
            ns: clock.ns(ended.saturating_sub(began)),
            ops: all().map(|stretch| stretch.ops).sum(),
            steps: all().map(|stretch| stretch.steps).sum(),
            complete: all().all(|stretch| stretch.complete),
            latency: all().filter_map(|stretch| stretch.latency.clone()).reduce(merged),
        }
    }

    fn add(&mut self, other: &Self) {
        self.ns += other.ns;
        self.ops += other.ops;
        self.steps += other.steps;
        self.complete &= other.complete;
        self.latency = self.latency.take().into_iter().chain(other.latency.clone()).reduce(merged);
    }
}

fn merged(mut one: Histogram<u64>, other: Histogram<u64>) -> Histogram<u64> {
    one.add(other).expect("histograms of one size");
    one
}

/// Holds what is left against the counts and an owner map, frees it, and asks for the largest blocks.
fn check(
    back_end: &dyn BackEnd,
    oracle: &Oracle,
    threads: &[Thread],
    held: &[Block],
) -> Result<Option<f64>, String> {
    let sum = |figure: fn(&Thread) -> u64| threads.iter().map(figure).sum::<u64>();
    let (allocs, frees) = (sum(|thread| thread.allocs), sum(|thread| thread.frees));
    let wrong_frees = sum(|thread| thread.wrong_frees);
    if wrong_frees > 0 {
        return Err(format!("{wrong_frees} frees of blocks in use were refused"));
    }
    if allocs != frees + held.len() as u64 {
        return Err(format!("{allocs} allocations, {frees} frees, {} blocks held", held.len()));
    }
    let take = |block: &Block| oracle.take(0, block.index, block.order).map(|_| ());
    held.iter().try_for_each(take).map_err(|violation| violation.to_string())?;
    let recovered = recovered_percent(oracle);
    give_back(back_end, oracle, held).map_err(|violation| violation.to_string())?;
    Ok(recovered)
}

/// Of the frames of 2 MiB that the free units could be, those that they are.
fn recovered_percent(oracle: &Oracle) -> Option<f64> {
    const ORDER: u32 = 9;
    let possible = (oracle.units() - oracle.held_units()) >> ORDER;
    (possible > 0).then(|| oracle.free_blocks(ORDER) as f64 * 100.0 / possible as f64)
}

/// Frees everything; then all of the largest blocks must come, and no more.
fn give_back(back_end: &dyn BackEnd, oracle: &Oracle, held: &[Block]) -> Result<(), Violation> {
    let free = |block: Block| {
        oracle.give(block)?;
        let freed = back_end.free(0, block.index, block.order);
        freed.map_err(|reason| Violation::FreeRefused { block, reason })
    };
    held.iter().try_for_each(|&block| free(block))?;
    let order = back_end.max_order();
    let take = |index| oracle.take(0, index, order);
    let whole = std::iter::from_fn(|| back_end.alloc(0, order)).map(take);
    let whole = whole.collect::<Result<Vec<Block>, _>>()?;
    let (blocks, expected) = (whole.len() as u64, back_end.units() >> order);
    whole.into_iter().try_for_each(free)?;
    if blocks == expected { Ok(()) } else { Err(Violation::NotWhole { order, blocks, expected }) }
}
