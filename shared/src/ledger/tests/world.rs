//! A ledger and slabs, who lives, and who holds what.

use std::sync::atomic::{AtomicU64, Ordering};

use nbbs::sync::Word;
use proptest::prelude::prop;
use testkit::program::Arena;
use testkit::steered::Steered;
use testkit::{Block, Oracle, Violation, check_whole};

use crate::ledger::{Fate, Ledger, Liveness, Recovery, Seat, TURN_STRIDE};
use crate::slabs::class::Shape;
use crate::slabs::{Cursors, HINTS, Memory, PIN_STRIDE, Slabs};

pub const SEATS: usize = 6;

/// A segment's words on the heap.
pub struct World {
    pub arena: Arena<Steered>,
    pub tags: Vec<Steered>,
    pub turns: Vec<Steered>,
    pins: Vec<Steered>,
    hints: Vec<Steered>,
    units: Units,
    /// By seat, a bit: what the kernel would say.
    alive: AtomicU64,
    pub oracle: Oracle,
    /// Of slots, all of the least class.
    pub slots: Oracle,
}

/// Memory of units of 64 bytes.
struct Units(Vec<Steered>);

impl Memory<Steered> for &Units {
    fn words(&self, at: u64, count: usize) -> Option<&[Steered]> {
        let first = at as usize / 8;
        self.0.get(first..first + count)
    }
}

/// The least slot: what the owner map of slots counts.
const GRAIN: u64 = 16;

/// A member, and what it holds.
pub struct Hand<'w> {
    world: &'w World,
    pub seat: Seat,
    pub held: Vec<Block>,
    /// Slots that it holds: where they begin, in bytes.
    pub slots: Vec<u64>,
    pub cursors: Cursors,
}

impl World {
    pub fn new(units: u64) -> Self {
        let words = |count| (0..count).map(|_| Steered::default()).collect();
        Self {
            arena: Arena::new(units),
            tags: words(units),
            turns: words(SEATS as u64 * TURN_STRIDE as u64),
            pins: words((SEATS * PIN_STRIDE) as u64),
            hints: words(HINTS as u64),
            units: Units(words(units * 8)),
            alive: AtomicU64::new(0),
            oracle: Oracle::new(units),
            slots: Oracle::new(units * 64 / GRAIN),
        }
    }

    pub fn ledger(&self) -> Ledger<'_, Steered> {
        Ledger::new(self.arena.buddy(), &self.tags, &self.turns)
    }

    pub fn slabs(&self) -> Slabs<'_, Steered, impl Memory<Steered>> {
        let shape = Shape::new(self.arena.buddy().units(), 64);
        Slabs::new(self.ledger(), &self.units, &self.pins, &self.hints, shape)
    }

    pub fn sit(&self, seat: usize) -> Hand<'_> {
        assert!(self.ledger().desert(seat, self), "seat {seat} is taken");
        self.alive.fetch_or(1 << seat, Ordering::SeqCst);
        let (held, slots, cursors) = (Vec::new(), Vec::new(), Cursors::default());
        Hand { world: self, seat: self.slabs().sit(seat).unwrap(), held, slots, cursors }
    }

    /// The kernel has ended a member.
    pub fn kill(&self, seat: usize) {
        self.alive.fetch_and(!(1 << seat), Ordering::SeqCst);
    }

    /// Writes a value into every word of the units of a block.
    pub fn fill(&self, unit: u64, units: u64, value: u64) {
        self.words_at(unit, units).iter().for_each(|word| word.store(value, Ordering::Relaxed));
    }

    /// Whether they still hold it.
    pub fn is_full_of(&self, unit: u64, units: u64, value: u64) -> bool {
        self.words_at(unit, units).iter().all(|word| word.load(Ordering::Relaxed) == value)
    }

    /// [`fill`](Self::fill), and no step of it.
    pub fn fill_plainly(&self, unit: u64, units: u64, value: u64) {
        let words = self.words_at(unit, units).iter();
        words.for_each(|word| word.plain().store(value, Ordering::Relaxed));
    }

    /// [`is_full_of`](Self::is_full_of), and no step of it.
    pub fn is_full_of_plainly(&self, unit: u64, units: u64, value: u64) -> bool {
        let mut words = self.words_at(unit, units).iter();
        words.all(|word| word.plain().load(Ordering::Relaxed) == value)
    }

    fn words_at(&self, unit: u64, units: u64) -> &[Steered] {
        &self.units.0[unit as usize * 8..(unit + units) as usize * 8]
    }

    /// Says that a slab has free slots of the least class.
    pub fn hint_at(&self, slab: u64) {
        self.hints[0].store(slab + 1, Ordering::Relaxed);
    }

    /// Where that would be looked for.
    pub fn hint(&self) -> Option<u64> {
        self.hints[0].load(Ordering::Relaxed).checked_sub(1)
    }

    /// A word of one of the parts, but not of the slab with this number.
    pub fn word(&self, part: usize, at: &prop::sample::Index, slab: u64) -> Option<&Steered> {
        let words = [&self.tags, &self.pins, &self.hints, &self.units.0][part];
        let at = at.index(words.len());
        let of_slab = [4, usize::MAX, usize::MAX, 32][part];
        (at / of_slab != slab as usize || of_slab == usize::MAX).then(|| &words[at])
    }

    /// What a slot of the dead becomes in the owner map: a member's, or nobody's.
    fn move_slot(
        &self,
        seat: usize,
        at: u64,
        gone: impl Fn(usize) -> bool,
        keeps: bool,
    ) -> Result<(), Violation> {
        let block =
            Block::of(at / GRAIN, 1).ok_or_else(|| Violation::wrong("recover", "a slot", at))?;
        self.slots.bury(block, gone)?;
        let slot = self.slots.take(seat, block.index, 0)?;
        if keeps { Ok(()) } else { self.slots.give(slot) }
    }

    /// Somebody else has the seat, or is about to: what its last member held is in the owner map yet.
    fn is_replaced(&self, seat: usize) -> bool {
        self.ledger().turn(seat).is_some_and(|turn| turn.generation() > 1 || !turn.is_live())
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
            while !recoverer.slots.is_empty() {
                recoverer.free_slot().unwrap_or_else(|found| panic!("{what}: {found}"));
            }
            recoverer.trim();
        }
        let buddy = self.arena.buddy();
        assert_eq!(buddy.count_free(), buddy.units(), "{what}: units are lost");
        buddy.audit().unwrap_or_else(|broken| panic!("{what}: {broken}"));
        check_whole(&buddy, &Oracle::new(buddy.units()))
            .unwrap_or_else(|found| panic!("{what}: {found}"));
        self.slots.check_empty().unwrap_or_else(|found| panic!("{what}: {found}"));
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

/// Returns the steps of what dies before a step, or ends.
pub fn steps_of<T>(ends: impl Fn(u64) -> Option<T>) -> u64 {
    (0..).find(|&steps| ends(steps).is_some()).unwrap()
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

    /// Allocates a slot of the least class.
    pub fn alloc_slot(&mut self) -> Result<(), Violation> {
        if let Some(at) = self.world.slabs().alloc(&self.seat, &self.cursors, 0) {
            self.world.slots.take(self.seat.number, at / GRAIN, 0)?;
            self.slots.push(at);
        }
        Ok(())
    }

    /// Frees the slot that was allocated last.
    pub fn free_slot(&mut self) -> Result<(), Violation> {
        let Some(at) = self.slots.pop() else { return Ok(()) };
        self.world.slots.give(Block::of(at / GRAIN, 1).expect("one"))?;
        match self.world.slabs().free(&self.seat, &self.cursors, at) {
            Some(Ok(GRAIN)) => Ok(()),
            other => Err(Violation::wrong("free", "a free of the slot", other)),
        }
    }

    /// Fills the block that was allocated last with what free slots look like.
    pub fn scribble(&self) {
        let Some(block) = self.held.last() else { return };
        let (first, words) = (block.index as usize * 8, block.len() as usize * 8);
        for word in &self.world.units.0[first..first + words] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// That nobody has written there.
    pub fn check_scribble(&self) -> Result<(), Violation> {
        let Some(block) = self.held.last() else { return Ok(()) };
        let (first, words) = (block.index as usize * 8, block.len() as usize * 8);
        let values = self.world.units.0[first..first + words].iter();
        match values.map(|word| word.load(Ordering::Relaxed)).find(|&value| value != 0) {
            None => Ok(()),
            Some(found) => Err(Violation::wrong("use", "a block as it was written", found)),
        }
    }

    pub fn trim(&self) -> usize {
        self.world.slabs().trim(&self.seat, &self.cursors, self.world)
    }

    /// Recovers: what the dead hold in the owner map becomes this member's there, and whatever else is recovered must
    /// be nobody's. Half of it is kept, the rest freed.
    pub fn recover(&mut self) -> Result<Recovery, Violation> {
        let (world, seat) = (self.world, self.seat.number);
        let mut wrong = Ok(());
        let (held, slots) = (&mut self.held, &mut self.slots);
        let gone = |seat| !world.is_alive(seat) || world.is_replaced(seat);
        let decide = |at: u64, bytes: u64| {
            if bytes < 64 {
                let keeps = (at / GRAIN).is_multiple_of(2);
                let moved = world.move_slot(seat, at, gone, keeps);
                if moved.is_ok() && keeps {
                    slots.push(at);
                }
                if wrong.is_ok() {
                    wrong = moved;
                }
                return if keeps { Fate::Keep } else { Fate::Free };
            }
            let (index, units) = (at / 64, bytes / 64);
            let keeps = index % 8 < 4;
            let moved = Block::of(index, units)
                .ok_or_else(|| Violation::wrong("recover", "a block", (index, units)));
            let moved = moved.and_then(|block| {
                world.oracle.bury(block, gone)?;
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
        let recovery = world.slabs().recover(&self.seat, world, decide);
        if wrong.is_ok() && recovery.damaged > 0 {
            return Err(Violation::wrong("recover", "blocks that are there", recovery));
        }
        wrong.map(|()| recovery)
    }
}
