//! Checks what is left when all lanes are stopped or done.

use std::ops::Range;

use testkit::program::{Held, No, Op, RunOp};
use testkit::{Block, Oracle, Violation};

use crate::call::Cost;
use crate::player::Player;
use crate::system::System;
use crate::word::{Stop, alone};

/// The most steps that an operation took while no other lane moved, or the most that it may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    /// An allocation, granted or refused.
    pub alloc: u64,
    /// A free of a block.
    pub free: u64,
    /// A reservation or release of the whole arena, or any operation on a run or many blocks.
    pub wide: u64,
}

impl Steps {
    /// Returns the larger of each.
    pub fn max(self, other: Self) -> Self {
        Self {
            alloc: self.alloc.max(other.alloc),
            free: self.free.max(other.free),
            wide: self.wide.max(other.wide),
        }
    }
}

/// Returns the number of words in the tree over this many units, without lanes and padding.
pub fn tree_words(units: u64) -> u64 {
    let mut words = units.div_ceil(32);
    let mut all = words;
    while words > 1 {
        words = words.div_ceil(16);
        all += words;
    }
    all
}

/// Returns the bound on the steps of an operation that runs alone, whichever lanes are stopped at whichever places.
pub fn bound(units: u64) -> Steps {
    let words = tree_words(units);
    let levels = u64::from(units.ilog2() / 4 + 1);
    Steps { alloc: 64 + 24 * words, free: 32 + 32 * levels, wide: 64 + 64 * words }
}

/// Drains and returns everything: beside what the players hold, then without it, and then once more, when it is known
/// what is missing. Only the caller moves, so every operation here also shows what it costs alone.
///
/// # Errors
/// A unit is missing that no stopped lane had in hand, or the rest does not merge or is refused at its place, or the
/// audit names anything else, or an operation takes more steps than it may.
pub fn check(
    system: &dyn System,
    oracle: &Oracle,
    mut players: Vec<Player<'_>>,
) -> Result<Steps, Violation> {
    let stopped = players.iter().find(|player| player.is_busy());
    system.settle(stopped.and_then(|player| Some((player.lane, player.call()?))))?;
    let cost = stopped.map(Player::cost).unwrap_or_default();
    let bound = bound(system.units());
    let mut last = Last { system, oracle, cost, steps: Steps::default(), bound };
    last.audit()?;
    last.drain_all(None)?;
    for player in &mut players {
        last.give_back(player)?;
    }
    last.audit()?;
    let missing = last.drain_all(None)?;
    last.drain_all(Some(&missing))?;
    if system.offers_runs() {
        last.take_places(&missing)?;
        last.take_batch(&missing)?;
    }
    last.reserve_all()?;
    last.audit()?;
    last.recover(&players)?;
    Ok(last.steps)
}

/// The only one that still moves.
struct Last<'a> {
    system: &'a dyn System,
    oracle: &'a Oracle,
    cost: Cost,
    steps: Steps,
    bound: Steps,
}

/// The lane of the last one.
const LANE: usize = 9;

impl Last<'_> {
    /// Does something in at most the allowed steps. Returns what is held then, and the number of steps.
    fn alone(
        &self,
        held: Vec<Held>,
        reservations: Vec<Range<u64>>,
        op: &Op,
        limit: u64,
    ) -> Result<(Vec<Held>, u64), Violation> {
        let ops = std::slice::from_ref(op);
        let mut player = Player::new(self.system, self.oracle, LANE);
        (player.held, player.reservations) = (held, reservations);
        player.set(ops);
        let mut left = limit;
        match player.advance(&mut left, false)? {
            Stop::Done(()) => Ok((player.held, limit - left)),
            _ => Err(Violation::Stuck { lane: LANE, steps: limit }),
        }
    }

    fn alloc(&mut self, order: u32) -> Result<Option<Block>, Violation> {
        let limit = self.bound.alloc;
        let granted = alone(limit, || self.system.alloc(LANE, order));
        let (index, steps) = granted.ok_or(Violation::Stuck { lane: LANE, steps: limit })?;
        self.steps.alloc = self.steps.alloc.max(steps);
        index.map(|index| self.oracle.take(LANE, index, order)).transpose()
    }

    fn free(&mut self, block: Block) -> Result<(), Violation> {
        self.oracle.give(block)?;
        let limit = self.bound.free;
        let freed = alone(limit, || self.system.free(LANE, block.index, block.order));
        let (answer, steps) = freed.ok_or(Violation::Stuck { lane: LANE, steps: limit })?;
        self.steps.free = self.steps.free.max(steps);
        answer.map_err(|reason| Violation::FreeRefused { block, reason })
    }

    fn free_held(&mut self, held: Held) -> Result<(), Violation> {
        if let Some(block) = Block::of(held.index, held.len) {
            return self.free(block);
        }
        let (_, steps) =
            self.alone(vec![held], Vec::new(), &Op::FreeSized { pick: 0 }, self.bound.wide)?;
        self.steps.wide = self.steps.wide.max(steps);
        Ok(())
    }

    fn wide(&mut self, reservations: Vec<Range<u64>>, op: &Op) -> Result<Vec<Held>, Violation> {
        let (held, steps) = self.alone(Vec::new(), reservations, op, self.bound.wide)?;
        self.steps.wide = self.steps.wide.max(steps);
        Ok(held)
    }

    /// Frees what a lane holds, except what it is in the middle of changing.
    fn give_back(&mut self, player: &mut Player<'_>) -> Result<(), Violation> {
        player.held.drain(..).try_for_each(|held| self.free_held(held))?;
        player.reservations.drain(..).try_for_each(|range| {
            let release = Op::Release { start: range.start, end: range.end };
            self.wide(vec![range], &release).map(|_| ())
        })
    }

    /// Puts to use again what a stopped lane kept from the others: then only what it had in hand is missing.
    fn recover(&mut self, players: &[Player<'_>]) -> Result<(), Violation> {
        for player in players {
            let Some(call) = player.call() else { continue };
            if self.system.recover(player.lane, call)? {
                self.cost = player.cost();
                self.audit()?;
                let missing = self.drain_all(None)?;
                self.drain_all(Some(&missing))?;
            }
        }
        Ok(())
    }

    /// Reserves everything, and releases it.
    fn reserve_all(&mut self) -> Result<(), Violation> {
        let end = self.system.units();
        if !self.system.reserves() {
            return Ok(());
        }
        let mut player = Player::new(self.system, self.oracle, LANE);
        let ops = [Op::Reserve { start: 0, end }, Op::Release { start: 0, end }];
        for op in &ops {
            player.set(std::slice::from_ref(op));
            let mut left = self.bound.wide;
            if player.advance(&mut left, false)? != Stop::Done(()) {
                return Err(Violation::Stuck { lane: LANE, steps: self.bound.wide });
            }
            self.steps.wide = self.steps.wide.max(self.bound.wide - left);
        }
        Ok(())
    }

    /// Drains every order, from the largest down, and returns what is missing. If `missing` is already known, all other
    /// units must be merged as far as possible; otherwise a stopped lane may spoil what it had in hand.
    fn drain_all(&mut self, missing: Option<&[u64]>) -> Result<Vec<u64>, Violation> {
        let mut not_had = Vec::new();
        for order in (0..=self.system.max_order()).rev() {
            let expected = match missing {
                Some(missing) => self.without(missing)?.free_blocks(order),
                None => {
                    let spoilt = self.cost.in_hand.spoils(order);
                    self.oracle.free_blocks(order).saturating_sub(spoilt)
                }
            };
            let (blocks, left) = self.drain(order)?;
            if blocks < expected {
                return Err(Violation::NotWhole { order, blocks, expected });
            }
            not_had = left;
        }
        if self.cost.in_hand.excuses(&not_had) {
            return Ok(not_had);
        }
        Err(Violation::Lost { units: not_had })
    }

    /// Returns the owner map with these units held as well.
    fn without(&self, missing: &[u64]) -> Result<Oracle, Violation> {
        let without = Oracle::new(self.system.units());
        for unit in 0..self.system.units() {
            if !self.oracle.is_free(unit) || missing.contains(&unit) {
                without.take(LANE, unit, 0)?;
            }
        }
        Ok(without)
    }

    /// Allocates all blocks of an order and frees them. Returns how many there were, and which units were free and not
    /// in one.
    fn drain(&mut self, order: u32) -> Result<(u64, Vec<u64>), Violation> {
        let mut blocks = Vec::new();
        while let Some(block) = self.alloc(order)? {
            blocks.push(block);
        }
        let count = blocks.len() as u64;
        let units = 0..self.system.units();
        let left = units.filter(|&unit| self.oracle.is_free(unit)).collect();
        blocks.into_iter().try_for_each(|block| self.free(block))?;
        Ok((count, left))
    }

    /// Checks that every stretch of free units can be allocated at its place.
    fn take_places(&mut self, missing: &[u64]) -> Result<(), Violation> {
        for Range { start, end } in self.stretches(missing)? {
            let op = Op::Run(RunOp::At { index: start, units: end - start });
            let held = self.wide(Vec::new(), &op)?;
            if held.is_empty() {
                return Err(Violation::wrong(format!("{op:?}"), start, No::InUse(start)));
            }
            held.into_iter().try_for_each(|held| self.free_held(held))?;
        }
        Ok(())
    }

    /// Checks that one batch gets every unit.
    fn take_batch(&mut self, missing: &[u64]) -> Result<(), Violation> {
        let free = self.without(missing)?.free_blocks(0);
        let op = Op::Run(RunOp::Batch { order: 0, count: self.system.units() as usize });
        let held = self.wide(Vec::new(), &op)?;
        if (held.len() as u64) < free {
            return Err(Violation::NotWhole {
                order: 0,
                blocks: held.len() as u64,
                expected: free,
            });
        }
        let op = Op::Run(RunOp::FreeBatch { order: 0 });
        let (_, steps) = self.alone(held, Vec::new(), &op, self.bound.wide)?;
        self.steps.wide = self.steps.wide.max(steps);
        Ok(())
    }

    /// Returns the stretches of units that are free and not missing, none across a border.
    fn stretches(&self, missing: &[u64]) -> Result<Vec<Range<u64>>, Violation> {
        let map = self.without(missing)?;
        let borders = self.system.borders();
        let mut stretches: Vec<Range<u64>> = Vec::new();
        for unit in (0..self.system.units()).filter(|&unit| map.is_free(unit)) {
            match stretches.last_mut() {
                Some(last) if last.end == unit && !borders.contains(&unit) => last.end += 1,
                _ => stretches.push(unit..unit + 1),
            }
        }
        Ok(stretches)
    }

    fn audit(&self) -> Result<(), Violation> {
        let Err((violation, units)) = self.system.check() else { return Ok(()) };
        if self.cost.explains(&units) { Ok(()) } else { Err(violation) }
    }
}
