//! What is left when everybody stands still or is done.

use testkit::program::Op;
use testkit::steered::count_steps;
use testkit::{Block, InHand, Oracle, Violation};

use crate::player::Player;
use crate::system::System;

/// The most steps that an operation took while nobody else moved, beside the most that it may.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    /// An allocation, granted or refused.
    pub alloc: u64,
    /// A free.
    pub free: u64,
    /// A reservation or release of the whole arena.
    pub holes: u64,
}

impl Steps {
    /// The larger of both.
    pub fn max(self, other: Self) -> Self {
        Self {
            alloc: self.alloc.max(other.alloc),
            free: self.free.max(other.free),
            holes: self.holes.max(other.holes),
        }
    }
}

/// Words in the tree over so many units, lanes and padding aside.
pub fn tree_words(units: u64) -> u64 {
    let mut words = units.div_ceil(32);
    let mut all = words;
    while words > 1 {
        words = words.div_ceil(16);
        all += words;
    }
    all
}

/// The bound on the steps of an operation that runs alone, whoever stands still wherever.
pub fn bound(units: u64) -> Steps {
    let words = tree_words(units);
    let levels = u64::from(units.ilog2() / 4 + 1);
    Steps { alloc: 64 + 24 * words, free: 32 + 32 * levels, holes: 64 + 64 * words }
}

/// Drains and returns everything: beside what the players hold, then without, then once more, by when it is
/// known what is missing. Nobody but the
/// caller moves, so that every operation here also shows what it costs alone.
///
/// # Errors
/// A unit is missing that no frozen lane had in hand, or what is left does not merge, or the audit names
/// anything else, or an operation takes more steps than it may.
pub fn check(
    system: &dyn System,
    oracle: &Oracle,
    players: Vec<Player<'_>>,
) -> Result<Steps, Violation> {
    let in_hand: Vec<InHand> = players.iter().map(|player| player.in_hand.clone()).collect();
    let mut last = Last { system, oracle, steps: Steps::default(), bound: bound(system.units()) };
    last.audit(&in_hand)?;
    last.drain_all(&in_hand, None)?;
    for player in players {
        for block in player.held {
            last.free(block)?;
        }
        for hole in player.holes {
            oracle.release(hole.clone())?;
            last.dig(&Op::Release { start: hole.start, end: hole.end })?;
        }
    }
    last.audit(&in_hand)?;
    let missing = last.drain_all(&in_hand, None)?;
    last.drain_all(&in_hand, Some(&missing))?;
    let end = system.units();
    last.dig(&Op::Reserve { start: 0, end })?;
    last.dig(&Op::Release { start: 0, end })?;
    last.audit(&in_hand)?;
    Ok(last.steps)
}

/// The only one that still moves.
struct Last<'a> {
    system: &'a dyn System,
    oracle: &'a Oracle,
    steps: Steps,
    bound: Steps,
}

/// The lane of the last one.
const LANE: usize = 9;

impl Last<'_> {
    fn alloc(&mut self, order: u32) -> Result<Option<Block>, Violation> {
        let (system, oracle) = (self.system, self.oracle);
        let mut player = Player::new(system, oracle, LANE);
        let (block, steps) = count_steps(self.bound.alloc, || player.alloc(order))?;
        self.steps.alloc = self.steps.alloc.max(steps);
        block
    }

    fn free(&mut self, block: Block) -> Result<(), Violation> {
        let (system, oracle) = (self.system, self.oracle);
        let mut player = Player::new(system, oracle, LANE);
        let (freed, steps) = count_steps(self.bound.free, || player.free(block))?;
        self.steps.free = self.steps.free.max(steps);
        freed
    }

    /// Makes a hole or fills it in.
    fn dig(&mut self, op: &Op) -> Result<(), Violation> {
        let (_, steps) = count_steps(self.bound.holes, || self.system.extra(op))?;
        self.steps.holes = self.steps.holes.max(steps);
        Ok(())
    }

    /// Every order, from the largest down, then what is missing. Where `missing` is known already, all other
    /// units must come merged as far as they go; else a lane that stopped may spoil what it had in hand.
    fn drain_all(
        &mut self,
        in_hand: &[InHand],
        missing: Option<&[u64]>,
    ) -> Result<Vec<u64>, Violation> {
        for order in (0..=self.system.max_order()).rev() {
            let expected = match missing {
                Some(missing) => self.without(missing)?.free_blocks(order),
                None => {
                    let spoilt = in_hand.iter().map(|in_hand| in_hand.spoils(order));
                    self.oracle.free_blocks(order).saturating_sub(spoilt.sum())
                }
            };
            let blocks = self.drain(order)?;
            if blocks < expected {
                return Err(Violation::NotWhole { order, blocks, expected });
            }
        }
        self.missing(in_hand)
    }

    /// The owner map with these units held as well.
    fn without(&self, missing: &[u64]) -> Result<Oracle, Violation> {
        let without = Oracle::new(self.system.units());
        for unit in 0..self.system.units() {
            if !self.oracle.is_free(unit) || missing.contains(&unit) {
                without.take(LANE, unit, 0)?;
            }
        }
        Ok(without)
    }

    /// Takes all blocks of an order and returns them.
    fn drain(&mut self, order: u32) -> Result<u64, Violation> {
        let mut blocks = Vec::new();
        while let Some(block) = self.alloc(order)? {
            blocks.push(block);
        }
        let count = blocks.len() as u64;
        blocks.into_iter().try_for_each(|block| self.free(block))?;
        Ok(count)
    }

    /// The free units that cannot be had one by one.
    fn missing(&mut self, in_hand: &[InHand]) -> Result<Vec<u64>, Violation> {
        let mut blocks = Vec::new();
        while let Some(block) = self.alloc(0)? {
            blocks.push(block);
        }
        let units = 0..self.system.units();
        let missing: Vec<u64> = units.filter(|&unit| self.oracle.is_free(unit)).collect();
        blocks.into_iter().try_for_each(|block| self.free(block))?;
        let excused = in_hand.iter().any(|in_hand| in_hand.excuses(&missing));
        if missing.is_empty() || excused {
            return Ok(missing);
        }
        Err(Violation::Lost { units: missing })
    }

    fn audit(&self, in_hand: &[InHand]) -> Result<(), Violation> {
        let Err((violation, units)) = self.system.check() else { return Ok(()) };
        let explained = in_hand.iter().any(|in_hand| in_hand.explains(&units));
        if explained { Ok(()) } else { Err(violation) }
    }
}
