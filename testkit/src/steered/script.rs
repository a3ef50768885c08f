//! A schedule that is given as a script.

use super::turns::{Director, take_turns};
use crate::Violation;
use crate::program::Body;

/// A turn: a number of steps of one lane on [`Steered`](super::Steered) words, or all its remaining steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The lane whose turn it is.
    pub lane: usize,
    /// The number of steps that it takes. `None` means until it is done.
    pub steps: Option<u64>,
    /// Whether it never takes a further step, if it is not done by then.
    pub last: bool,
}

impl Turn {
    /// Creates a turn of `steps` steps, after which the lane stalls.
    #[must_use]
    pub fn steps(lane: usize, steps: u64) -> Self {
        Self { lane, steps: Some(steps), last: false }
    }

    /// Creates a turn to the end.
    #[must_use]
    pub fn rest(lane: usize) -> Self {
        Self { lane, steps: None, last: false }
    }

    /// Creates a turn of `steps` steps, after which the lane stops for good, while all others run to their end.
    #[must_use]
    pub fn last(lane: usize, steps: u64) -> Self {
        Self { lane, steps: Some(steps), last: true }
    }
}

/// Calls each body in a lane of its own, in the order of `script`. Then runs the first that is not done to its end, and
/// so on. A body that [stops for good](Turn::last) counts as done without an error.
///
/// # Errors
/// The error of the first body that failed or panicked, or [`Violation::Stuck`].
pub fn follow(script: &[Turn], bodies: Vec<Body<'_>>) -> Result<(), Violation> {
    let mut turns = script.to_vec();
    turns.reverse();
    take_turns(Reader { turns, frozen: Vec::new() }, bodies).1
}

struct Reader {
    /// The turns to come, the next one at the end.
    turns: Vec<Turn>,
    frozen: Vec<usize>,
}

impl Director for Reader {
    fn next(&mut self, _running: Option<usize>, ready: &[usize]) -> usize {
        while let Some(turn) = self.turns.last_mut() {
            match &mut turn.steps {
                _ if !ready.contains(&turn.lane) || self.frozen.contains(&turn.lane) => {}
                None => return turn.lane,
                Some(0) if turn.last => self.frozen.push(turn.lane),
                Some(0) => {}
                Some(steps) => {
                    *steps -= 1;
                    return turn.lane;
                }
            }
            self.turns.pop();
        }
        let moving = |lane: &&usize| !self.frozen.contains(lane);
        *ready.iter().find(moving).unwrap_or(&ready[0])
    }

    fn stands_still(&self, lane: usize) -> bool {
        self.frozen.contains(&lane)
    }
}
