//! Offsets that are none, and words that somebody has written over.

use std::sync::atomic::Ordering;

use nbbs::sync::Word;
use proptest::prelude::*;

use crate::ledger::tests::world::World;
use crate::ledger::{Fate, NotHeld, Owner};

#[test]
fn what_is_no_slot_of_the_members_is_refused() {
    let world = World::new(64);
    let (mut hand, other) = (world.sit(0), world.sit(1));
    hand.alloc_slot().unwrap();
    hand.alloc(0).unwrap();
    let (slot, slabs) = (hand.slots[0], world.slabs());
    let free = |at| slabs.free(&other.seat, &other.cursors, at);
    assert_eq!(free(slot), Some(Err(NotHeld::By(hand.seat.owner))));
    assert_eq!(free(slot + 8), Some(Err(NotHeld::NoSlot(16))));
    assert_eq!(free(slot - 8), Some(Err(NotHeld::NoSlot(16))));
    assert_eq!(free(slot - 16), Some(Err(NotHeld::By(Owner::NOBODY))));
    // Among the words before the slots.
    assert_eq!(free(slot & !255), Some(Err(NotHeld::NoSlot(16))));
    assert_eq!(free(hand.held[0].index * 64), None);
    assert_eq!(free(u64::MAX), None);
    assert_eq!(slabs.take(&other.seat, slot - 16, None), Some(Err(NotHeld::By(Owner::NOBODY))));
    assert_eq!(slabs.take(&other.seat, slot, None), Some(Ok(hand.seat.owner)));
    assert_eq!(
        slabs.free(&hand.seat, &hand.cursors, slot),
        Some(Err(NotHeld::By(other.seat.owner)))
    );
    // The slab itself is nobody's who could free or take it.
    let slab = slot / 256 * 4;
    assert!(slabs.ledger.free(&hand.seat, slab).is_err());
    assert!(slabs.ledger.take(&hand.seat, slab, None).is_err());
    assert_eq!(free(slot), Some(Ok(16)));
    assert_eq!(free(slot), Some(Err(NotHeld::By(Owner::NOBODY))));
}

proptest! {
    /// No panic, no endless loop, and nothing of the member's is recovered, or handed out again.
    #[test]
    fn any_words(
        writes in prop::collection::vec((0..4_usize, any::<prop::sample::Index>(), prop_oneof![
            any::<u64>(),
            (0..30_usize, 0..4_u64).prop_map(|(class, order)| Owner::slab(class).after(order << 24)),
            Just(Owner::CLOSED.after(2 << 24)),
        ]), 0..20),
    ) {
        let world = World::new(64);
        let mut hand = world.sit(0);
        (0..3).for_each(|_| hand.alloc_slot().unwrap());
        let mine = hand.slots.clone();
        let slab = mine[0] / 256;
        for (part, at, value) in writes {
            if let Some(word) = world.word(part, &at, slab) {
                word.store(value, Ordering::Relaxed);
            }
        }
        let mut seen = Vec::new();
        world.slabs().recover(&hand.seat, &world, |at, _| {
            seen.push(at);
            Fate::Keep
        });
        prop_assert!(seen.iter().all(|at| !mine.contains(at)));
        let again = world.slabs().alloc(&hand.seat, &hand.cursors, 0);
        prop_assert!(again.is_none_or(|at| !mine.contains(&at)));
        hand.trim();
        for at in mine {
            prop_assert_eq!(world.slabs().free(&hand.seat, &hand.cursors, at), Some(Ok(16)));
        }
    }
}
