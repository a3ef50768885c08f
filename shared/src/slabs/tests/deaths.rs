//! A member that dies at any step of what it does with slots, and a recoverer at any step of recovery.

use testkit::steered::die_before;
use testkit::{Violation, depth};

use crate::ledger::tests::world::{Hand, World};

/// More steps than anything here takes.
const MANY: u64 = 20_000;

type Act = fn(&mut Hand<'_>) -> Result<(), Violation>;

/// What a member is in the middle of when it dies, and what it held before.
const ACTS: [(&str, usize, Act); 6] = [
    ("makes a slab", 0, |hand| hand.alloc_slot()),
    ("allocates", 2, |hand| hand.alloc_slot()),
    ("makes another slab", 10, |hand| hand.alloc_slot()),
    ("frees", 2, |hand| hand.free_slot()),
    ("frees and trims", 1, |hand| {
        hand.free_slot()?;
        hand.trim();
        Ok(())
    }),
    ("trims beside slots in use", 12, |hand| {
        for _ in 0..2 {
            hand.free_slot()?;
        }
        hand.trim();
        hand.alloc_slot()
    }),
];

/// A member that holds so many slots, and dies before step `step` of `act`. `false`: it was done before.
fn dies(world: &World, slots: usize, act: Act, step: u64) -> bool {
    let mut hand = world.sit(0);
    (0..slots).for_each(|_| hand.alloc_slot().unwrap());
    let died = die_before(step, || act(&mut hand)).is_none();
    world.kill(0);
    died
}

/// Whether the member on a seat has a slot or a block in the owner maps.
fn has_something(world: &World, seat: usize) -> bool {
    [&world.slots, &world.oracle].into_iter().any(|map| {
        let mut holders = (0..map.units()).filter_map(|unit| map.holder_of(unit));
        holders.any(|holder| holder.lane == seat)
    })
}

#[test]
fn at_every_step_of_every_operation() {
    for (name, slots, act) in ACTS {
        let ends = (0..MANY).find(|&step| {
            let world = World::new(64);
            let mut other = world.sit(1);
            other.alloc_slot().unwrap();
            let died = dies(&world, slots, act, step);
            let what = format!("{name}, step {step}");
            let found = other.recover().unwrap();
            assert_eq!((found.members, found.pending), (1, 0), "{what}");
            // The survivor's own cursor is at its slab, and works.
            other.alloc_slot().unwrap();
            other.free_slot().unwrap();
            world.assert_whole(&mut other, &what);
            !died
        });
        assert!(ends.is_some_and(|ends| ends > 1), "{name}: {ends:?}");
    }
}

#[test]
fn at_every_step_of_recovery() {
    for (name, slots, act) in ACTS {
        // The steps of a slab's making and of trimming are many, and much alike.
        for step in (0..80).step_by(if slots < 3 { 1 } else { 7 }) {
            let recovers = (0..MANY).find(|&recovery| {
                let world = World::new(16);
                dies(&world, slots, act, step);
                let mut first = world.sit(1);
                let survived = die_before(recovery, || {
                    first.recover().unwrap();
                    first.trim();
                });
                let what = format!("{name}, step {step}, recovery {recovery}");
                // Otherwise nobody knows that there is something to recover.
                let is_counted = world.ledger().count_dead(&first.seat, &world) > 0;
                assert!(is_counted || !has_something(&world, 0), "{what}: buried too early");
                world.kill(1);
                let mut second = world.sit(2);
                world.assert_whole(&mut second, &what);
                survived.is_some()
            });
            assert!(recovers.is_some(), "{name}, {step}: recovery never ends");
        }
    }
}

/// A member stands still for good, alive: nobody waits, what it holds stays its own, and a slab that it has pinned
/// stays.
#[test]
fn stops_for_good() {
    for (name, slots, act) in ACTS {
        for stops_at in 0..80 {
            let world = World::new(64);
            let mut acting = world.sit(0);
            (0..slots).for_each(|_| acting.alloc_slot().unwrap());
            let _ = die_before(stops_at, || act(&mut acting));
            let mut other = world.sit(1);
            let what = format!("{name}, stopped at {stops_at}");
            let ended = testkit::steered::count_steps(8000, || {
                other.recover()?;
                other.trim();
                other.alloc_slot()?;
                other.free_slot()
            });
            ended.unwrap_or_else(|stuck| panic!("{what}: {stuck}")).0.unwrap();
            for &slot in &acting.slots {
                let owner = world.slabs().owner_at(slot).unwrap().unwrap().1;
                assert_eq!(owner, acting.seat.owner, "{what}: slot {slot}");
            }
            world.kill(0);
            world.assert_whole(&mut other, &what);
        }
    }
}

/// A recoverer does: what it has recovered so far stays its own.
#[test]
fn a_recoverer_stops_for_good() {
    for (name, slots, act) in ACTS {
        for stops_at in (0..800).step_by(if depth() == 1 { 3 } else { 1 }) {
            let world = World::new(64);
            dies(&world, slots, act, 30);
            let mut acting = world.sit(1);
            let _ = die_before(stops_at, || {
                acting.recover().unwrap();
                acting.trim();
            });
            let mut other = world.sit(2);
            let what = format!("{name}, recoverer stopped at {stops_at}");
            let ended = testkit::steered::count_steps(8000, || {
                other.recover()?;
                other.trim();
                other.alloc_slot()?;
                other.free_slot()?;
                other.alloc(0)?;
                other.free()
            });
            ended.unwrap_or_else(|stuck| panic!("{what}: {stuck}")).0.unwrap();
            world.kill(1);
            world.assert_whole(&mut other, &what);
        }
    }
}

/// What was sent is the giver's or the taker's when both are dead, whenever the taker died.
#[test]
fn at_every_step_of_a_take() {
    let ends = (0..MANY).find(|&step| {
        let world = World::new(16);
        let mut giver = world.sit(0);
        giver.alloc_slot().unwrap();
        giver.alloc(1).unwrap();
        let (slot, block) = (giver.slots[0], giver.held[0].index);
        let taker = world.sit(1);
        let took = die_before(step, || {
            world.slabs().take(&taker.seat, slot, None).unwrap().unwrap();
            world.ledger().take(&taker.seat, block, None).unwrap();
        });
        world.kill(0);
        world.kill(1);
        let mut other = world.sit(2);
        let found = other.recover().unwrap();
        assert_eq!((found.kept + found.freed, found.pending), (2, 0), "{step}");
        world.assert_whole(&mut other, &format!("take, step {step}"));
        took.is_some()
    });
    assert!(ends.is_some_and(|ends| ends > 3), "{ends:?}");
}
