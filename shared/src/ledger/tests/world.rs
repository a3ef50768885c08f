//! A ledger, who lives, and who holds what.

use std::sync::atomic::{AtomicU64, Ordering};

use nbbs::sync::Word;
use testkit::program::Arena;
use testkit::steered::Steered;
use testkit::{Block, Oracle, Violation, check_whole};

use crate::ledger::{Fate, Ledger, Liveness, Recovery, Seat, TURN_STRIDE};

pub const SEATS: usize = 4;

/// A segment's words on the heap.
pub struct World {
    arena: Arena<Steered>,
    pub tags: Vec<Steered>,
    pub turns: Vec<Steered>,
    /// By seat, a bit: what the kernel would say.
    alive: AtomicU64,
    pub oracle: Oracle,
}

/// A member, and what it holds.
pub struct Hand<'w> {
    world: &'w World,
    pub seat: Seat,
    pub held: Vec<Block>,
}

impl World {
    pub fn new(units: u64) -> Self {
        let words = |count| (0..count).map(|_| Steered::default()).collect();
        Self {
            arena: Arena::new(units),
            tags: words(units),
            turns: words(SEATS as u64 * TURN_STRIDE as u64),
            alive: AtomicU64::new(0),
            oracle: Oracle::new(units),
        }
    }

    pub fn ledger(&self) -> Ledger<'_, Steered> {
        Ledger::new(self.arena.buddy(), &self.tags, &self.turns)
    }

    pub fn sit(&self, seat: usize) -> Hand<'_> {
        self.alive.fetch_or(1 << seat, Ordering::SeqCst);
        Hand { world: self, seat: self.ledger().sit(seat).unwrap(), held: Vec::new() }
    }

    /// The kernel has ended a member.
    pub fn kill(&self, seat: usize) {
        self.alive.fetch_and(!(1 << seat), Ordering::SeqCst);
    }

    /// Somebody else has the seat: what its last member held is in the owner map yet.
    fn is_replaced(&self, seat: usize) -> bool {
        self.ledger().turn(seat).is_some_and(|turn| turn.generation() > 1)
    }

    /// That everything comes free by recovery, and by the members that live.
    pub fn assert_whole(&self, recoverer: &mut Hand<'_>, what: &str) {
        // What lies below a block comes to light when that is free.
        for _ in 0..3 {
            let found = recoverer.recover().unwrap_or_else(|found| panic!("{what}: {found}"));
            assert_eq!(found.pending, 0, "{what}: {found:?}");
            while !recoverer.held.is_empty() {
                recoverer.free().unwrap_or_else(|found| panic!("{what}: {found}"));
            }
        }
        let buddy = self.arena.buddy();
        assert_eq!(buddy.free_units(), buddy.units(), "{what}: units are lost");
        buddy.audit().unwrap_or_else(|broken| panic!("{what}: {broken}"));
        check_whole(&buddy, &Oracle::new(buddy.units()))
            .unwrap_or_else(|found| panic!("{what}: {found}"));
        self.oracle.check_empty().unwrap_or_else(|found| panic!("{what}: {found}"));
        for (seat, turn) in self.turns.iter().step_by(TURN_STRIDE).enumerate() {
            let is_live = crate::ledger::Turn(turn.load(Ordering::SeqCst)).is_live();
            assert!(!is_live || self.is_alive(seat), "{what}: seat {seat} was not recovered");
        }
    }
}

impl Liveness for World {
    fn is_alive(&self, seat: usize) -> bool {
        self.alive.load(Ordering::SeqCst) >> seat & 1 == 1
    }
}

impl Hand<'_> {
    pub fn alloc(&mut self, order: u32) -> Result<(), Violation> {
        if let Some(Ok(index)) = self.world.ledger().alloc(&self.seat, order) {
            self.held.push(self.world.oracle.take(self.seat.number, index, order)?);
        }
        Ok(())
    }

    /// Frees what was allocated last.
    pub fn free(&mut self) -> Result<(), Violation> {
        let Some(block) = self.held.pop() else { return Ok(()) };
        self.world.oracle.give(block)?;
        match self.world.ledger().free(&self.seat, block.index) {
            Ok(units) if units == block.len() => Ok(()),
            other => Err(Violation::wrong("free", "a free of the block", other)),
        }
    }

    /// Recovers: what the dead hold in the owner map becomes this member's there, and whatever else is recovered must be
    /// nobody's. Half of it is kept, the rest freed.
    pub fn recover(&mut self) -> Result<Recovery, Violation> {
        let (world, seat) = (self.world, self.seat.number);
        let mut wrong = Ok(());
        let held = &mut self.held;
        let decide = |index: u64, units| {
            let keeps = index % 8 < 4;
            let moved = Block::of(index, units)
                .ok_or_else(|| Violation::wrong("recover", "a block", (index, units)));
            let moved = moved.and_then(|block| {
                world
                    .oracle
                    .bury(block, |seat| !world.is_alive(seat) || world.is_replaced(seat))?;
                let block = world.oracle.take(seat, index, block.order)?;
                if keeps {
                    held.push(block);
                    return Ok(());
                }
                world.oracle.give(block)
            });
            if wrong.is_ok() {
                wrong = moved;
            }
            if keeps { Fate::Keep } else { Fate::Free }
        };
        let recovery = world.ledger().recover(&self.seat, world, decide);
        if wrong.is_ok() && recovery.damaged > 0 {
            return Err(Violation::wrong("recover", "blocks that are there", recovery));
        }
        wrong.map(|()| recovery)
    }
}
