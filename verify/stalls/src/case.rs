//! A case: what is in use, what each lane does, and where the lanes stop.

use testkit::program::{Body, Op};
use testkit::steered::{Turn, count_steps, follow};
use testkit::{Oracle, Violation};

use crate::aftermath::{self, Steps};
use crate::player::Player;
use crate::system::{Fresh, System};

/// What the lanes do in which arena.
#[derive(Clone, Debug)]
pub struct Case {
    /// Units of the arena.
    pub units: u64,
    /// What happens before, by lane.
    pub setup: Vec<(usize, Op)>,
    /// What each lane does.
    pub lanes: Vec<Vec<Op>>,
}

/// What a run of a case came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Whether a lane was in the middle of an operation at the end.
    pub frozen: bool,
    /// What single operations took afterwards.
    pub steps: Steps,
}

impl Case {
    /// Runs the case on a fresh system under a script, then looks at what is left.
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
        let mut players = self.players(system, &oracle)?;
        let bodies = players.iter_mut().zip(&self.lanes);
        let bodies = bodies.map(|(player, ops)| -> Body<'_> { Box::new(|| player.play(ops)) });
        follow(script, bodies.collect())?;
        let frozen = players.iter().any(Player::is_busy);
        let steps = aftermath::check(system, &oracle, players)?;
        Ok(Outcome { frozen, steps })
    }

    /// The lanes after the setup.
    fn players<'a>(
        &self,
        system: &'a dyn System,
        oracle: &'a Oracle,
    ) -> Result<Vec<Player<'a>>, Violation> {
        let lane = |lane| Player::new(system, oracle, lane);
        let mut players: Vec<Player<'a>> = (0..self.lanes.len()).map(lane).collect();
        for (lane, op) in &self.setup {
            players[*lane].play(std::slice::from_ref(op))?;
        }
        Ok(players)
    }

    /// Steps of the first `ops` operations of a lane if nobody else moves.
    pub fn steps_of(&self, fresh: Fresh, lane: usize, ops: usize) -> u64 {
        let mut steps = 0;
        fresh(self.units, &mut |system| {
            let oracle = Oracle::new(self.units);
            let Ok(mut players) = self.players(system, &oracle) else { return };
            let ops = &self.lanes[lane][..ops];
            steps = count_steps(u64::MAX, || players[lane].play(ops)).map_or(0, |(_, steps)| steps);
        });
        steps
    }
}
