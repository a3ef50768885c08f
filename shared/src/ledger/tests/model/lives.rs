//! Members that make their operations part by part, as the dice say. The owner map knows what each of them has.

use std::fmt::Display;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use nbbs::sync::Word;
use testkit::program::Arena;
use testkit::steered::{Steered, steer};
use testkit::{Block, Violation};

use crate::ledger::tag::with_order;
use crate::ledger::tests::world::World;
use crate::ledger::{Liveness, Owner, Seat, Turn};

/// The units that are claimed: so few that what one member clears another soon claims.
const UNITS: Range<u64> = 0..6;

/// The seats that members come to. Recoverers have those before, and their seats' numbers in the owner map.
const SEATS: Range<usize> = 2..6;

/// How far a member has come in its operation.
#[derive(Clone, Copy, Debug)]
enum At {
    Rest,
    /// It allocates, and has nothing yet, or nothing any more.
    Allocates,
    /// The buddy allocator has claimed a unit for it.
    Claimed(u64),
    /// It has cleared the unit that it had claimed, and not counted that.
    TookBack,
    /// It frees a unit, whose tag is still its own.
    Frees(u64),
    /// The tag is nobody's.
    Untagged(u64),
    /// It has done everything, and its turn is still odd.
    Done,
}

/// A member on its seat.
struct Life {
    /// Its number in the owner map, which nobody else has had.
    id: usize,
    seat: Seat,
    at: At,
    /// The turn with which its operation ends.
    ends: Option<Turn>,
    /// Units that it was granted.
    holds: Vec<u64>,
}

/// A member that is gone.
struct Gone {
    id: usize,
    seat: usize,
    has_died: bool,
}

pub struct Lives {
    pub world: Rc<World>,
    seed: u64,
    dice: fastrand::Rng,
    lives: Vec<Life>,
    gone: Vec<Gone>,
    /// Which of the buddy allocator's words counts the claims that were undone.
    undone: usize,
    /// What happened, for whoever reads a failure.
    story: Vec<String>,
}

impl Lives {
    pub fn new(world: Rc<World>, seed: u64) -> Self {
        let undone = find_undone(&world.arena);
        // Not those of the caller.
        let dice = fastrand::Rng::with_seed(!seed);
        Self { world, seed, dice, lives: Vec::new(), gone: Vec::new(), undone, story: Vec::new() }
    }

    /// Makes a part of somebody's operation, once in so many calls. The words' hooks do not see it.
    pub fn stir(&mut self, one_in: u32) {
        if self.one_in(one_in) {
            steer(|| {}, || self.go_on());
        }
    }

    /// All of them die, wherever they are.
    pub fn end(&mut self) {
        while !self.lives.is_empty() {
            self.goes(0, true);
        }
    }

    /// A recoverer has got a unit, which it keeps or frees. Whoever had it must be gone.
    pub fn lose(&mut self, unit: u64, by: usize, keeps: bool) {
        let had = self.world.oracle.holder_of(unit).map(|holder| holder.lane);
        self.note(format!("recoverer {by} takes unit {unit} of {had:?}, keeps it: {keeps}"));
        assert!(had.is_some(), "unit {unit} was nobody's\n{}", self.story());
        let is_gone = |id| self.gone.iter().any(|gone| gone.id == id);
        self.must(self.world.oracle.bury(block(unit), is_gone));
        if keeps {
            self.must(self.world.oracle.take(by, unit, 0));
        }
    }

    /// Returns the units of one that the owner map knows.
    pub fn units_of(&self, id: usize) -> Vec<u64> {
        let holder = |unit| self.world.oracle.holder_of(unit);
        UNITS.filter(|&unit| holder(unit).is_some_and(|holder| holder.lane == id)).collect()
    }

    /// That members who died and have left something count as dead, so that somebody looks for it.
    pub fn check_dead(&self) {
        let (world, ledger) = (&*self.world, self.world.ledger());
        for Gone { id, seat, .. } in self.gone.iter().filter(|gone| gone.has_died) {
            let counts =
                ledger.dead_on(*seat, world).is_some() || ledger.replaced_on(*seat).is_some();
            let left = self.units_of(*id);
            assert!(counts || left.is_empty(), "{id} is buried with {left:?}\n{}", self.story());
        }
    }

    pub fn note(&mut self, what: String) {
        self.story.push(what);
    }

    /// The seed, and the end of what happened.
    pub fn story(&self) -> String {
        let end = &self.story[self.story.len().saturating_sub(80)..];
        format!("seed {}\n{}", self.seed, end.join("\n"))
    }

    pub fn must<T>(&self, result: Result<T, impl Display>) -> T {
        result.unwrap_or_else(|wrong| panic!("{wrong}\n{}", self.story()))
    }

    fn one_in(&mut self, chances: u32) -> bool {
        self.dice.u32(0..chances) == 0
    }

    fn go_on(&mut self) {
        if self.lives.is_empty() || self.one_in(60) {
            let seat = self.dice.usize(SEATS);
            if !self.world.is_alive(seat) {
                self.comes(seat);
            }
            return;
        }
        let which = self.dice.usize(0..self.lives.len());
        if self.one_in(40) { self.dies_and_is_replaced(which) } else { self.makes_a_part(which) }
    }

    fn makes_a_part(&mut self, which: usize) {
        let at = self.lives[which].at;
        let next = match at {
            At::Rest if self.one_in(12) => return self.leaves(which),
            At::Rest => self.begins(which),
            At::Allocates => self.claims(which),
            At::Claimed(unit) if self.one_in(2) => self.takes_back(which, unit),
            At::Claimed(unit) => self.is_granted(which, unit),
            // Often: the claim is gone, and nobody ever counts it.
            At::TookBack if self.one_in(5) => return self.dies_and_is_replaced(which),
            At::TookBack => self.counts(),
            At::Frees(unit) => self.untags(which, unit),
            At::Untagged(unit) => self.clears(which, unit),
            At::Done => self.ends(which),
        };
        self.note(format!("{}: {at:?}, then {next:?}", self.lives[which].id));
        self.lives[which].at = next;
    }

    fn comes(&mut self, number: usize) {
        let id = SEATS.start + self.gone.len() + self.lives.len();
        let seat = self.world.sit(number).seat;
        self.note(format!("{id} comes to seat {number}"));
        self.lives.push(Life { id, seat, at: At::Rest, ends: None, holds: Vec::new() });
    }

    fn leaves(&mut self, which: usize) {
        self.world.ledger().leave(&self.lives[which].seat);
        self.goes(which, false);
    }

    /// Dies, and perhaps another comes to its seat at once.
    fn dies_and_is_replaced(&mut self, which: usize) {
        let seat = self.goes(which, true);
        if self.one_in(3) {
            self.comes(seat);
        }
    }

    /// Returns the seat that it had.
    fn goes(&mut self, which: usize, has_died: bool) -> usize {
        let Life { id, seat, at, .. } = self.lives.swap_remove(which);
        self.note(format!("{id} goes at {at:?}, died: {has_died}"));
        self.world.kill(seat.number);
        self.gone.push(Gone { id, seat: seat.number, has_died });
        seat.number
    }

    /// Begins to allocate, or to free what it was granted last.
    fn begins(&mut self, which: usize) -> At {
        let frees = self.one_in(2);
        let life = &mut self.lives[which];
        life.ends = self.world.ledger().begin(&life.seat);
        match frees.then(|| life.holds.pop()).flatten() {
            Some(unit) => {
                self.check_tag(unit, self.lives[which].seat.owner);
                At::Frees(unit)
            }
            None => At::Allocates,
        }
    }

    /// Claims a unit that is free, or gives up.
    fn claims(&mut self, which: usize) -> At {
        let Some(unit) = self.free_unit().filter(|_| !self.one_in(12)) else {
            return self.ends(which);
        };
        let Life { id, seat, .. } = &self.lives[which];
        if self.world.ledger().buddy.on(seat.number).alloc_at(unit, 1).is_err() {
            return At::Allocates;
        }
        self.must(self.world.oracle.take(*id, unit, 0));
        At::Claimed(unit)
    }

    fn takes_back(&mut self, which: usize, unit: u64) -> At {
        self.clears(which, unit);
        At::TookBack
    }

    /// Counts the claim that it took back, as the buddy allocator does, and looks for another.
    fn counts(&mut self) -> At {
        self.world.arena.words()[self.undone].plain().fetch_add(1, Ordering::Relaxed);
        At::Allocates
    }

    fn is_granted(&mut self, which: usize, unit: u64) -> At {
        self.check_tag(unit, Owner::NOBODY);
        let life = &mut self.lives[which];
        let tag = &self.world.tags[unit as usize];
        let next = life.seat.owner.after(with_order(tag.load(Ordering::Relaxed), 0));
        tag.store(next, Ordering::Release);
        life.holds.push(unit);
        At::Done
    }

    fn untags(&self, which: usize, unit: u64) -> At {
        self.check_tag(unit, self.lives[which].seat.owner);
        let tag = &self.world.tags[unit as usize];
        tag.store(Owner::NOBODY.after(tag.load(Ordering::Relaxed)), Ordering::Release);
        At::Untagged(unit)
    }

    /// Clears the unit's block, which must be its own still.
    fn clears(&self, which: usize, unit: u64) -> At {
        let Life { id, seat, .. } = &self.lives[which];
        let units = self.units_of(*id);
        assert!(units.contains(&unit), "{id} has lost unit {unit}\n{}", self.story());
        self.must(self.world.oracle.give(block(unit)));
        self.must(self.world.ledger().buddy.on(seat.number).free_sized(unit, 0));
        At::Done
    }

    fn ends(&mut self, which: usize) -> At {
        let life = &mut self.lives[which];
        self.world.ledger().end(&life.seat, life.ends.take().unwrap());
        At::Rest
    }

    fn free_unit(&mut self) -> Option<u64> {
        let first = self.dice.u64(UNITS);
        let mut units = UNITS.map(|unit| (first + unit) % UNITS.end);
        units.find(|&unit| self.world.ledger().buddy.order_of(unit).is_err())
    }

    fn check_tag(&self, unit: u64, owner: Owner) {
        let named = self.world.ledger().owner_at(unit);
        self.must(match named {
            Some(named) if named == owner => Ok(()),
            other => Err(Violation::wrong("tag", format!("{owner:?} at {unit}"), other)),
        });
    }
}

pub fn block(unit: u64) -> Block {
    Block { index: unit, order: 0 }
}

/// Returns which word it is whose change changes the count of undone claims.
fn find_undone(arena: &Arena<Steered>) -> usize {
    let buddy = arena.buddy();
    let changes = |word: &Steered| {
        let was = buddy.undone();
        word.plain().fetch_add(1, Ordering::Relaxed);
        let is = buddy.undone();
        word.plain().fetch_sub(1, Ordering::Relaxed);
        was != is
    };
    arena.words().iter().position(changes).expect("the arena counts")
}
