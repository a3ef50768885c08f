//! Whole heaps under shuttle: three to five lanes, each a thread of shuttle's, that hand blocks over beside trims, under
//! random and PCT schedules. Before each access to a word, a flag or a count another lane may go on. All accesses are
//! sequentially consistent; what orderings do, loom shows for slabs.
//!
//! ```text
//! race   the operations of each lane, made from a seed
//! scene  the heap of a race, who holds what, and what must be true in the end
//! ```
//!
//! There are [`RACES`] times `NBBS_DEPTH` races, from seed `NBBS_SEED` on, and [`OF_KEPT_RUNS`] times of runs that caches
//! keep. All schedules follow from these seeds.

mod race;
mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};
use testkit::Violation;

use crate::words::interrupted;
use race::Race;
use scene::Scene;

/// The number of races of each of the first two tests.
const RACES: u64 = 100;

/// The number of races of runs that caches keep, with [`FEW`] schedules each, as their heaps take longer to look through.
const OF_KEPT_RUNS: u64 = 48;

/// The number of schedules of each race.
const EACH: usize = 24;
const FEW: usize = 4;

/// What has been run.
#[derive(Debug, Default)]
struct Totals {
    schedules: AtomicU64,
    steps: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
}

#[test]
fn random_schedules() {
    under(RACES, Race::of, |seed| RandomScheduler::new_from_seed(seed, EACH));
}

#[test]
fn schedules_with_few_preemptions() {
    // One to four of them, at random steps.
    under(RACES, Race::of, |seed| PctScheduler::new_from_seed(seed, 2 + seed as usize % 4, EACH));
}

#[test]
fn runs_that_caches_keep() {
    let scheduler = |seed| PctScheduler::new_from_seed(seed, 2 + seed as usize % 4, FEW);
    under(OF_KEPT_RUNS, Race::of_kept_runs, scheduler);
}

/// Runs races, each under the schedules that `scheduler` makes of its seed.
fn under<S: Scheduler + 'static>(
    races: u64,
    of: impl Fn(u64) -> Race,
    scheduler: impl Fn(u64) -> S,
) {
    let (start, totals) = (Instant::now(), Arc::new(Totals::default()));
    let first = std::env::var("NBBS_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let races = races * testkit::depth();
    for seed in first..first + races {
        let race = of(seed);
        let (ran, counts) = (race.clone(), Arc::clone(&totals));
        let mut config = Config::new();
        config.stack_size = 1 << 18;
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        let runner = Runner::new(scheduler(seed), config);
        let body = move || {
            if let Err(violation) = run(&ran, &counts) {
                panic!("{violation}");
            }
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| runner.run(body))) {
            println!("in race {seed} (NBBS_SEED={seed}): {race:?}");
            resume_unwind(payload);
        }
    }
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Totals { schedules, steps, granted, refused } = &*totals;
    assert!(of(steps) > 100 * of(schedules), "the words let no other lane go on");
    println!(
        "nothing in {races} races from seed {first} on, under {} schedules: {} steps, {} blocks, \
         {} refusals, {:.1?}",
        of(schedules),
        of(steps),
        of(granted),
        of(refused),
        start.elapsed(),
    );
}

std::thread_local! {
    /// The steps of the race that shuttle runs on this thread.
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Lets another lane go on.
fn step() {
    STEPS.set(STEPS.get() + 1);
    // Any access to an atomic of shuttle's is a point at which it may switch.
    shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
}

/// Runs a race on a fresh heap.
fn run(race: &Race, totals: &Totals) -> Result<(), Violation> {
    let scene = Scene::new(race);
    race.setup.iter().try_for_each(|&(lane, op)| scene.run(lane, op))?;
    STEPS.set(0);
    // Shuttle's threads are coroutines of this one, whose handler is that of all of them.
    interrupted(step, || {
        shuttle::thread::scope(|scope| {
            let lanes = race.lanes.iter().enumerate().map(|(lane, ops)| {
                let scene = &scene;
                scope.spawn(move || ops.iter().try_for_each(|&op| scene.run(lane, op)))
            });
            let lanes: Vec<_> = lanes.collect();
            let results = lanes.into_iter().map(|lane| {
                lane.join().unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)))
            });
            results.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()
        })
    })?;
    let (granted, refused) = scene.counts();
    for (count, number) in [
        (&totals.schedules, 1),
        (&totals.steps, STEPS.get()),
        (&totals.granted, granted),
        (&totals.refused, refused),
    ] {
        count.fetch_add(number, Ordering::Relaxed);
    }
    scene.finish()
}
