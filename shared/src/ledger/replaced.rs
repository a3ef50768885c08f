//! Replaced members: they had died, and another took their seat before they were recovered.
//!
//! Two more words in the line of a seat's turn name generations: that of the newcomer who last replaced a member which
//! had deserted the seat, and the same once that member has been recovered. The newcomer writes its word before its
//! turn. So the word counts only when the turn has that generation or a later one: whoever recovers sees then that the
//! former member is gone. If the newcomer dies in between, the former one has still deserted that seat.

use nbbs::sync::{Ordering, Word};

use super::Ledger;

/// The positions of both words behind the turn.
const REPLACED: usize = 1;
const RECOVERED: usize = 2;

/// A member that was replaced: its seat, and the generation that replaced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    seat: usize,
    pub(super) by: u64,
    /// The last one that had been recovered.
    recovered: u64,
}

impl<W: Word> Ledger<'_, W> {
    /// Records that the member of a new generation replaces a dead one. For the newcomer, which has the seat's lock.
    pub(super) fn replace(&self, seat: usize, by: u64) {
        if let Some(word) = self.word_of(seat, REPLACED) {
            // Release: nothing depends on it but that it comes before the turn, whose store is a Release.
            word.store(by, Ordering::Release);
        }
    }

    /// Returns the members that have been replaced and not been recovered.
    pub fn replaced(&self) -> impl Iterator<Item = Replaced> {
        (0..self.seats()).filter_map(|seat| self.replaced_on(seat))
    }

    /// Returns the member of this seat that has been replaced and not been recovered.
    pub(super) fn replaced_on(&self, seat: usize) -> Option<Replaced> {
        loop {
            // Acquire: before the other word is read.
            let recovered = self.word_of(seat, RECOVERED)?.load(Ordering::Acquire);
            // Acquire: pairs with the Release in `replace`.
            let by = self.word_of(seat, REPLACED)?.load(Ordering::Acquire);
            let has_come = self.turn(seat)?.seated().generation() != by;
            // Acquire: pairs with the Release in `forget_replaced`, as the turn does. A newcomer that finds the former
            // member recovered says so before its own turn.
            if self.word_of(seat, RECOVERED)?.load(Ordering::Acquire) == recovered {
                return (by != recovered && has_come).then_some(Replaced { seat, by, recovered });
            }
        }
    }

    /// Records that replaced members have been recovered.
    pub fn bury_replaced(&self, Replaced { seat, by, recovered }: Replaced) {
        let Some(word) = self.word_of(seat, RECOVERED) else { return };
        // Relaxed: nothing depends on it. If it fails, another has recovered this one or a later one since.
        let _ = word.compare_exchange(recovered, by, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes back what a newcomer recorded that died before its turn, when the member whom it was to replace has been
    /// recovered since. For the next newcomer, which has the same generation, and the seat's lock.
    pub(super) fn forget_replaced(&self, seat: usize, by: u64) {
        let replaced = self.word_of(seat, REPLACED);
        // Relaxed: written by whoever had the lock before.
        if replaced.is_some_and(|word| word.load(Ordering::Relaxed) == by)
            && let Some(word) = self.word_of(seat, RECOVERED)
        {
            // Release: comes before the turn, as in `replace`.
            word.store(by, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use testkit::Violation;
    use testkit::program::Body;
    use testkit::steered::{Turn, die_before, follow};

    use crate::ledger::tests::world::{Hand, World, steps_of};
    use crate::ledger::{Liveness, Seat};

    /// A world in which the member on seat 0 has died with a block.
    fn with_a_death() -> World {
        let world = World::new(64);
        let mut dead = world.sit(0);
        dead.alloc(2).unwrap();
        drop(dead);
        world.kill(0);
        world
    }

    /// The steps of a newcomer that takes the seat, and the most of a recovery.
    fn coming() -> u64 {
        steps_of(|steps| {
            let world = with_a_death();
            die_before(steps, || drop(world.sit(0)))
        })
    }

    fn recovery() -> u64 {
        steps_of(|steps| {
            let world = with_a_death();
            die_before(steps, || world.sit(1).recover().map(drop))
        })
    }

    /// Makes so many steps of both, and then the rest, in this order.
    fn interleaved(first: (usize, u64), second: (usize, u64)) -> [Turn; 4] {
        let steps = |(lane, steps)| Turn::steps(lane, steps);
        [steps(first), steps(second), Turn::rest(first.0), Turn::rest(second.0)]
    }

    /// A newcomer takes the seat.
    fn newcomer(world: &World) -> Body<'_> {
        Box::new(move || {
            world.sit(0);
            Ok(())
        })
    }

    /// Whatever is lost is a dead member's, as the next recoverer is told; then it is not.
    fn is_found(world: &World, other: &mut Hand<'_>, what: &str) {
        let held: u64 = other.held.iter().map(|block| block.len()).sum();
        let is_lost = world.ledger().buddy.count_free() != 64 - held;
        assert!(!is_lost || dead(world, &other.seat) > 0, "{what}");
        other.recover().unwrap();
        assert_eq!(dead(world, &other.seat), 0, "{what}");
    }

    fn dead(world: &World, seat: &Seat) -> usize {
        world.ledger().count_dead(seat, world)
    }

    #[test]
    fn a_death_counts_until_it_is_recovered_whoever_has_the_seat() {
        let world = with_a_death();
        let mut other = world.sit(1);
        assert_eq!(dead(&world, &other.seat), 1);
        let newcomer = world.sit(0);
        assert_eq!((dead(&world, &other.seat), dead(&world, &newcomer.seat)), (1, 1));
        let found = other.recover().unwrap();
        assert_eq!((found.members, found.freed + found.kept), (1, 1));
        assert_eq!((dead(&world, &other.seat), dead(&world, &newcomer.seat)), (0, 0));
        // A member that leaves is not dead, even with a block.
        world.ledger().leave(&newcomer.seat);
        drop(newcomer);
        let newcomer = world.sit(0);
        assert_eq!(dead(&world, &newcomer.seat), 0);
    }

    /// What the kernel says of a member that leaves while it is asked.
    struct Leaves<'w>(&'w World, Cell<Option<Seat>>);

    impl Liveness for Leaves<'_> {
        fn is_alive(&self, _: usize) -> bool {
            self.1.take().is_none_or(|seat| {
                self.0.ledger().leave(&seat);
                false
            })
        }
    }

    #[test]
    fn a_member_that_leaves_while_it_is_looked_at_is_not_dead() {
        let world = World::new(64);
        let (member, other) = (world.sit(0), world.sit(1));
        let leaves = Leaves(&world, Cell::new(Some(member.seat)));
        assert_eq!(world.ledger().dead(&other.seat, &leaves).count(), 0);
        assert!(leaves.1.into_inner().is_none());
    }

    #[test]
    fn a_death_counts_once_whenever_a_newcomer_takes_the_seat() {
        let all = coming();
        let places = (0..12).flat_map(|counts| (0..=all).map(move |comes| (counts, comes)));
        for (counts, comes) in places {
            let world = with_a_death();
            let mut other = world.sit(1);
            let mut count = 0;
            let (of, seat, counted) = (&world, &mut other.seat, &mut count);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || {
                    *counted = dead(of, seat);
                    Ok(())
                }),
                newcomer(of),
            ];
            let script = interleaved((0, counts), (1, comes));
            let what = format!("{counts}, {comes}");
            follow(&script, bodies).unwrap_or_else(|found| panic!("{what}: {found}"));
            assert_eq!(count, 1, "{what}");
        }
    }

    /// A recoverer is stopped at any step, and another recovers a later death on the same seat.
    #[test]
    fn what_two_recover_stays_recovered() {
        for step in 0..400 {
            let world = with_a_death();
            drop(world.sit(0));
            let (mut first, mut second) = (world.sit(1), world.sit(2));
            let (of, recoverer, later) = (&world, &mut first, &mut second);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || recoverer.recover().map(drop)),
                Box::new(move || {
                    of.kill(0);
                    drop(of.sit(0));
                    later.recover().map(drop)
                }),
            ];
            follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies)
                .unwrap_or_else(|found| panic!("{step}: {found}"));
            assert_eq!(dead(&world, &first.seat), 0, "{step}");
        }
    }

    /// If it is not recovered then, somebody is told that it must be.
    #[test]
    fn a_newcomer_comes_while_somebody_recovers() {
        let (coming, recovery) = (coming(), recovery());
        for comes in 0..=coming {
            for recovers in (0..=recovery).step_by(5) {
                let world = with_a_death();
                let mut other = world.sit(1);
                let (of, recoverer) = (&world, &mut other);
                let bodies: Vec<Body<'_>> =
                    vec![newcomer(of), Box::new(move || recoverer.recover().map(drop))];
                let script = interleaved((0, comes), (1, recovers));
                let what = format!("{comes}, {recovers}");
                follow(&script, bodies).unwrap_or_else(|found| panic!("{what}: {found}"));
                is_found(&world, &mut other, &what);
            }
        }
    }

    /// Whoever recovers meanwhile finds all that the dead member held, or was about to allocate.
    #[test]
    fn a_newcomer_that_stands_still_hides_nobody() {
        let all = coming();
        for (dies, stands) in (0..20).flat_map(|dies| (0..=all).map(move |stands| (dies, stands))) {
            let world = World::new(64);
            let mut dead = world.sit(0);
            dead.alloc(2).unwrap();
            let _ = die_before(dies, || dead.alloc(0));
            drop(dead);
            world.kill(0);
            let mut other = world.sit(1);
            let (of, recoverer) = (&world, &mut other);
            let bodies: Vec<Body<'_>> = vec![
                newcomer(of),
                Box::new(move || {
                    let found = recoverer.recover()?;
                    let held: u64 = recoverer.held.iter().map(|block| block.len()).sum();
                    let left = of.ledger().buddy.count_free() + held;
                    let is_all = left == 64 && self::dead(of, &recoverer.seat) == 0;
                    if is_all {
                        Ok(())
                    } else {
                        Err(Violation::wrong("recover", 64, (left, found)))
                    }
                }),
            ];
            follow(&[Turn::steps(0, stands), Turn::rest(1), Turn::rest(0)], bodies)
                .unwrap_or_else(|found| panic!("{dies}, {stands}: {found}"));
            other.recover().unwrap();
            assert_eq!(self::dead(&world, &other.seat), 0, "{dies}, {stands}");
        }
    }

    #[test]
    fn a_death_is_recovered_once_whenever_a_newcomer_takes_the_seat() {
        let (coming, recovery) = (coming(), 2 * recovery());
        let places = (0..=recovery)
            .flat_map(|recovers| (0..=coming).map(move |comes| [recovers, comes]))
            .flat_map(|steps| [0, 1].map(|first| (first, steps)));
        for (first, steps) in places {
            let world = with_a_death();
            let mut other = world.sit(1);
            let mut members = 0;
            let (of, recoverer, found) = (&world, &mut other, &mut members);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || {
                    for _ in 0..2 {
                        *found += recoverer.recover()?.members;
                    }
                    Ok(())
                }),
                newcomer(of),
            ];
            let second = 1 - first;
            let script = interleaved((first, steps[first]), (second, steps[second]));
            let what = format!("{first} first, {steps:?}");
            follow(&script, bodies).unwrap_or_else(|found| panic!("{what}: {found}"));
            members += other.recover().unwrap().members;
            assert_eq!((members, dead(&world, &other.seat)), (1, 0), "{what}");
        }
    }

    /// A newcomer that takes the seat of a dead member dies with a block, and is replaced, too.
    #[test]
    fn two_deaths_on_a_seat_during_a_recovery() {
        for recovers in 0..=recovery() {
            let world = with_a_death();
            let mut other = world.sit(1);
            let (of, recoverer) = (&world, &mut other);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || recoverer.recover().map(drop)),
                Box::new(move || {
                    let mut newcomer = of.sit(0);
                    newcomer.alloc(1)?;
                    of.kill(0);
                    drop(of.sit(0));
                    Ok(())
                }),
            ];
            follow(&[Turn::steps(0, recovers), Turn::rest(1), Turn::rest(0)], bodies)
                .unwrap_or_else(|found| panic!("{recovers}: {found}"));
            is_found(&world, &mut other, &format!("{recovers}"));
        }
    }

    /// Whoever gets the lock of a seat on which another has come and died since does not take it.
    #[test]
    fn a_seat_is_not_taken_from_whom_nobody_saw_dead() {
        let world = with_a_death();
        assert!(world.ledger().sit(0).is_none());
        assert!(world.ledger().desert(0, &world) && world.ledger().sit(0).is_some());
        let member = world.sit(1);
        assert!(!world.ledger().desert(1, &world) && world.ledger().sit(1).is_none());
        world.ledger().leave(&member.seat);
        assert!(world.ledger().desert(1, &world) && world.ledger().sit(1).is_some());
    }

    #[test]
    fn a_newcomer_dies_as_it_comes() {
        let ends = (0..200).find(|&step| {
            let world = with_a_death();
            let came = die_before(step, || world.sit(0)).is_some();
            world.kill(0);
            let mut other = world.sit(1);
            assert!(dead(&world, &other.seat) > 0, "{step}");
            other.recover().unwrap();
            assert_eq!(dead(&world, &other.seat), 0, "{step}");
            world.assert_whole(&mut other, &format!("{step}"));
            // Of these deaths nothing is left.
            let last = world.sit(0);
            assert_eq!((dead(&world, &other.seat), dead(&world, &last.seat)), (0, 0), "{step}");
            came
        });
        assert!(ends.is_some());
    }
}
