//! Races on any allocator: allocations and frees only.

use super::sequential::pick_from;
use super::{Body, Op, Race};
use crate::whole::{check_whole, free};
use crate::{BackEnd, Block, Oracle, Violation};

/// Runs a race of `Alloc`, `Free` and `FreeSized` on a fresh allocator, with the owner map on. `together` is as in
/// [`race`](super::race()). Afterwards exactly what nobody holds must be allocatable at every order; then everything is
/// returned, and the memory must be whole.
///
/// # Errors
/// The first violation.
///
/// # Panics
/// If the race has other operations.
pub fn race_plain<B: BackEnd>(
    race: &Race,
    back_end: &B,
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let oracle = Oracle::of(back_end);
    let lanes = race.setup.steps.iter().map(|step| step.lane + 1).max().unwrap_or(0);
    let player = |lane| Player {
        back_end,
        oracle: &oracle,
        lane,
        told: if race.shared { 0 } else { lane },
        held: Vec::new(),
    };
    let mut players: Vec<_> = (0..lanes.max(race.lanes.len())).map(player).collect();
    for step in &race.setup.steps {
        players[step.lane].step(&step.op)?;
    }
    let bodies = players.iter_mut().zip(&race.lanes).map(|(player, ops)| -> Body<'_> {
        Box::new(move || ops.iter().try_for_each(|op| player.step(op)))
    });
    together(bodies.collect())?;
    check_whole(back_end, &oracle)?;
    for player in players {
        player
            .held
            .into_iter()
            .try_for_each(|block| free(back_end, &oracle, player.told, block))?;
    }
    oracle.check_empty()?;
    check_whole(back_end, &oracle)
}

struct Player<'a, B> {
    back_end: &'a B,
    oracle: &'a Oracle,
    lane: usize,
    /// The lane that is passed to the allocator.
    told: usize,
    held: Vec<Block>,
}

impl<B: BackEnd> Player<'_, B> {
    fn step(&mut self, op: &Op) -> Result<(), Violation> {
        match *op {
            Op::Alloc { order } => self.alloc(order),
            Op::Free { pick } | Op::FreeSized { pick } => self.free(pick),
            ref other => panic!("not every allocator can do {other:?}"),
        }
    }

    fn alloc(&mut self, order: u32) -> Result<(), Violation> {
        if let Some(index) = self.back_end.alloc(self.told, order) {
            self.held.push(self.oracle.take(self.lane, index, order)?);
        }
        Ok(())
    }

    fn free(&mut self, pick: usize) -> Result<(), Violation> {
        let Some(block) = pick_from(&self.held, pick) else { return Ok(()) };
        self.held.retain(|&held| held != block);
        free(self.back_end, self.oracle, self.told, block)
    }
}
