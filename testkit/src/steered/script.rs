//! A schedule that is written down.

use super::turns::{Director, take_turns};
use crate::Violation;
use crate::program::Body;

/// So many steps of one lane on [`Steered`](super::Steered) words, or all that it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose turn it is.
    pub lane: usize,
    /// How many steps it takes; `None`: until it is done.
    pub steps: Option<u64>,
    /// Whether it takes no further step ever, if it is not done by then.
    pub last: bool,
}

impl Turn {
    /// So many steps, then it stalls.
    #[must_use]
    pub fn steps(lane: usize, steps: u64) -> Self {
        Self { lane, steps: Some(steps), last: false }
    }

    /// To the end.
    #[must_use]
    pub fn rest(lane: usize) -> Self {
        Self { lane, steps: None, last: false }
    }

    /// So many steps, then it stands still for good, while all others run to their end.
    #[must_use]
    pub fn last(lane: usize, steps: u64) -> Self {
        Self { lane, steps: Some(steps), last: true }
    }
}

/// Calls each body in a lane of its own, in the order of `script`; then the first that is not done to its
/// end, and so on. A body that [stands still](Turn::last) counts as done without an error.
///
/// # Errors
/// The first body's that failed or panicked, or [`Violation::Stuck`].
pub fn follow(script: &[Turn], bodies: Vec<Body<'_>>) -> Result<(), Violation> {
    let mut turns = script.to_vec();
    turns.reverse();
    take_turns(Reader { turns, frozen: Vec::new() }, bodies).1
}

struct Reader {
    /// The next one last.
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
