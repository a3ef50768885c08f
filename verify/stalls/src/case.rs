//! Cases: what is in use, what each lane does, and where the lanes stop.

use testkit::program::Op;
use testkit::{Oracle, Violation};

use crate::aftermath::{self, Steps};
use crate::player::Player;
use crate::subjects::Fresh;
use crate::system::System;
use crate::word::Stop;

/// A case: an arena, and what the lanes do in it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Units of the arena.
    pub units: u64,
    /// The operations that come first, with their lanes.
    pub setup: Vec<(usize, Op)>,
    /// What each lane does.
    pub lanes: Vec<Vec<Op>>,
}

/// A turn: the lane that moves next, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A lane takes this many steps, then it stalls.
    Steps(usize, u64),
    /// A lane takes this many steps, then it stops for good.
    Last(usize, u64),
    /// A lane goes on to its end.
    Rest(usize),
    /// Two lanes go on to their ends, step by step in turn.
    Alternate(usize, usize),
}

/// The outcome of a run of a case.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Whether the lane that stopped had anything left to do.
    pub stopped: bool,
    /// Whether it was in the middle of an operation.
    pub frozen: bool,
    /// The steps of single operations afterwards.
    pub steps: Steps,
}

/// The number of steps after which a lane must be waiting for another that does not go on.
const MANY: u64 = 100_000;

/// The same where two lanes take turns: each turn repeats a call from its beginning.
const TURNS: u64 = 5_000;

/// How often a lane may wait on the way while others take a step each.
const WAITS: u32 = 300;

impl Case {
    /// Runs the case on a fresh system under a script, then checks what is left.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(&self, fresh: Fresh, script: &[Turn]) -> Result<Outcome, Violation> {
        let mut outcome = Err(Violation::Audit("no system was made".to_string()));
        fresh(self.units, &mut |system| outcome = self.run_on(system, script));
        outcome
    }

    fn run_on(&self, system: &dyn System, script: &[Turn]) -> Result<Outcome, Violation> {
        let oracle = Oracle::new(self.units);
        let players = self.players(system, &oracle)?;
        let mut stage = Stage { players, frozen: None };
        script.iter().try_for_each(|&turn| stage.take(turn))?;
        (0..self.lanes.len()).try_for_each(|lane| stage.rest(lane))?;
        let stopped = stage.frozen.is_some_and(|lane| !stage.players[lane].is_done());
        let frozen = stage.frozen.is_some_and(|lane| stage.players[lane].is_busy());
        let steps = aftermath::check(system, &oracle, stage.players)?;
        Ok(Outcome { stopped, frozen, steps })
    }

    /// Returns the lanes after the setup.
    fn players<'a>(
        &'a self,
        system: &'a dyn System,
        oracle: &'a Oracle,
    ) -> Result<Vec<Player<'a>>, Violation> {
        let lane = |lane| Player::new(system, oracle, lane);
        let mut players: Vec<Player<'a>> = (0..self.lanes.len()).map(lane).collect();
        for (lane, op) in &self.setup {
            players[*lane].set(std::slice::from_ref(op));
            to_end(&mut players[*lane], *lane)?;
        }
        players.iter_mut().zip(&self.lanes).for_each(|(player, todo)| player.set(todo));
        Ok(players)
    }

    /// Returns the number of steps of the first `ops` operations of a lane if no other lane moves.
    ///
    /// # Errors
    /// The first violation.
    pub fn steps_of(&self, fresh: Fresh, lane: usize, ops: usize) -> Result<u64, Violation> {
        let mut steps = Ok(0);
        fresh(self.units, &mut |system| {
            let oracle = Oracle::new(self.units);
            steps = self.players(system, &oracle).and_then(|mut players| {
                players[lane].set(&self.lanes[lane][..ops]);
                to_end(&mut players[lane], lane)
            });
        });
        steps
    }
}

/// Lets an undisturbed lane go on to its end. Returns the number of its steps.
fn to_end(player: &mut Player<'_>, lane: usize) -> Result<u64, Violation> {
    let mut left = MANY;
    match player.advance(&mut left, false)? {
        Stop::Done(()) => Ok(MANY - left),
        _ => Err(Violation::Stuck { lane, steps: MANY }),
    }
}

/// The lanes at work.
struct Stage<'a> {
    players: Vec<Player<'a>>,
    frozen: Option<usize>,
}

impl Stage<'_> {
    fn take(&mut self, turn: Turn) -> Result<(), Violation> {
        match turn {
            Turn::Steps(lane, steps) => self.go_on(lane, &mut steps.clone()).map(|_| ()),
            Turn::Last(lane, steps) => {
                self.go_on(lane, &mut steps.clone())?;
                self.frozen = Some(lane);
                Ok(())
            }
            Turn::Rest(lane) => self.rest(lane),
            Turn::Alternate(one, two) => {
                for _ in 0..TURNS {
                    if self.players[one].is_done() && self.players[two].is_done() {
                        return Ok(());
                    }
                    self.go_on(one, &mut 1)?;
                    self.go_on(two, &mut 1)?;
                }
                Err(Violation::Stuck { lane: one, steps: TURNS })
            }
        }
    }

    /// Lets a lane go on to its end, unless it has stopped for good.
    fn rest(&mut self, lane: usize) -> Result<(), Violation> {
        let is_done = self.frozen == Some(lane) || self.go_on(lane, &mut MANY.clone())?;
        if is_done { Ok(()) } else { Err(Violation::Stuck { lane, steps: MANY }) }
    }

    /// Lets a lane take up to `left` steps; whenever it waits, another lane takes one. Returns whether it is done.
    fn go_on(&mut self, lane: usize, left: &mut u64) -> Result<bool, Violation> {
        if self.frozen == Some(lane) {
            return Ok(true);
        }
        let begin = *left;
        for _ in 0..WAITS {
            let other = (lane + 1..lane + self.players.len())
                .map(|other| other % self.players.len())
                .find(|&other| self.frozen != Some(other) && !self.players[other].is_done());
            match self.players[lane].advance(left, other.is_some())? {
                Stop::Done(()) => return Ok(true),
                Stop::Steps => return Ok(false),
                // The other lane may wait, too; then it has at least looked.
                Stop::Waits => {
                    _ = other.map(|other| self.players[other].advance(&mut 1, true)).transpose()?
                }
            }
        }
        Err(Violation::Stuck { lane, steps: begin - *left })
    }
}
