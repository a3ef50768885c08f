//! Runs a workload on one allocator: its threads, its times, and an owner map of what it left.

use std::panic::{AssertUnwindSafe, catch_unwind};

use testkit::{BackEnd, Block, Oracle, Violation};

use super::gauge::{Latency, Stretch};
use super::on_heap::{ByAddress, HeapRound, with_sizes};
use super::worker::{Common, Setting, Worker};
use crate::clock::Clock;
use crate::counted::Counts;
use crate::crew::Crew;
use crate::market::Heap;
use crate::replay::verify::Verdict;
use crate::row::Name;
use crate::trace::{HeapTrace, Trace};

/// A stretch of all threads together.
#[derive(Clone, Debug)]
pub struct Phase {
    pub name: Name,
    /// The time from the first thread's beginning to the last one's end.
    pub ns: f64,
    pub ops: u64,
    pub counts: Counts,
    pub complete: bool,
    pub latency: Option<Latency>,
}

/// The outcome of a round.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub phases: Vec<Phase>,
    /// Allocations that were refused.
    pub refused: u64,
    /// The number of those, in the pass with an owner map, that were certainly wrong.
    pub spurious: Option<u64>,
    /// The percentage of the frames of 2 MiB that are free, of those that could be.
    pub recovered_percent: Option<f64>,
    /// The verdict on a replay in the order of its trace.
    pub replayed: Option<Verdict>,
    /// For `heap-efficiency`: the percentage of a heap's memory that its blocks had asked for when it was full.
    pub efficiency_percent: Option<f64>,
    /// The bytes of bookkeeping, if it lies apart from the blocks.
    pub metadata_bytes: Option<u64>,
    /// The violation that was found, if any.
    pub violation: Option<String>,
}

/// The part of one thread.
#[derive(Default)]
pub struct Part {
    pub stretches: Vec<Stretch>,
    /// Allocations that were refused.
    pub refused: u64,
    /// Frees of blocks in use that were refused.
    pub wrong_frees: u64,
    /// The panic that ended it.
    pub broken: Option<String>,
    /// See [`Outcome::efficiency_percent`].
    pub efficiency_percent: Option<f64>,
}

/// Runs the workload once, on an allocator of which nothing is held, and leaves it so.
pub fn run(
    workload: fn(&mut Worker<'_>),
    back_end: &dyn BackEnd,
    setting: Setting,
    clock: &Clock,
) -> Outcome {
    let (threads, held) = play(workload, back_end, setting, clock);
    let counts = check_counts(&threads, &held);
    let parts = threads.into_iter().map(|thread| thread.part).collect();
    settled(Outcome::of(parts, clock), counts, back_end, &held)
}

/// A replay of page allocations: it returns what the threads did, and the blocks that are left.
pub type OnPages = fn(&dyn BackEnd, &Trace, Setting, &Clock) -> (Vec<Part>, Vec<Block>);

/// Replays a trace of pages.
pub fn run_pages(
    workload: OnPages,
    back_end: &dyn BackEnd,
    trace: &Trace,
    setting: Setting,
    clock: &Clock,
) -> Outcome {
    let (parts, held) = workload(back_end, trace, setting, clock);
    let frees = check_frees(parts.iter());
    settled(Outcome::of(parts, clock), frees, back_end, &held)
}

/// Completes the outcome with the state of the back-end's memory and with violations.
fn settled(
    outcome: Outcome,
    counts: Result<(), String>,
    back_end: &dyn BackEnd,
    held: &[Block],
) -> Outcome {
    let metadata_bytes = Some(back_end.metadata_bytes() as u64);
    if outcome.violation.is_some() {
        return Outcome { metadata_bytes, ..outcome };
    }
    let oracle = Oracle::of(back_end);
    let settled = counts.and_then(|()| settle(back_end, &oracle, held));
    let recovered_percent = settled.as_ref().ok().and_then(|&recovered| recovered);
    Outcome { recovered_percent, metadata_bytes, violation: settled.err(), ..outcome }
}

/// Runs a workload on a heap, with blocks of powers of two of bytes.
pub fn run_sizes(
    workload: fn(&mut Worker<'_>),
    heap: &dyn Heap,
    bytes: u64,
    setting: Setting,
    clock: &Clock,
) -> Outcome {
    let (parts, violation) = with_sizes(heap, bytes, |back_end| {
        let (threads, held) = play(workload, back_end, setting, clock);
        let violation = check_counts(&threads, &held).err();
        for block in held {
            back_end.free(0, block.index, block.order).expect("a heap takes every block back");
        }
        (threads.into_iter().map(|thread| thread.part).collect(), violation)
    });
    let metadata_bytes = heap.metadata_bytes().map(|bytes| bytes as u64);
    Outcome { metadata_bytes, violation, ..Outcome::of(parts, clock) }
}

/// Runs a workload that only runs on heaps.
pub fn run_heap(
    workload: fn(&HeapRound<'_>) -> Vec<Part>,
    heap: &dyn Heap,
    bytes: u64,
    setting: Setting,
    clock: &Clock,
    trace: Option<&HeapTrace>,
) -> Outcome {
    #[allow(unsafe_code)]
    // SAFETY: the workloads free and resize what they hold, and hold what they were given.
    let by_address = unsafe { ByAddress::new(heap) };
    let parts = workload(&HeapRound { heap: by_address, bytes, setting, clock, trace });
    Outcome {
        metadata_bytes: heap.metadata_bytes().map(|bytes| bytes as u64),
        ..Outcome::of(parts, clock)
    }
}

impl Outcome {
    /// Returns the outcome of `run`. If the allocator panics, that is all there is to say.
    pub fn unless_it_panics(run: impl FnOnce() -> Self) -> Self {
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let violation = Some(Violation::from_panic(&*panic).to_string());
            Self { violation, ..Self::default() }
        })
    }

    /// Combines what the threads did.
    fn of(parts: Vec<Part>, clock: &Clock) -> Self {
        Self {
            phases: phases(&parts, clock),
            refused: parts.iter().map(|part| part.refused).sum(),
            efficiency_percent: parts.iter().find_map(|part| part.efficiency_percent),
            violation: parts.iter().find_map(|part| part.broken.clone()),
            ..Self::default()
        }
    }

    /// Adds another run of the same case, which makes the stretches longer. Its operations count, too. Refusals are
    /// those of the run with the most, as how often a case is run depends on the allocator's speed. Everything else
    /// stays that of the first run.
    pub fn add(&mut self, other: Self) {
        for (phase, more) in self.phases.iter_mut().zip(&other.phases) {
            phase.add(more);
        }
        self.refused = self.refused.max(other.refused);
        self.violation = self.violation.take().or(other.violation);
    }

    /// Adds the verdict on a replay in the order of its trace, where every refusal can be judged.
    pub fn replayed(mut self, verdict: Verdict) -> Self {
        self.violation = verdict.violation.clone().or(self.violation);
        Self { replayed: Some(verdict), ..self }
    }

    /// Adds a violation that was found beside it.
    pub fn found(mut self, violation: Option<Violation>) -> Self {
        self.violation = violation.map(|violation| violation.to_string()).or(self.violation);
        self
    }
}

/// Runs the threads, and returns what they did, and the blocks that they hold.
fn play(
    workload: fn(&mut Worker<'_>),
    back_end: &dyn BackEnd,
    setting: Setting,
    clock: &Clock,
) -> (Vec<Thread>, Vec<Block>) {
    let common = Common::new(back_end, setting, clock);
    let mut threads: Vec<Thread> = Crew::run(setting.threads, |crew, lane| {
        let mut worker = Worker::new(&common, crew, lane);
        workload(&mut worker);
        Thread::from(worker)
    });
    let held = threads.iter_mut().flat_map(|thread| std::mem::take(&mut thread.held));
    let held = held.collect::<Vec<_>>().into_iter().chain(common.into_mail()).collect();
    (threads, held)
}

/// What is left of a worker.
struct Thread {
    part: Part,
    held: Vec<Block>,
    allocs: u64,
    frees: u64,
}

impl From<Worker<'_>> for Thread {
    fn from(worker: Worker<'_>) -> Self {
        let Worker { held, stretches, allocs, frees, refused, wrong_frees, .. } = worker;
        let part = Part { stretches, refused, wrong_frees, ..Part::default() };
        Self { part, held, allocs, frees }
    }
}

/// Combines the threads' stretches, in their order; those of one name form one phase.
fn phases(parts: &[Part], clock: &Clock) -> Vec<Phase> {
    let count = parts.first().map_or(0, |part| part.stretches.len());
    let mut phases: Vec<Phase> = Vec::new();
    for place in 0..count {
        let stretches = parts.iter().map(|part| &part.stretches[place]);
        let phase = Phase::of(stretches, clock);
        match phases.iter_mut().find(|other| other.name == phase.name) {
            Some(other) => other.add(&phase),
            None => phases.push(phase),
        }
    }
    phases
}

impl Phase {
    /// Combines one stretch of all threads.
    fn of<'a>(stretches: impl Iterator<Item = &'a Stretch> + Clone, clock: &Clock) -> Self {
        let all = || stretches.clone();
        let began = all().map(|stretch| stretch.began).min().unwrap_or(0);
        let ended = all().map(|stretch| stretch.ended).max().unwrap_or(0);
        Self {
            name: all().next().map_or("".into(), |stretch| stretch.name.clone()),
            ns: clock.ns(ended.saturating_sub(began)),
            ops: all().map(|stretch| stretch.ops).sum(),
            counts: all()
                .map(|stretch| stretch.counts)
                .fold(Counts::default(), |sum, one| sum + one),
            complete: all().all(|stretch| stretch.complete),
            latency: all().filter_map(|stretch| stretch.latency.clone()).reduce(Latency::add),
        }
    }

    fn add(&mut self, other: &Self) {
        self.ns += other.ns;
        self.ops += other.ops;
        self.counts = self.counts + other.counts;
        self.complete &= other.complete;
        self.latency =
            self.latency.take().into_iter().chain(other.latency.clone()).reduce(Latency::add);
    }
}

/// Checks the remaining blocks against the counts.
fn check_counts(threads: &[Thread], held: &[Block]) -> Result<(), String> {
    let sum = |figure: fn(&Thread) -> u64| threads.iter().map(figure).sum::<u64>();
    let (allocs, frees) = (sum(|thread| thread.allocs), sum(|thread| thread.frees));
    check_frees(threads.iter().map(|thread| &thread.part))?;
    if allocs != frees + held.len() as u64 {
        return Err(format!("{allocs} allocations, {frees} frees, {} blocks held", held.len()));
    }
    Ok(())
}

fn check_frees<'a>(parts: impl Iterator<Item = &'a Part>) -> Result<(), String> {
    match parts.map(|part| part.wrong_frees).sum() {
        0_u64 => Ok(()),
        wrong => Err(format!("{wrong} frees of blocks in use were refused")),
    }
}

/// Checks the remaining blocks with an owner map, frees them, and asks for the whole arena.
fn settle(back_end: &dyn BackEnd, oracle: &Oracle, held: &[Block]) -> Result<Option<f64>, String> {
    let take = |block: &Block| oracle.take(0, block.index, block.order).map(|_| ());
    held.iter().try_for_each(take).map_err(|violation| violation.to_string())?;
    let recovered = recovered_percent(oracle);
    give_back(back_end, oracle, held).map_err(|violation| violation.to_string())?;
    Ok(recovered)
}

/// Returns the percentage of the frames of 2 MiB that are free, of those that the free units could form.
fn recovered_percent(oracle: &Oracle) -> Option<f64> {
    const ORDER: u32 = 9;
    let possible = (oracle.units() - oracle.held_units()) >> ORDER;
    (possible > 0).then(|| oracle.free_blocks(ORDER) as f64 * 100.0 / possible as f64)
}

/// Asks for the whole arena of a back-end of which nothing is held.
#[cfg(unix)]
pub fn settle_empty(back_end: &dyn BackEnd) -> Result<(), String> {
    settle(back_end, &Oracle::of(back_end), &[]).map(|_| ())
}

/// Frees everything. Then the whole arena must be granted in the largest blocks that fit, and no more.
fn give_back(back_end: &dyn BackEnd, oracle: &Oracle, held: &[Block]) -> Result<(), Violation> {
    let free = |block: Block| {
        oracle.give(block)?;
        let freed = back_end.free(0, block.index, block.order);
        freed.map_err(|reason| Violation::FreeRefused { block, reason })
    };
    held.iter().try_for_each(|&block| free(block))?;
    let (mut all, mut left, mut missing) = (Vec::new(), back_end.units(), None);
    for order in (0..=back_end.max_order()).rev() {
        let take = |index| oracle.take(0, index, order);
        let granted = std::iter::from_fn(|| back_end.alloc(0, order)).map(take);
        let granted = granted.collect::<Result<Vec<Block>, _>>()?;
        let (blocks, expected) = (granted.len() as u64, left >> order);
        all.extend(granted);
        left -= blocks << order;
        if blocks != expected {
            missing = Some(Violation::NotWhole { order, blocks, expected });
            break;
        }
    }
    all.into_iter().try_for_each(free)?;
    missing.map_or(Ok(()), Err)
}
