//! Lanes that take turns on [`Steered`](super::Steered) words; a director says whose turn it is.

use super::lanes::{self, Turns};
use crate::Violation;
use crate::program::Body;

/// A director: says who takes the next step.
pub(super) trait Director {
    /// Returns one of `ready`, the lanes that are not done. `running` took the last step, unless it is done.
    fn next(&mut self, running: Option<usize>, ready: &[usize]) -> usize;

    /// Returns whether the lane takes no further step. It is only [told](Self::next) to go on when all others are done
    /// or wait for it, and then it is ended.
    fn stands_still(&self, _lane: usize) -> bool {
        false
    }
}

/// The number of steps after which some lane must be waiting for another that is never told to go on.
const TOO_MANY: u64 = 100_000;

/// Calls each body in a lane of its own, one at a time. Returns the director.
pub(super) fn take_turns<D: Director + 'static>(
    mut director: D,
    bodies: Vec<Body<'_>>,
) -> (D, Result<(), Violation>) {
    let ready: Vec<usize> = (0..bodies.len()).collect();
    let first = director.next(None, &ready);
    let directed = Directed {
        director,
        resting: ready.iter().copied().filter(|&lane| lane != first).collect(),
        started: vec![false; ready.len()],
        ready,
        steps: 0,
    };
    let (directed, result) = lanes::take_turns(directed, first, bodies);
    (directed.director, result)
}

struct Directed<D> {
    director: D,
    /// The lanes that are not done.
    ready: Vec<usize>,
    /// The same without the running one, the one that has rested longest first.
    resting: Vec<usize>,
    /// For each lane, whether it has taken a step.
    started: Vec<bool>,
    steps: u64,
}

impl<D> Directed<D> {
    /// Makes `lane` rest and `next` go on.
    fn hand_over(&mut self, lane: usize, next: usize) -> usize {
        if next != lane {
            self.resting.retain(|&other| other != next);
            self.resting.push(lane);
        }
        next
    }
}

impl<D: Director> Turns for Directed<D> {
    fn next(&mut self, lane: usize) -> Option<usize> {
        self.steps += 1;
        if self.steps >= TOO_MANY {
            return None;
        }
        // A lane that begins has been told to take this step.
        if !std::mem::replace(&mut self.started[lane], true) {
            return Some(lane);
        }
        let next = self.director.next(Some(lane), &self.ready);
        Some(self.hand_over(lane, next))
    }

    fn takes(&self, lane: usize) -> bool {
        !self.director.stands_still(lane)
    }

    /// The lane that has rested longest goes on, so no director can make lanes wait for each other forever.
    fn rests(&mut self, lane: usize) -> usize {
        let next = self.resting.first().copied().unwrap_or(lane);
        self.hand_over(lane, next)
    }

    fn leaves(&mut self, lane: usize) -> Option<usize> {
        self.ready.retain(|&other| other != lane);
        if self.ready.is_empty() {
            return None;
        }
        let next = self.director.next(None, &self.ready);
        self.resting.retain(|&other| other != next);
        Some(next)
    }

    fn death(&self, lane: usize) -> Result<(), Violation> {
        let frozen = self.director.stands_still(lane);
        if frozen { Ok(()) } else { Err(Violation::Stuck { lane, steps: TOO_MANY }) }
    }
}
