//! One lane at a time, and who goes next follows from a seed: what goes wrong goes wrong again.

use super::lanes::{Turns, take_turns};
use crate::Violation;
use crate::program::Body;

/// An order in which lanes take their steps on [`Steered`](super::Steered) words.
///
/// The lane with the highest priority runs until it is done. At a few steps, chosen at random, the one
/// that runs gets a lower priority, any of those that the others have: this stalls a lane anywhere while
/// others go on. Much as in Burckhardt et al., "A randomized scheduler with probabilistic guarantees of
/// finding bugs"; with the lowest only, lanes would always resume in the order in which they were
/// stalled, and there are errors that need another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// All choices follow from it.
    pub seed: u64,
    /// How many times a running lane is stalled.
    pub stalls: u32,
    /// About how many steps the lanes take together.
    pub steps: u64,
}

/// So many steps and no end: some lane waits for another.
const TOO_MANY: u64 = 1_000_000;

impl Schedule {
    /// Calls each body in a lane of its own, in this order. Returns how many steps they took.
    ///
    /// # Errors
    /// The first body's that failed or panicked, or [`Violation::Stuck`].
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
    /// The steps before which the running lane is stalled, last one first.
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
