//! Words that somebody has written over: no panic, no endless loop, and nothing of what others hold is recovered.

use std::sync::atomic::Ordering;

use nbbs::sync::Word;
use proptest::prelude::*;

use super::world::{SEATS, World};
use crate::ledger::{Fate, NotHeld, Owner};

proptest! {
    #[test]
    fn any_tags_and_turns(
        tags in prop::collection::vec((0..64_usize, any::<u64>()), 0..20),
        turns in prop::collection::vec((0..SEATS * 8, any::<u64>()), 0..6),
        alive: u64,
    ) {
        let world = World::new(64);
        let mut hand = world.sit(0);
        for order in [0, 3, 4] {
            hand.alloc(order).unwrap();
        }
        let mine: Vec<u64> = hand.held.iter().map(|block| block.index).collect();
        for (unit, value) in tags {
            if !mine.contains(&(unit as u64)) {
                world.tags[unit].store(value, Ordering::Relaxed);
            }
        }
        for (word, value) in turns {
            if word >= 8 {
                world.turns[word].store(value, Ordering::Relaxed);
            }
        }
        (0..SEATS).filter(|seat| alive >> seat & 1 == 0).for_each(|seat| world.kill(seat));
        // The member itself lives.
        let mut seen = Vec::new();
        world.slabs().recover(&hand.seat, &world, |at, _| {
            seen.push(at / 64);
            Fate::Keep
        });
        prop_assert!(seen.iter().all(|index| !mine.contains(index)));
        while !hand.held.is_empty() {
            hand.free().unwrap();
        }
    }
}

#[test]
fn tags_that_lie_are_counted() {
    let world = World::new(64);
    let mut hand = world.sit(0);
    hand.alloc(0).unwrap();
    hand.alloc(0).unwrap();
    let [first, second] = hand.held[..] else { panic!("two blocks") };
    // A seat that there is not.
    world.tags[first.index as usize].store(Owner::new(900, 1).after(0), Ordering::Relaxed);
    // A block that there is not.
    let free = (0..64).find(|unit| world.oracle.is_free(*unit)).unwrap();
    world.tags[free as usize].store(hand.seat.owner.after(0), Ordering::Relaxed);
    let ledger = world.ledger();
    assert_eq!(ledger.free(&hand.seat, free), Err(NotHeld::Damaged));
    assert_eq!(ledger.free(&hand.seat, first.index), Err(NotHeld::By(Owner::new(900, 1))));
    let other = world.sit(1);
    assert_eq!(world.slabs().recover(&other.seat, &world, |_, _| Fate::Free).damaged, 1);
    assert_eq!(ledger.free(&hand.seat, second.index), Ok(1));
    assert_eq!(ledger.free(&hand.seat, second.index), Err(NotHeld::By(Owner::NOBODY)));
    assert_eq!(ledger.free(&hand.seat, 64), Err(NotHeld::Outside));
    assert_eq!(ledger.free(&hand.seat, u64::MAX), Err(NotHeld::Outside));
    assert_eq!(ledger.take(&other.seat, u64::MAX, None), Err(NotHeld::Outside));
}

/// A recoverer frees the block that the tag names, and does not look for what else may be there.
#[test]
fn what_is_no_block_any_more_stays() {
    let world = World::new(64);
    let mut dead = world.sit(0);
    dead.alloc(2).unwrap();
    world.kill(0);
    let other = world.sit(1);
    let ledger = world.ledger();
    let found = world.slabs().recover(&other.seat, &world, |at, _| {
        ledger.buddy.on(0).shrink(at / 64, 3).unwrap();
        Fate::Free
    });
    assert_eq!((found.freed, found.damaged), (0, 1));
    assert_eq!(ledger.buddy.count_free(), 61);
}
