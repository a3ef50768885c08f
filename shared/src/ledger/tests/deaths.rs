//! A member that dies at any step of any operation, and a recoverer that dies at any step of recovery.

use testkit::Violation;
use testkit::steered::die_before;

use super::world::{Hand, World};

const UNITS: [u64; 4] = [8, 33, 64, 600];
const SCENES: [&[u32]; 4] = [&[], &[0], &[0, 3], &[4, 0, 2]];

/// More steps than anything here takes.
const MANY: u64 = 20_000;

type Act = fn(&mut Hand<'_>) -> Result<(), Violation>;

/// What a member is in the middle of when it dies.
const ACTS: [(&str, Act); 6] = [
    ("allocates order 0", |hand| hand.alloc(0)),
    ("allocates order 2", |hand| hand.alloc(2)),
    ("allocates order 5", |hand| hand.alloc(5)),
    ("allocates order 9", |hand| hand.alloc(9)),
    ("frees", |hand| hand.free()),
    ("frees and allocates", |hand| {
        hand.free()?;
        hand.alloc(0)?;
        hand.alloc(3)
    }),
];

/// A member that holds `scene`, and dies before step `step` of `act`. `false`: it was done before.
fn dies(world: &World, scene: &[u32], act: Act, step: u64) -> bool {
    let mut hand = world.sit(0);
    scene.iter().for_each(|&order| hand.alloc(order).unwrap());
    let died = die_before(step, || act(&mut hand)).is_none();
    world.kill(0);
    died
}

#[test]
fn at_every_step_of_every_operation() {
    for units in UNITS {
        for scene in SCENES {
            for (name, act) in ACTS {
                let ends = (0..MANY).find(|&step| {
                    let world = World::new(units);
                    let mut other = world.sit(1);
                    other.alloc(1).unwrap();
                    let died = dies(&world, scene, act, step);
                    let what = format!("{units} units, {scene:?}, {name}, step {step}");
                    let found = other.recover().unwrap();
                    assert_eq!((found.members, found.pending), (1, 0), "{what}");
                    // All of it at once: nothing lies below what the other holds.
                    let held: u64 = other.held.iter().map(|block| block.len()).sum();
                    assert_eq!(world.ledger().buddy.count_free(), units - held, "{what}");
                    world.assert_whole(&mut other, &what);
                    !died
                });
                assert!(ends.is_some(), "{units} units, {scene:?}, {name}: never ends");
            }
        }
    }
}

#[test]
fn at_every_step_of_recovery() {
    for (name, act) in ACTS {
        for units in [8, 64] {
            let ends = (0..MANY).find(|&step| {
                let mut died = false;
                let recovers = (0..MANY).find(|&recovery| {
                    let world = World::new(units);
                    died = dies(&world, &[0, 3], act, step);
                    let mut first = world.sit(1);
                    let survived = die_before(recovery, || first.recover().unwrap());
                    world.kill(1);
                    let mut second = world.sit(2);
                    let what = format!("{units} units, {name}, step {step}, recovery {recovery}");
                    world.assert_whole(&mut second, &what);
                    survived.is_some()
                });
                assert!(recovers.is_some(), "{units} units, {name}, {step}: recovery never ends");
                !died
            });
            assert!(ends.is_some(), "{units} units, {name}: never ends");
        }
    }
}

/// A seat is taken again before anybody has recovered who had it.
#[test]
fn a_seat_that_is_taken_again() {
    for step in 0..40 {
        let world = World::new(64);
        dies(&world, &[0, 3], |hand| hand.free(), step);
        let mut heir = world.sit(0);
        heir.alloc(2).unwrap();
        let mut other = world.sit(1);
        let found = other.recover().unwrap();
        assert_eq!(found.members, 1);
        let held: u64 = other.held.iter().map(|block| block.len()).sum();
        assert_eq!(world.ledger().buddy.count_free(), 60 - held, "step {step}");
        heir.free().unwrap();
        world.assert_whole(&mut other, &format!("step {step}"));
    }
}

/// Who leaves holding something is recovered, too.
#[test]
fn a_member_that_leaves() {
    let world = World::new(64);
    let mut hand = world.sit(0);
    hand.alloc(3).unwrap();
    world.ledger().leave(&hand.seat);
    world.kill(0);
    let mut other = world.sit(1);
    let found = other.recover().unwrap();
    assert_eq!(found.freed + found.kept, 1);
    world.assert_whole(&mut other, "left");
}
