//! A block that is seen, goes, and is claimed anew by another before the recoverer swaps its tag: it looks like one
//! that stayed, and is not.

use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Turn, follow};

use super::world::{Hand, World};
use crate::ledger::{Deaths, Fate, Found, Owner};

/// A recoverer, seat 0, settles what it has found. Returns an overlap, if it then has what another has.
fn settle(
    hand: &mut Hand<'_>,
    world: &World,
    found: Found,
    deaths: &Deaths,
) -> Result<(), Violation> {
    let settled = world.ledger().settle(&hand.seat, world, &[found], deaths);
    for taken in settled.taken {
        hand.held.push(world.oracle.take(hand.seat.number, taken.index, 0)?);
    }
    Ok(())
}

/// Runs the lanes' bodies by a script, the recoverer's first: it has found a unit with this tag.
fn play<'w>(
    world: &'w World,
    mut recoverer: Hand<'w>,
    (index, tag): (u64, u64),
    others: Vec<Body<'_>>,
    script: &[Turn],
) -> Result<(), Violation> {
    let deaths = world.ledger().deaths(&recoverer.seat, world);
    let found = Found { index, tag };
    let settles: Body<'_> = Box::new(move || settle(&mut recoverer, world, found, &deaths));
    let bodies = std::iter::once(settles).chain(others).collect();
    follow(script, bodies)
}

/// A free is seen on its way: the tag is nobody's, the block there. It ends, and the next allocation claims the same
/// unit.
#[test]
fn by_a_free() {
    for frees in 0..12 {
        for looks in 0..70 {
            for claims in 0..16 {
                let world = World::new(64);
                let (recoverer, mut member) = (world.sit(0), world.sit(1));
                member.alloc(0).unwrap();
                // The first of its steps are taken before the recoverer looks: until the tag is nobody's.
                let script = [
                    Turn::steps(1, frees),
                    Turn::steps(0, looks),
                    Turn::steps(1, claims),
                    Turn::rest(0),
                    Turn::rest(1),
                ];
                let works: Body<'_> = Box::new(move || {
                    member.free()?;
                    member.alloc(0)
                });
                let tag = Owner::NOBODY.after(world.ledger().tag_of(0).unwrap());
                let ended = play(&world, recoverer, (0, tag), vec![works], &script);
                ended.unwrap_or_else(|found| panic!("{frees}, {looks}, {claims}: {found}"));
            }
        }
    }
}

/// A claim by an old cursor meets a larger block. That is freed, and the unit comes to light; then the claim is taken
/// back, and another member claims the unit, whom the recoverer has seen at rest just before.
#[test]
fn by_a_claim_that_is_undone() {
    const SECOND: usize = 1;
    const LARGE: usize = 2;
    const FIRST: usize = 3;
    let mut undone = 0_u64;
    for looks in 4..8 {
        for claims in 2..20 {
            for vouches in 2..40 {
                for undoes in [1, 3, 6, 9, 12, 16] {
                    for anew in [4, 6, 8] {
                        let world = World::new(64);
                        let (recoverer, mut second) = (world.sit(0), world.sit(SECOND));
                        let (mut large, mut first) = (world.sit(LARGE), world.sit(FIRST));
                        // Both begin where the large block does not: it has another unit's tag.
                        large.alloc(5).unwrap();
                        first.alloc(0).unwrap();
                        let unit = first.held[0].index;
                        assert_eq!(unit, 32);
                        first.free().unwrap();
                        second.alloc(0).unwrap();
                        second.free().unwrap();
                        large.free().unwrap();
                        large.alloc(6).unwrap();
                        let script = [
                            Turn::steps(0, looks),
                            Turn::steps(FIRST, claims),
                            Turn::rest(LARGE),
                            Turn::steps(0, vouches),
                            Turn::steps(FIRST, undoes),
                            Turn::steps(SECOND, anew),
                            Turn::rest(FIRST),
                            Turn::rest(0),
                            Turn::rest(SECOND),
                        ];
                        let others: Vec<Body<'_>> = vec![
                            Box::new(move || second.alloc(0)),
                            Box::new(move || {
                                large.free()?;
                                large.alloc(5)?;
                                // Brings the claim beside it to light.
                                large.alloc(0)
                            }),
                            Box::new(move || first.alloc(0)),
                        ];
                        let tag = world.ledger().tag_of(unit).unwrap();
                        let ended = play(&world, recoverer, (unit, tag), others, &script);
                        ended.unwrap_or_else(|found| {
                            panic!("{looks}, {claims}, {vouches}, {undoes}, {anew}: {found}")
                        });
                        undone += u64::from(world.ledger().buddy.undone() > 0);
                    }
                }
            }
        }
    }
    assert!(undone > 100, "a claim was undone in {undone} schedules only");
}

/// A dead member has sent a block. While a recoverer decides to keep it, who receives it takes it from whoever has it,
/// and frees it: nothing is damaged, as nobody has written where it must not.
#[test]
fn by_a_receiver() {
    let mut kept = 0;
    for looks in 0..200 {
        let world = World::new(64);
        let mut dead = world.sit(0);
        dead.alloc(2).unwrap();
        let sent = dead.held[0].index;
        drop(dead);
        world.kill(0);
        let (recoverer, receiver) = (world.sit(1), world.sit(2));
        let (of, mut found) = (&world, None);
        let seen = &mut found;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(move || {
                *seen = Some(of.slabs().recover(&recoverer.seat, of, |_, _| Fate::Keep));
                Ok(())
            }),
            Box::new(move || {
                of.ledger().take(&receiver.seat, sent, None).unwrap();
                of.ledger().free(&receiver.seat, sent).unwrap();
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, looks), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
        let found = found.unwrap();
        assert_eq!(found.damaged, 0, "{looks}: {found:?}");
        kept += found.kept;
    }
    assert!(kept > 0, "the receiver was always first");
}
