//! Who goes for a slot that was sent to him, or goes back to one that he recovered, and is overtaken: by the slot's new
//! holder, by a trim, by plain data in what was a slab.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use testkit::program::Body;
use testkit::steered::{Turn, die_before, follow};

use crate::ledger::tests::world::World;
use crate::ledger::{Fate, NotHeld, Owner};

/// The order of a slab, and its units.
const ORDER: u32 = 2;
const UNITS: u64 = 1 << ORDER;

/// A world in which the member on seat 0 has died with so many slots, and where they begin.
fn with_slots_of_the_dead(slots: usize) -> (World, Vec<u64>) {
    let world = World::new(64);
    let mut dead = world.sit(0);
    (0..slots).for_each(|_| dead.alloc_slot().unwrap());
    let slots = dead.slots.clone();
    drop(dead);
    world.kill(0);
    (world, slots)
}

/// Allocates where the slab was, and writes what looks like tags of the member on a seat.
fn write_tags(world: &World, seat: usize) -> (u64, u64) {
    let hand = world.sit(3);
    let block = world.ledger().alloc(&hand.seat, ORDER).unwrap().unwrap();
    let tag = Owner::new(seat, 1).after(5 << 30);
    world.fill(block, UNITS, tag);
    (block, tag)
}

/// Stops `stray` before a step until `trims` has returned the slab, if it has, and a block was written where it was.
/// Checks that `stray` writes nothing there, and returns whether there was such a block.
fn overtake(
    world: &World,
    step: u64,
    stray: impl FnOnce() + Send,
    trims: impl FnOnce() -> bool + Send,
) -> bool {
    let (block, tag) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
    let (was, held) = (&block, &tag);
    let bodies: Vec<Body<'_>> = vec![
        Box::new(move || {
            stray();
            Ok(())
        }),
        Box::new(move || {
            if trims() {
                let (block, tag) = write_tags(world, 1);
                was.store(block, SeqCst);
                held.store(tag, SeqCst);
            }
            Ok(())
        }),
    ];
    follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
    let block = block.into_inner();
    assert!(block == u64::MAX || world.is_full_of(block, UNITS, tag.into_inner()), "{step}");
    block != u64::MAX
}

#[test]
fn who_takes_a_slot_writes_into_no_block() {
    for step in 0..16 {
        let (world, slots) = with_slots_of_the_dead(1);
        let (recoverer, taker) = (world.sit(1), world.sit(2));
        let (of, at) = (&world, slots[0]);
        let stray = move || _ = of.slabs().take(&taker.seat, at, None);
        overtake(&world, step, stray, move || {
            of.slabs().recover(&recoverer.seat, of, |_, _| Fate::Free);
            recoverer.trim() > 0
        });
    }
}

#[test]
fn who_asks_whose_a_slot_is_is_told_of_no_data() {
    let mut answers = 0;
    for step in 0..16 {
        let world = World::new(64);
        let mut trimmer = world.sit(1);
        trimmer.alloc_slot().unwrap();
        let (of, at, told) = (&world, trimmer.slots[0], &mut answers);
        trimmer.free_slot().unwrap();
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || {
                let owner = of.slabs().owner_at(at).map(|found| found.unwrap().1);
                assert!(owner.is_none_or(|owner| owner == Owner::NOBODY), "{step}: {owner:?}");
                *told += usize::from(owner.is_some());
                Ok(())
            }),
            Box::new(move || {
                assert_eq!(trimmer.trim(), 1);
                assert_eq!(write_tags(of, 2).0 * 64 / 256, at / 256);
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies)
            .unwrap_or_else(|found| panic!("{step}: {found}"));
    }
    assert!(answers > 0);
}

#[test]
fn nobody_takes_a_slot_from_who_closes_its_slab() {
    for step in 0..400 {
        let (world, slots) = with_slots_of_the_dead(1);
        let (trimmer, taker) = (world.sit(1), world.sit(2));
        world.slabs().recover(&trimmer.seat, &world, |_, _| Fate::Free);
        let took = AtomicBool::new(false);
        let (of, at, got) = (&world, slots[0], &took);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || {
                got.store(matches!(of.slabs().take(&taker.seat, at, None), Some(Ok(_))), SeqCst);
                Ok(())
            }),
            Box::new(move || {
                trimmer.trim();
                Ok(())
            }),
        ];
        follow(&[Turn::steps(1, step), Turn::rest(0), Turn::rest(1)], bodies).unwrap();
        assert!(!took.into_inner(), "{step}: nobody had the slot");
    }
}

#[test]
fn who_recovered_a_slot_frees_no_word_of_a_block() {
    let (world, slots) = with_slots_of_the_dead(1);
    let (recoverer, taker) = (world.sit(1), world.sit(2));
    let mut written = (0, 0);
    let found = world.slabs().recover(&recoverer.seat, &world, |_, _| {
        assert!(matches!(world.slabs().take(&taker.seat, slots[0], None), Some(Ok(_))));
        assert!(matches!(world.slabs().free(&taker.seat, &taker.cursors, slots[0]), Some(Ok(16))));
        assert_eq!(taker.trim(), 1);
        written = write_tags(&world, 1);
        Fate::Free
    });
    assert_eq!(found.freed, 0);
    assert!(world.is_full_of(written.0, UNITS, written.1));
}

#[test]
fn what_a_recoverer_was_given_meanwhile_stays_its_own() {
    let (world, slots) = with_slots_of_the_dead(1);
    let (recoverer, taker) = (world.sit(1), world.sit(2));
    let mut given = 0;
    world.slabs().recover(&recoverer.seat, &world, |_, _| {
        assert!(matches!(world.slabs().take(&taker.seat, slots[0], None), Some(Ok(_))));
        assert!(matches!(world.slabs().free(&taker.seat, &taker.cursors, slots[0]), Some(Ok(16))));
        given = world.slabs().alloc(&recoverer.seat, &recoverer.cursors, 0).unwrap();
        Fate::Free
    });
    let (_, owner) = world.slabs().owner_at(given).unwrap().unwrap();
    assert_eq!((given, owner), (slots[0], recoverer.seat.owner));
}

#[test]
fn who_frees_a_slot_twice_writes_into_no_block() {
    let mut met = 0;
    for step in 0..16 {
        let (world, slots) = with_slots_of_the_dead(1);
        let (member, trimmer) = (world.sit(1), world.sit(2));
        // Not by its cursor, which would keep the slab.
        world.slabs().recover(&member.seat, &world, |_, _| Fate::Keep);
        assert_eq!(world.slabs().free(&member.seat, &member.cursors, slots[0]), Some(Ok(16)));
        let (of, at) = (&world, slots[0]);
        let stray = move || _ = of.slabs().free(&member.seat, &member.cursors, at);
        met += usize::from(overtake(&world, step, stray, move || trimmer.trim() > 0));
    }
    assert!(met > 0, "the slab always stayed");
}

#[test]
fn who_names_the_giver_takes_from_nobody_else() {
    let world = World::new(64);
    let mut giver = world.sit(0);
    giver.alloc_slot().unwrap();
    giver.alloc(1).unwrap();
    let (slot, block) = (giver.slots[0], giver.held[0].index);
    let (taker, late) = (world.sit(1), world.sit(2));
    let [from, to, other] = [&giver, &taker, &late].map(|hand| hand.seat.owner);
    let take = |seat, named| {
        let taken = world.ledger().take(seat, block, Some(named));
        assert_eq!(world.slabs().take(seat, slot, Some(named)), Some(taken));
        taken
    };
    assert_eq!(take(&late.seat, other), Err(NotHeld::By(from)));
    assert_eq!(take(&late.seat, Owner::NOBODY), Err(NotHeld::By(from)));
    assert_eq!(take(&taker.seat, from), Ok(from));
    assert_eq!(take(&taker.seat, from), Ok(to));
    assert_eq!(take(&late.seat, from), Err(NotHeld::By(to)));
    assert_eq!(take(&late.seat, to), Ok(to));
}

#[test]
fn so_does_a_block() {
    let world = World::new(8);
    let dead = world.sit(0);
    let block = world.ledger().alloc(&dead.seat, 3).unwrap().unwrap();
    drop(dead);
    world.kill(0);
    let (recoverer, taker) = (world.sit(1), world.sit(2));
    world.slabs().recover(&recoverer.seat, &world, |_, _| {
        world.ledger().take(&taker.seat, block, None).unwrap();
        world.ledger().free(&taker.seat, block).unwrap();
        assert_eq!(world.ledger().alloc(&recoverer.seat, 3).unwrap(), Ok(block));
        Fate::Free
    });
    assert_eq!(world.ledger().owner_at(block), Some(recoverer.seat.owner));
}

#[test]
fn so_does_a_block_that_another_call_was_about() {
    let world = World::new(8);
    let dead = world.sit(0);
    let blocks = [0, 1].map(|_| world.ledger().alloc(&dead.seat, 2).unwrap().unwrap());
    drop(dead);
    world.kill(0);
    let recoverer = world.sit(1);
    let mut asked = Vec::new();
    world.slabs().recover(&recoverer.seat, &world, |at, _| {
        if asked.is_empty() {
            let other = blocks.into_iter().find(|&block| block << 6 != at).unwrap();
            world.ledger().free(&recoverer.seat, other).unwrap();
            assert_eq!(world.ledger().alloc(&recoverer.seat, 2).unwrap(), Ok(other));
        }
        asked.push(at);
        Fate::Free
    });
    assert_eq!((asked.len(), world.ledger().buddy.count_free()), (1, 4));
}

/// The slab of a slot that was recovered is taken apart and made again, and its first slot is the recoverer's once
/// more.
#[test]
fn so_does_a_slot_of_a_slab_that_was_made_again() {
    for rounds in 0..8 {
        let world = World::new(64);
        let dead = world.sit(0);
        let alloc = || world.slabs().alloc(&dead.seat, &dead.cursors, 0).unwrap();
        // Enough to fill a slab, and one that changes hands in the next.
        let full: Vec<u64> = (0..10).map(|_| alloc()).collect();
        let mut slot = alloc();
        for _ in 0..rounds {
            assert!(matches!(world.slabs().free(&dead.seat, &dead.cursors, slot), Some(Ok(16))));
            slot = alloc();
        }
        drop(dead);
        world.kill(0);
        let recoverer = world.sit(1);
        let mut asked = Vec::new();
        world.slabs().recover(&recoverer.seat, &world, |at, _| {
            if asked.is_empty() && at != slot {
                let freed = world.slabs().free(&recoverer.seat, &recoverer.cursors, slot);
                assert!(matches!(freed, Some(Ok(16))));
                assert_eq!(recoverer.trim(), 1);
                let again = world.slabs().alloc(&recoverer.seat, &recoverer.cursors, 0);
                assert_eq!(again, Some(slot), "{rounds}");
            }
            asked.push(at);
            Fate::Keep
        });
        assert_eq!(asked.len(), full.len(), "{rounds}: {slot} in {asked:?}");
    }
}

/// A slab is closed while a member has a cursor there, which then recovers.
#[test]
fn recovery_frees_no_slab_under_its_own_cursor() {
    for step in 0..400 {
        let world = World::new(16);
        let (mut first, mut second) = (world.sit(1), world.sit(2));
        second.alloc_slot().unwrap();
        second.free_slot().unwrap();
        world.hint_at(world.slabs().ledger.blocks()[0].index);
        {
            let (first, second) = (&mut first, &mut second);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || {
                    first.alloc_slot()?;
                    first.free_slot()
                }),
                Box::new(move || {
                    second.trim();
                    Ok(())
                }),
            ];
            follow(&[Turn::steps(1, step), Turn::rest(0), Turn::rest(1)], bodies).unwrap();
        }
        world.slabs().recover(&first.seat, &world, |_, _| Fate::Free);
        second.alloc(ORDER).unwrap();
        second.scribble();
        first.alloc_slot().unwrap();
        second.check_scribble().unwrap_or_else(|found| panic!("{step}: {found}"));
    }
}

#[test]
fn nobody_is_asked_about_what_is_anothers() {
    let (world, slots) = with_slots_of_the_dead(2);
    let (recoverer, taker, other) = (world.sit(1), world.sit(2), world.sit(3));
    let mut asked = Vec::new();
    world.slabs().recover(&recoverer.seat, &world, |at, _| {
        if asked.is_empty() {
            let second = slots.iter().copied().find(|&slot| slot != at).unwrap();
            assert!(matches!(world.slabs().take(&taker.seat, second, None), Some(Ok(_))));
            assert!(matches!(
                world.slabs().free(&taker.seat, &taker.cursors, second),
                Some(Ok(16))
            ));
            world.hint_at(0);
            assert_eq!(world.slabs().alloc(&other.seat, &other.cursors, 0), Some(second));
        }
        asked.push(at);
        Fate::Keep
    });
    assert_eq!(asked.len(), 1);
}

#[test]
fn a_new_slab_is_not_trimmed_away_from_who_made_it() {
    for step in 0..200 {
        let world = World::new(64);
        let (maker, trimmer) = (world.sit(1), world.sit(2));
        let got = AtomicBool::new(false);
        let (of, has) = (&world, &got);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || {
                has.store(of.slabs().alloc(&maker.seat, &maker.cursors, 0).is_some(), SeqCst);
                Ok(())
            }),
            Box::new(move || {
                trimmer.trim();
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
        assert!(got.into_inner(), "{step}");
    }
}

#[test]
fn recovery_ends_the_trim_of_the_dead() {
    for step in 0.. {
        let world = World::new(64);
        let mut dead = world.sit(0);
        dead.alloc_slot().unwrap();
        dead.free_slot().unwrap();
        let is_over = die_before(step, || dead.trim()).is_some();
        drop(dead);
        world.kill(0);
        let recoverer = world.sit(1);
        let found = world.slabs().recover(&recoverer.seat, &world, |_, _| Fate::Free);
        assert_eq!((found.pending, found.damaged), (0, 0), "{step}");
        let is_closed = |found: &crate::ledger::Found| Owner::of(found.tag) == Owner::CLOSED;
        assert!(!world.ledger().blocks().iter().any(is_closed), "{step}");
        if is_over {
            break;
        }
    }
}
