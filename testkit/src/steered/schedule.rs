//! Runs one lane at a time, in an order that follows from a seed, so that failures can be repeated.

use super::lanes::{Turns, take_turns};
use crate::Violation;
use crate::program::Body;

/// An order in which lanes take their steps on [`Steered`](super::Steered) words.
///
/// The lane with the highest priority runs until it is done. At a few steps, chosen at random, the running lane gets a
/// lower priority, any of those that the others have: this stalls a lane anywhere while others go on. This is much as
/// in Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs". If it always got the
/// lowest priority, lanes would resume in the order in which they were stalled, and some errors need another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The seed from which all choices follow.
    pub seed: u64,
    /// The number of times that a running lane is stalled.
    pub stalls: u32,
    /// The approximate number of steps that the lanes take together.
    pub steps: u64,
}

/// The number of steps after which some lane must be waiting for another.
const TOO_MANY: u64 = 1_000_000;

impl Schedule {
    /// Calls each body in a lane of its own, in the order of the schedule. Returns how many steps they took.
    ///
    /// # Errors
    /// The error of the first body that failed or panicked, or [`Violation::Stuck`].
    pub fn run(self, bodies: Vec<Body<'_>>) -> Result<u64, Violation> {
        let state = State::new(self, bodies.len());
        let first = state.waiting.first().copied().unwrap_or_default();
        let (state, result) = take_turns(state, first, bodies);
        result.map(|()| state.steps)
    }
}

struct State {
    /// The lanes that are not done, the one with the highest priority first.
    waiting: Vec<usize>,
    /// The steps before which the running lane is stalled, the last one first.
    stalls: Vec<u64>,
    steps: u64,
    random: fastrand::Rng,
}

impl State {
    fn new(schedule: Schedule, lanes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(schedule.seed);
        let mut waiting: Vec<usize> = (0..lanes).collect();
        random.shuffle(&mut waiting);
        let mut stalls: Vec<u64> =
            (0..schedule.stalls).map(|_| random.u64(0..schedule.steps.max(1))).collect();
        stalls.sort_unstable_by(|a, b| b.cmp(a));
        Self { waiting, stalls, steps: 0, random }
    }

    /// Puts the running lane behind another.
    fn stall(&mut self) {
        let lane = self.waiting.remove(0);
        let others = self.waiting.len();
        self.waiting.insert(self.random.usize(others.min(1)..=others), lane);
    }
}

impl Turns for State {
    fn next(&mut self, _lane: usize) -> Option<usize> {
        self.steps += 1;
        if self.steps >= TOO_MANY {
            return None;
        }
        while self.stalls.last().is_some_and(|&stall| stall < self.steps) {
            self.stalls.pop();
            self.stall();
        }
        Some(self.waiting[0])
    }

    fn rests(&mut self, _lane: usize) -> usize {
        self.stall();
        self.waiting[0]
    }

    fn leaves(&mut self, lane: usize) -> Option<usize> {
        self.waiting.retain(|&other| other != lane);
        self.waiting.first().copied()
    }

    fn death(&self, lane: usize) -> Result<(), Violation> {
        Err(Violation::Stuck { lane, steps: TOO_MANY })
    }
}
