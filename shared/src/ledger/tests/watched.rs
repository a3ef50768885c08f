//! Members that are never at rest when somebody recovers: what may be theirs is watched until each has moved on.

use std::sync::atomic::Ordering;

use nbbs::sync::Word;
use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Turn as Steps, count_steps, follow};

use super::world::{Hand, World};
use crate::ledger::tag::with_order;
use crate::ledger::{Fate, Found, Owner, Recovery, Turn, Whose};

/// A member whose operations stop after each of their parts.
struct Slow<'w> {
    world: &'w World,
    hand: Hand<'w>,
    /// The turn with which its operation ends.
    ends: Option<Turn>,
}

impl<'w> Slow<'w> {
    fn sits(world: &'w World, seat: usize) -> Self {
        Self { world, hand: world.sit(seat), ends: None }
    }

    fn begins(&mut self) {
        self.ends = self.world.ledger().begin(&self.hand.seat);
    }

    fn ends(&mut self) {
        self.world.ledger().end(&self.hand.seat, self.ends.take().unwrap());
    }

    /// Ends an operation and begins the next.
    fn moves_on(&mut self) {
        self.ends();
        self.begins();
    }

    fn claims(&mut self, unit: u64) {
        self.begins();
        self.world.ledger().buddy.on(self.hand.seat.number).alloc_at(unit, 1).unwrap();
    }

    fn is_granted(&mut self, unit: u64) {
        let tag = &self.world.tags[unit as usize];
        let new = self.hand.seat.owner.after(with_order(tag.load(Ordering::Relaxed), 0));
        tag.store(new, Ordering::Release);
        self.ends();
    }

    fn untags(&mut self, unit: u64) {
        self.begins();
        let tag = &self.world.tags[unit as usize];
        tag.store(Owner::NOBODY.after(tag.load(Ordering::Relaxed)), Ordering::Release);
    }

    /// Clears a block, as a free or an allocation that takes its claim back does.
    fn clears(&self, unit: u64) {
        self.world.ledger().buddy.on(self.hand.seat.number).free_sized(unit, 0).unwrap();
    }

    fn dies(self) {
        self.world.kill(self.hand.seat.number);
    }
}

/// Makes the block of a unit an orphan, of the member on this seat.
fn orphan(world: &World, seat: usize, unit: u64) {
    let mut dead = Slow::sits(world, seat);
    dead.claims(unit);
    dead.dies();
}

/// Recovers, and keeps all.
fn recover(world: &World, recoverer: &Hand<'_>) -> Recovery {
    let recovers = || world.slabs().recover(&recoverer.seat, world, |_, _| Fate::Keep);
    count_steps(1500, recovers).unwrap().0
}

fn dead(world: &World, recoverer: &Hand<'_>) -> usize {
    world.ledger().count_dead(&recoverer.seat, world)
}

/// That a recovery leaves a death's orphan pending.
fn is_pending(world: &World, recoverer: &Hand<'_>) {
    let found = recover(world, recoverer);
    assert_eq!((found.kept, found.pending, dead(world, recoverer)), (0, 1, 1));
}

/// That a recovery takes it.
fn is_taken(world: &World, recoverer: &Hand<'_>) {
    let found = recover(world, recoverer);
    assert_eq!((found.kept, found.pending, dead(world, recoverer)), (1, 0, 0));
}

#[test]
fn beside_members_that_move_on_one_after_the_other() {
    let world = World::new(64);
    let recoverer = world.sit(0);
    orphan(&world, 1, 7);
    let mut busy: Vec<Slow<'_>> = (2..5).map(|seat| Slow::sits(&world, seat)).collect();
    busy.iter_mut().for_each(Slow::begins);
    // Each moves on before the look and after it.
    for call in 0..6 {
        is_pending(&world, &recoverer);
        busy[call % 3].moves_on();
    }
    is_taken(&world, &recoverer);
}

/// Nobody waits for it; once it goes on, or dies, the next recovery knows.
#[test]
fn beside_a_member_that_stands_still() {
    for (moves, dies) in [(0, false), (0, true), (1, false), (1, true)] {
        let world = World::new(64);
        let recoverer = world.sit(0);
        orphan(&world, 1, 7);
        let mut still = Slow::sits(&world, 2);
        still.begins();
        for _ in 0..moves {
            is_pending(&world, &recoverer);
            still.moves_on();
        }
        for _ in 0..20 {
            is_pending(&world, &recoverer);
        }
        if dies {
            still.dies();
        } else {
            still.ends();
        }
        let found = recover(&world, &recoverer);
        assert_eq!(
            (found.kept, found.pending, dead(&world, &recoverer)),
            (1, 0, 0),
            "{moves}, {dies}"
        );
    }
}

/// A newcomer that acts is not waited for: it was not there when the block was seen.
#[test]
fn beside_a_newcomer() {
    let world = World::new(64);
    let recoverer = world.sit(0);
    orphan(&world, 1, 7);
    let mut busy = Slow::sits(&world, 2);
    busy.begins();
    is_pending(&world, &recoverer);
    busy.moves_on();
    is_pending(&world, &recoverer);
    let mut newcomer = Slow::sits(&world, 3);
    newcomer.begins();
    busy.moves_on();
    is_taken(&world, &recoverer);
}

/// Found on its way in a free, when operations before had ended: that free is not seen to end in time.
#[test]
fn what_is_found_later_is_watched_later() {
    let world = World::new(64);
    let recoverer = world.sit(0);
    orphan(&world, 1, 7);
    let (mut busy, mut frees) = (Slow::sits(&world, 2), Slow::sits(&world, 3));
    frees.claims(9);
    frees.is_granted(9);
    busy.begins();
    is_pending(&world, &recoverer);
    busy.moves_on();
    frees.untags(9);
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending), (0, 2));
    frees.clears(9);
    frees.ends();
    let mut claims = Slow::sits(&world, 4);
    claims.claims(9);
    busy.moves_on();
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending), (1, 1));
    claims.is_granted(9);
    assert_eq!(recover(&world, &recoverer).pending, 0);
}

/// Whoever lives always has claimed something just then. The dead are buried once what was claimed at first is told,
/// and no earlier than those that died later.
#[test]
fn the_dead_are_buried_beside_claims_of_the_living() {
    let world = World::new(64);
    let recoverer = world.sit(0);
    let dead_one = Slow::sits(&world, 1);
    dead_one.dies();
    let mut claims = Slow::sits(&world, 2);
    claims.claims(9);
    let found = recover(&world, &recoverer);
    assert_eq!((found.pending, dead(&world, &recoverer)), (1, 1));
    claims.is_granted(9);
    claims.claims(10);
    orphan(&world, 3, 7);
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending, dead(&world, &recoverer)), (0, 2, 1));
    claims.is_granted(10);
    claims.claims(11);
    // Before the look at both, and after it.
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending, dead(&world, &recoverer)), (0, 2, 1));
    claims.is_granted(11);
    claims.claims(12);
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending, dead(&world, &recoverer)), (1, 1, 0));
}

/// Another member takes the orphan, and dies with it, or frees it and is claiming it again.
#[test]
fn what_another_recovers_is_no_longer_watched() {
    let world = World::new(64);
    let (recoverer, other) = (world.sit(0), world.sit(4));
    orphan(&world, 1, 7);
    let (mut busy, mut claims) = (Slow::sits(&world, 2), Slow::sits(&world, 3));
    busy.begins();
    is_pending(&world, &recoverer);
    busy.moves_on();
    is_pending(&world, &recoverer);
    busy.ends();
    is_taken(&world, &other);
    world.ledger().free(&other.seat, 7).unwrap();
    claims.claims(7);
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending), (0, 1));
    claims.is_granted(7);
    let found = recover(&world, &recoverer);
    assert_eq!((found.kept, found.pending), (0, 0));
}

/// A member has a claim when it is seen, and takes it back until the next recovery, and another has one then. Only the
/// count tells: both have been seen at rest.
#[test]
fn a_claim_is_undone_in_between() {
    let world = World::new(64);
    let recoverer = world.sit(0);
    let (mut large, mut collides) = (world.sit(4), world.sit(5));
    collides.alloc(0).unwrap();
    let begins = collides.held[0].index;
    collides.free().unwrap();
    // A larger block where that member begins, and nothing in the other half.
    large.alloc(5).unwrap();
    if large.held[0].index != begins & 32 {
        large.alloc(5).unwrap();
        large.held.swap(0, 1);
        large.free().unwrap();
    }
    let unit = (begins ^ 32) | 7;
    let [mut first, mut second, mut last] = [1, 2, 3].map(|seat| Slow::sits(&world, seat));
    first.claims(unit);
    assert_eq!(settle(&world, &recoverer).unwrap(), 1);
    first.clears(unit);
    first.ends();
    second.claims(unit);
    assert_eq!(settle(&world, &recoverer).unwrap(), 1);
    let undone = world.ledger().buddy.undone();
    collides.alloc(0).unwrap();
    collides.free().unwrap();
    assert_ne!(world.ledger().buddy.undone(), undone);
    second.clears(unit);
    second.ends();
    last.claims(unit);
    assert_eq!(settle(&world, &recoverer).unwrap(), 1);
    last.is_granted(unit);
    assert_eq!(settle(&world, &recoverer).unwrap(), 0);
}

/// A member has a claim when it is seen, takes it back and dies, and has not said so; another claims the unit, whom the
/// recoverer has seen at rest just before. The death is not taken for an end, whenever it is, and whoever has the seat
/// afterwards.
#[test]
fn who_died_may_have_taken_its_claim_back() {
    const UNIT: u64 = 7;
    let steps = 120;
    let mut seen = 0_u64;
    for replaced in [false, true] {
        for (dies, claims) in (0..steps).flat_map(|dies| (0..40).map(move |then| (dies, then))) {
            let world = World::new(64);
            let recoverer = world.sit(0);
            let mut first = Slow::sits(&world, 1);
            first.claims(UNIT);
            // Its tag was read before that member's operation ended.
            seen += settle(&world, &recoverer).unwrap();
            first.clears(UNIT);
            first.ends();
            let (mut dying, mut last) = (Slow::sits(&world, 2), Slow::sits(&world, 3));
            dying.claims(UNIT);
            let of = &world;
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || (0..3).try_for_each(|_| settle(of, &recoverer).map(drop))),
                Box::new(move || {
                    dying.clears(UNIT);
                    dying.dies();
                    if replaced {
                        of.sit(2);
                    }
                    Ok(())
                }),
                Box::new(move || {
                    last.claims(UNIT);
                    Ok(())
                }),
            ];
            let script = [
                Steps::steps(0, dies),
                Steps::rest(1),
                Steps::steps(0, claims),
                Steps::rest(2),
                Steps::rest(0),
            ];
            let ended = follow(&script, bodies);
            ended.unwrap_or_else(|found| panic!("{replaced}, {dies}, {claims}: {found}"));
        }
    }
    assert!(seen > 0);
}

/// Settles whatever is nobody's, of which nothing may be taken. Returns how much is pending.
fn settle(world: &World, recoverer: &Hand<'_>) -> Result<u64, Violation> {
    let (ledger, seat) = (world.ledger(), &recoverer.seat);
    let deaths = ledger.deaths(seat, world);
    let mut found: Vec<Found> = ledger.blocks();
    found.retain(|found| ledger.whose(found.tag, &deaths.dead) == Whose::Nobodys);
    let settled = ledger.settle(seat, world, &found, &deaths);
    if settled.taken.is_empty() {
        Ok(settled.pending as u64)
    } else {
        Err(Violation::wrong("settle", "nothing", settled.taken))
    }
}
