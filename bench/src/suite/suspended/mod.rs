//! Suspends a thread in the middle of an operation, and measures whether the others go on.
//!
//! One thread allocates and frees, and is put to sleep again and again: within an operation, and, for comparison,
//! between two operations. The others allocate and free all the time; their operations are timed while it sleeps. It
//! sleeps until one of them has completed something, or until they have worked in vain for [`PATIENCE`], which means
//! that they wait for it.

mod signal;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use nix::sys::pthread::pthread_self;
use nix::time::ClockId;
use testkit::{BackEnd, Checked};

use self::signal::{Suspender, Where, inside, turns};
use super::measure::WorkloadCase;
use super::on_heap::with_sizes;
use super::round::settle_empty;
use super::row::row as case_row;
use crate::clock::Clock;
use crate::market::{CheckedHeap, Contender, Kind};
use crate::median::hundredths;
use crate::row::Row;

/// The least time for which a thread is suspended.
const AT_LEAST: Duration = Duration::from_millis(2);
/// The processor time after which threads that have completed nothing are waiting for another.
const PATIENCE: Duration = Duration::from_millis(10);
/// The time after which threads that wait asleep, and so take no processor time, are waiting for another.
const ASLEEP: Duration = Duration::from_secs(1);
/// The interval between callers, in tenths of nanoseconds: callers that arrive while an operation is stuck wait, too.
const INTERVAL: u64 = 100_000;

/// The observations of one contender.
struct Seen {
    latency: Histogram<u64>,
    ops: u64,
    ns: f64,
    /// The number of suspensions during which no other thread went on.
    stalled: u64,
    metadata_bytes: Option<u64>,
    violation: Option<String>,
}

/// Measures all contenders, and returns their rows.
pub fn measure(
    case: &WorkloadCase<'_>,
    contenders: &[&'static Contender],
    clock: &Clock,
    bar: &ProgressBar,
) -> Vec<Row> {
    let measured = |&contender| {
        let row = row(case, contender, clock);
        bar.inc(case.steps() as u64);
        row
    };
    contenders.iter().map(measured).collect()
}

fn row(case: &WorkloadCase<'_>, contender: &'static Contender, clock: &Clock) -> Row {
    let suspensions = 5 * case.rounds as u64;
    let seen = seen(case, contender, clock, Where::Inside, suspensions);
    let baseline = self::seen(case, contender, clock, Where::Between, suspensions);
    let violation = verify(case, contender, clock).or(seen.violation).or(baseline.violation);
    let mut row = case_row(case, contender, seen.metadata_bytes, violation);
    row.phase = "others".into();
    row.ops = Some(seen.ops);
    row.complete = true;
    let at = |latency: &Histogram<u64>, quantile| latency.value_at_quantile(quantile) as f64 / 10.0;
    if !row.is_wrong() {
        row.set_times(&[(seen.ns, seen.ops)]);
        row.set_percentiles(|quantile| at(&seen.latency, quantile));
        row.clock_step_ns = Some(hundredths(clock.step_ns()));
    }
    let verified = !row.is_wrong();
    row.with("suspensions", verified.then_some(suspensions))
        .with("stalled", verified.then_some(seen.stalled))
        .with("baseline_p999_ns", verified.then(|| at(&baseline.latency, 0.999)))
}

fn seen(
    case: &WorkloadCase<'_>,
    contender: &Contender,
    clock: &Clock,
    place: Where,
    suspensions: u64,
) -> Seen {
    if contender.kind() == Kind::Heap {
        return contender.with_heap(case.units, |heap| {
            with_sizes(heap, case.units, |sizes| run(sizes, case, clock, place, suspensions))
        });
    }
    contender.with_back_end(case.units, |back_end| {
        let mut seen = run(back_end, case, clock, place, suspensions);
        seen.violation = seen.violation.or(settle_empty(back_end).err());
        seen
    })
}

/// Runs a few suspensions, and checks every operation against an owner map.
fn verify(case: &WorkloadCase<'_>, contender: &Contender, clock: &Clock) -> Option<String> {
    const FEW: u64 = 3;
    let violation = if contender.kind() == Kind::Heap {
        contender.with_heap(case.units, |heap| {
            let checked = CheckedHeap::new(heap);
            with_sizes(&checked, case.units, |sizes| run(sizes, case, clock, Where::Inside, FEW));
            checked.finish().err()
        })
    } else {
        contender.with_back_end(case.units, |back_end| {
            let checked = Checked::concurrent(back_end);
            run(&checked, case, clock, Where::Inside, FEW);
            checked.finish().err()
        })
    };
    violation.map(|violation| violation.to_string())
}

/// A counter with a cache line to itself.
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// The shared state of a run.
struct Stage<'a> {
    back_end: &'a dyn BackEnd,
    order: u32,
    over: AtomicBool,
    wrong_frees: AtomicU64,
    /// The operations of each of the other threads.
    done: Vec<Done>,
}

fn run(
    back_end: &dyn BackEnd,
    case: &WorkloadCase<'_>,
    clock: &Clock,
    place: Where,
    suspensions: u64,
) -> Seen {
    let others = case.setting.threads - 1;
    let stage = &Stage {
        back_end,
        order: case.setting.order,
        over: AtomicBool::new(false),
        wrong_frees: AtomicU64::new(0),
        done: (0..others).map(|_| Done::default()).collect(),
    };
    let suspender = Suspender::new();
    let (latencies, stalled, ns) = thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        scope.spawn(move || {
            tell.send(pthread_self()).expect("somebody asks");
            stage.be_suspended();
        });
        let spawn = |lane| scope.spawn(move || stage.go_on(lane, clock));
        let others: Vec<_> = (0..others).map(spawn).collect();
        let victim = told.recv().expect("the thread tells");
        let began = Instant::now();
        let stalled = (0..suspensions)
            .filter(|_| {
                thread::sleep(Duration::from_micros(200));
                suspender.suspend(victim, place, || stage.is_stalled())
            })
            .count();
        let ns = began.elapsed().as_nanos() as f64;
        stage.over.store(true, Ordering::Relaxed);
        let join = |other: thread::ScopedJoinHandle<'_, _>| {
            other.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        };
        (others.into_iter().map(join).collect::<Vec<_>>(), stalled as u64, ns)
    });
    let wrong = stage.wrong_frees.load(Ordering::Relaxed);
    Seen {
        latency: latencies.into_iter().fold(new_histogram(), |mut sum, one| {
            sum += one;
            sum
        }),
        ops: stage.progress(),
        ns,
        stalled,
        metadata_bytes: Some(back_end.metadata_bytes() as u64).filter(|&bytes| bytes > 0),
        violation: (wrong > 0).then(|| format!("{wrong} frees of blocks in use were refused")),
    }
}

/// Creates a histogram of tenths of nanoseconds, up to a minute, to a hundredth of their size.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 2).expect("bounds in order")
}

/// Runs an operation, and returns how many tenths of nanoseconds it took.
fn tenths<R>(clock: &Clock, operation: impl FnOnce() -> R) -> (R, u64) {
    let began = clock.ticks();
    let result = operation();
    let ns = clock.operation_ns(clock.ticks() - began);
    (result, (ns * 10.0) as u64)
}

/// Returns the processor time of this process. While one thread is suspended and one waits asleep, it is that of the
/// others.
fn processor_time() -> Duration {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().expect("every unix has this clock").into()
}

impl Stage<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns the operations of the other threads so far.
    fn progress(&self) -> u64 {
        self.done.iter().map(|done| done.0.load(Ordering::Relaxed)).sum()
    }

    /// Returns whether the other threads wait for the suspended one.
    fn is_stalled(&self) -> bool {
        let (began, worked) = (Instant::now(), processor_time());
        // Operations that have already got past the suspended thread may end.
        thread::sleep(AT_LEAST / 2);
        let before = self.progress();
        thread::sleep(AT_LEAST / 2);
        // Not by wall-clock time: on a busy machine the others may have no processor for a while.
        while self.progress() == before
            && processor_time() - worked < PATIENCE
            && began.elapsed() < ASLEEP
        {
            thread::sleep(AT_LEAST / 2);
        }
        self.progress() == before
    }

    fn free(&self, lane: usize, index: u64) {
        if self.back_end.free(lane, index, self.order).is_err() {
            self.wrong_frees.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs the thread that is suspended.
    fn be_suspended(&self) {
        let lane = self.done.len();
        let mut random = fastrand::Rng::with_seed(1);
        let mut pause = || (0..random.u32(0..32)).for_each(|_| std::hint::spin_loop());
        while !self.is_over() {
            let block = inside(|| self.back_end.alloc(lane, self.order));
            pause();
            if let Some(index) = block {
                inside(|| self.free(lane, index));
            }
            pause();
        }
    }

    /// Runs another thread: allocates and frees, and returns the times of its operations while the first is suspended.
    fn go_on(&self, lane: usize, clock: &Clock) -> Histogram<u64> {
        let mut latency = new_histogram();
        let mut done = 0;
        while !self.is_over() {
            let before = turns();
            let (block, alloc) = tenths(clock, || self.back_end.alloc(lane, self.order));
            let free = block.map(|index| tenths(clock, || self.free(lane, index)).1);
            done += 1 + u64::from(free.is_some());
            self.done[lane].0.store(done, Ordering::Relaxed);
            if before % 2 == 1 || turns() != before {
                [Some(alloc), free].into_iter().flatten().for_each(|tenths| {
                    latency.record_correct(tenths.max(1), INTERVAL).expect("less than a minute");
                });
            }
        }
        latency
    }
}
