//! One thread at a time, and who goes next follows from a seed: what goes wrong goes wrong again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use super::{die, on_threads, steer, survive};
use crate::Violation;
use crate::program::Body;

/// An order in which threads take their steps on [`Steered`](super::Steered) words.
///
/// The thread with the highest priority runs until it is done. At a few steps, chosen at random, the one
/// that runs gets a lower priority, any of those that the others have: this stalls a thread anywhere while
/// others go on. Much as in Burckhardt et al., "A randomized scheduler with probabilistic guarantees of
/// finding bugs"; with the lowest only, threads would always resume in the order in which they were
/// stalled, and there are errors that need another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// All choices follow from it.
    pub seed: u64,
    /// How many times a running thread is stalled.
    pub stalls: u32,
    /// About how many steps the threads take together.
    pub steps: u64,
}

/// So many steps and no end: some thread waits for another.
const TOO_MANY: u64 = 1_000_000;

/// Nobody's turn: all threads are done.
const NOBODY: usize = usize::MAX;

impl Schedule {
    /// Calls each body on a thread of its own, in this order. Returns how many steps they took.
    ///
    /// # Errors
    /// The first body's that failed or panicked, or [`Violation::Stuck`].
    pub fn run(self, bodies: Vec<Body<'_>>) -> Result<u64, Violation> {
        let baton = Arc::new(Baton::new(self, bodies.len()));
        let bodies = bodies.into_iter().enumerate().map(|(lane, body)| -> Body<'_> {
            let baton = Arc::clone(&baton);
            Box::new(move || baton.run(lane, body))
        });
        on_threads(bodies.collect())?;
        let steps = baton.state().steps;
        Ok(steps)
    }
}

struct Baton {
    turn: AtomicUsize,
    threads: Box<[OnceLock<Thread>]>,
    state: Mutex<State>,
}

struct State {
    /// The lanes that are not done, the one with the highest priority first.
    waiting: Vec<usize>,
    /// The steps before which the running thread is stalled, last one first.
    stalls: Vec<u64>,
    steps: u64,
    random: fastrand::Rng,
}

impl State {
    /// Puts the running lane behind another.
    fn stall(&mut self) {
        let lane = self.waiting.remove(0);
        let others = self.waiting.len();
        self.waiting.insert(self.random.usize(others.min(1)..=others), lane);
    }
}

impl Baton {
    fn new(schedule: Schedule, lanes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(schedule.seed);
        let mut waiting: Vec<usize> = (0..lanes).collect();
        random.shuffle(&mut waiting);
        let mut stalls: Vec<u64> =
            (0..schedule.stalls).map(|_| random.u64(0..schedule.steps.max(1))).collect();
        stalls.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            turn: AtomicUsize::new(NOBODY),
            threads: (0..lanes).map(|_| OnceLock::new()).collect(),
            state: Mutex::new(State { waiting, stalls, steps: 0, random }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a thread: wait for the first turn, run, leave.
    fn run(self: Arc<Self>, lane: usize, body: Body<'_>) -> Result<(), Violation> {
        struct Leave(Arc<Baton>, usize);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.leave(self.1);
            }
        }
        let me = self.threads[lane].get_or_init(thread::current);
        debug_assert_eq!(me.id(), thread::current().id());
        if self.threads.iter().all(|thread| thread.get().is_some()) {
            self.begin();
        }
        self.wait(lane);
        let _leave = Leave(Arc::clone(&self), lane);
        let baton = Arc::clone(&self);
        let result = survive(|| steer(move || baton.step(lane), body));
        result.unwrap_or(Err(Violation::Stuck { lane, steps: TOO_MANY }))
    }

    /// Several threads may find that all are there; the first of them gives the first turn.
    fn begin(&self) {
        let first = self.state().waiting[0];
        // Release, here and below: what one thread did is seen by the next, as if all were one.
        if self.turn.compare_exchange(NOBODY, first, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.wake(first);
        }
    }

    fn step(&self, lane: usize) {
        let mut state = self.state();
        state.steps += 1;
        if state.steps >= TOO_MANY {
            drop(state);
            die();
        }
        while state.stalls.last().is_some_and(|&stall| stall < state.steps) {
            state.stalls.pop();
            state.stall();
        }
        let next = state.waiting[0];
        drop(state);
        if next != lane {
            self.turn.store(next, Ordering::Release);
            self.wake(next);
            self.wait(lane);
        }
    }

    fn leave(&self, lane: usize) {
        let mut state = self.state();
        state.waiting.retain(|&other| other != lane);
        let next = state.waiting.first().copied();
        drop(state);
        self.turn.store(next.unwrap_or(NOBODY), Ordering::Release);
        if let Some(next) = next {
            self.wake(next);
        }
    }

    fn wake(&self, lane: usize) {
        if let Some(thread) = self.threads[lane].get() {
            thread.unpark();
        }
    }

    fn wait(&self, lane: usize) {
        while self.turn.load(Ordering::Acquire) != lane {
            thread::park();
        }
    }
}
