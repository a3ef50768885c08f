//! Runs races under schedules, and reports failures.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};
use testkit::Violation;
use testkit::program::Body;

use crate::word::{not_racing, racing};

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// Any thread, at every step.
    Random,
    /// The thread with the highest priority; priorities change at this many random steps less one (S. Burckhardt et
    /// al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010).
    Pct(usize),
}

/// A number of schedules, all of which follow from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedules {
    /// How the next thread is chosen.
    pub chooser: Chooser,
    /// The number of schedules.
    pub count: usize,
    /// The seed from which they follow.
    pub seed: u64,
}

/// The schedule that went wrong, and how.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number of the schedule.
    pub number: u64,
    /// What went wrong.
    pub violation: Violation,
}

impl Schedules {
    /// Runs `race` under each of the schedules: once for each, with [`together`] for its threads.
    ///
    /// # Errors
    /// The first schedule that went wrong.
    pub fn run(
        self,
        race: impl Fn() -> Result<(), Violation> + Send + Sync + 'static,
    ) -> Result<u64, Found> {
        let number = Arc::new(AtomicU64::new(0));
        let first = Arc::new(Mutex::new(None));
        let body = {
            let (number, first) = (Arc::clone(&number), Arc::clone(&first));
            move || {
                not_racing();
                number.fetch_add(1, Ordering::Relaxed);
                if let Err(violation) = race() {
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(violation);
                    drop(first);
                    panic!("that was enough");
                }
            }
        };
        let mut config = Config::new();
        config.stack_size = 1 << 18;
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        let ran = catch_unwind(AssertUnwindSafe(|| match self.chooser {
            Chooser::Random => {
                Runner::new(RandomScheduler::new_from_seed(self.seed, self.count), config).run(body)
            }
            Chooser::Pct(depth) => {
                let scheduler = PctScheduler::new_from_seed(self.seed, depth, self.count);
                Runner::new(scheduler, config).run(body)
            }
        }));
        // Shuttle's own hook expects to be called by a thread of shuttle.
        std::panic::set_hook(Box::new(|_| {}));
        let number = number.load(Ordering::Relaxed);
        let Err(payload) = ran else { return Ok(number) };
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let violation = first.unwrap_or_else(|| Violation::from_panic(&*payload));
        Err(Found { number, violation })
    }
}

/// Calls each body on a thread of shuttle.
///
/// # Errors
/// The error of the first body, in their order, that failed.
pub fn together(bodies: Vec<Body<'_>>) -> Result<(), Violation> {
    racing(|| {
        shuttle::thread::scope(|scope| {
            let threads: Vec<_> = bodies.into_iter().map(|body| scope.spawn(body)).collect();
            let results = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)))
            });
            results.collect::<Vec<_>>().into_iter().collect()
        })
    })
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (schedule {})", self.violation, self.number)
    }
}
