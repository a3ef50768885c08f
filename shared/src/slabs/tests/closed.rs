//! A slab is closed while a recoverer looks at it, by a trimmer that is gone when the recoverer reads its marks; and
//! what keeps a slab from being closed.

use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Turn, die_before, follow};

use super::races::steps_of_a_trim;
use crate::ledger::Fate;
use crate::ledger::tests::world::{Hand, World, steps_of};

/// The order of a slab, and the bytes of its units.
const ORDER: u32 = 2;
const BYTES: u64 = 64 << ORDER;

/// The recoverer has a cursor in the slab, so that this stays memory of a slab, though a closed one.
#[test]
fn by_one_who_left() {
    at_any_step(|world, trimmer| {
        world.slabs().unpin_all(trimmer.seat.number);
        world.ledger().leave(&trimmer.seat);
        world.kill(trimmer.seat.number);
    });
}

#[test]
fn by_one_who_was_killed_and_recovered() {
    at_any_step(|world, trimmer| {
        world.kill(trimmer.seat.number);
        world.sit(3).recover().unwrap();
    });
}

/// Whatever a trimmer leaves that dies, no slot of it was anybody's.
#[test]
fn nobody_is_asked_about_slots_that_were_free() {
    for step in 0..400 {
        let world = World::new(16);
        let mut trimmer = world.sit(1);
        trimmer.alloc_slot().unwrap();
        trimmer.free_slot().unwrap();
        let _ = die_before(step, || trimmer.trim());
        world.kill(1);
        world.slabs().recover(&world.sit(2).seat, &world, |at, bytes| {
            assert!(bytes >= 64, "{step}: slot {at} was free");
            Fate::Free
        });
    }
}

#[test]
fn a_newcomer_has_no_pins_of_who_was_before() {
    let world = World::new(16);
    let mut dies = world.sit(1);
    dies.alloc_slot().unwrap();
    dies.free_slot().unwrap();
    world.kill(1);
    let (_newcomer, other) = (world.sit(1), world.sit(2));
    assert_eq!(other.trim(), 1);
}

#[test]
fn nor_has_a_newcomer_that_stands_still() {
    for stands in 0..64 {
        let world = World::new(16);
        let mut dies = world.sit(1);
        dies.alloc_slot().unwrap();
        dies.free_slot().unwrap();
        world.kill(1);
        let (of, other) = (&world, world.sit(2));
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || {
                of.sit(1);
                Ok(())
            }),
            Box::new(move || match other.trim() {
                1 => Ok(()),
                slabs => Err(Violation::wrong("trim", 1, slabs)),
            }),
        ];
        follow(&[Turn::steps(0, stands), Turn::rest(1), Turn::rest(0)], bodies)
            .unwrap_or_else(|found| panic!("{stands}: {found}"));
    }
}

/// Whoever comes after does not look there again.
#[test]
fn a_hint_that_led_to_nothing_goes() {
    let world = World::new(16);
    let (mut first, mut second) = (world.sit(1), world.sit(2));
    // As many as there are.
    (0..10).for_each(|_| first.alloc_slot().unwrap());
    let slab = (first.slots[0] / BYTES) << ORDER;
    world.hint_at(slab);
    second.alloc_slot().unwrap();
    assert_ne!((second.slots[0] / BYTES) << ORDER, slab);
    assert_eq!(world.hint(), None);
}

/// Nor does whoever looked there, and stands still afterwards, keep the slab that is made there.
#[test]
fn a_hint_that_led_to_nothing_keeps_no_slab() {
    let mut made = 0;
    for step in 0.. {
        let world = World::new(16);
        let (mut first, mut second) = (world.sit(1), world.sit(2));
        let mut makes_and_trims = || {
            second.alloc_slot().unwrap();
            let slab = (second.slots[0] / BYTES) << ORDER;
            second.free_slot().unwrap();
            assert_eq!(second.trim(), 1, "{step}");
            slab
        };
        let slab = makes_and_trims();
        world.hint_at(slab);
        let is_over = die_before(step, || first.alloc_slot()).is_some();
        if world.hint().is_none() {
            made += usize::from(makes_and_trims() == slab);
        }
        if is_over {
            break;
        }
    }
    assert!(made > 0, "it was never there");
}

/// The recoverer stops at any step, and the trimmer closes the slab, and is gone.
fn at_any_step(goes: impl Fn(&World, &Hand<'_>) + Sync) {
    let recovery = steps_of_a_recovery();
    for trims in (0..=steps_of_a_trim()).step_by(10) {
        for recovers in (0..=recovery).step_by(3) {
            let world = World::new(16);
            let recoverer = stopped(&world, &goes, trims, recovers);
            let Some(&slot) = recoverer.slots.first() else { continue };
            recoverer.trim();
            let mut other = world.sit(0);
            let what = format!("{trims}, {recovers}: slot {slot}");
            for _ in 0..4 {
                other.alloc(ORDER).unwrap();
            }
            let below = other.held.iter().any(|block| block.index * 64 == slot / BYTES * BYTES);
            assert!(!below, "{what} is in another's block");
            let freed = world.slabs().free(&recoverer.seat, &recoverer.cursors, slot);
            assert!(matches!(freed, Some(Ok(_))), "{what}: {freed:?}");
        }
    }
}

fn recover(hand: &mut Hand<'_>) -> Result<(), Violation> {
    hand.alloc_slot()?;
    hand.free_slot()?;
    hand.recover()?;
    hand.alloc_slot()
}

/// The steps of a recoverer that nobody overtakes.
fn steps_of_a_recovery() -> u64 {
    steps_of(|steps| {
        let world = World::new(16);
        let mut hand = world.sit(1);
        die_before(steps, || recover(&mut hand))
    })
}

/// The recoverer, who has allocated a slot after all that.
fn stopped<'w>(
    world: &'w World,
    goes: &(impl Fn(&World, &Hand<'_>) + Sync),
    trims: u64,
    recovers: u64,
) -> Hand<'w> {
    let (mut recoverer, mut trimmer) = (world.sit(1), world.sit(2));
    trimmer.alloc_slot().unwrap();
    trimmer.free_slot().unwrap();
    world.hint_at(world.slabs().ledger.blocks()[0].index);
    let recovering = &mut recoverer;
    let bodies: Vec<Body<'_>> = vec![
        Box::new(move || recover(recovering)),
        Box::new(move || {
            trimmer.trim();
            goes(world, &trimmer);
            Ok(())
        }),
    ];
    let script = [Turn::steps(1, trims), Turn::steps(0, recovers), Turn::rest(1), Turn::rest(0)];
    follow(&script, bodies).unwrap_or_else(|found| panic!("{trims}, {recovers}: {found}"));
    recoverer
}
