//! A slab that is closed while a recoverer looks at it, by one who is gone when the recoverer reads what he wrote into its words.

use testkit::program::Body;
use testkit::steered::{Turn, follow};

use crate::ledger::tests::world::{Hand, World};

/// The order of a slab, and the bytes of its units.
const ORDER: u32 = 2;
const BYTES: u64 = 64 << ORDER;

/// The recoverer has a cursor in the slab, so that this stays memory of a slab, though a closed one.
#[test]
fn by_one_who_left() {
    at_any_step(|world, trimmer| {
        world.slabs().unpin_all(&trimmer.seat);
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

/// The recoverer stops at any step, and the trimmer closes the slab, and is gone.
fn at_any_step(goes: impl Fn(&World, &Hand<'_>) + Sync) {
    // A trim takes 52 steps before it has closed the slab, of which all slots are as any of them.
    for trims in (60..200).step_by(20) {
        for recovers in 0..120 {
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
        Box::new(move || {
            recovering.alloc_slot()?;
            recovering.free_slot()?;
            recovering.recover()?;
            recovering.alloc_slot()
        }),
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
