//! A block that is seen, goes, and is claimed anew by another before the recoverer swaps its tag: it looks like one that
//! stayed, and is not.

use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Turn, follow};

use super::world::{Hand, World};
use crate::ledger::Owner;
use crate::ledger::recover::Found;

/// A recoverer, seat 0, settles what it has found at unit 0. Returns an overlap, if it then has what another has.
fn settle(hand: &mut Hand<'_>, world: &World, found: Vec<Found>) -> Result<(), Violation> {
    let settled = world.ledger().settle(&hand.seat, world, found);
    for index in settled.taken {
        hand.held.push(world.oracle.take(hand.seat.number, index, 0)?);
    }
    Ok(())
}

/// Runs the lanes' bodies by a script, the recoverer's first: it has found unit 0 with this tag.
fn play<'w>(
    world: &'w World,
    mut recoverer: Hand<'w>,
    tag: u64,
    others: Vec<Body<'_>>,
    script: &[Turn],
) -> Result<(), Violation> {
    let found = vec![Found { index: 0, tag }];
    let settles: Body<'_> = Box::new(move || settle(&mut recoverer, world, found));
    let bodies = std::iter::once(settles).chain(others).collect();
    follow(script, bodies)
}

/// A free is seen on its way: the tag is nobody's, the block there. It ends, and the next allocation claims the same unit.
#[test]
fn by_a_free() {
    for frees in 0..12 {
        for looks in 0..30 {
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
                let ended = play(&world, recoverer, tag, vec![works], &script);
                ended.unwrap_or_else(|found| panic!("{frees}, {looks}, {claims}: {found}"));
            }
        }
    }
}

/// A claim by an old cursor meets a larger block. That is freed, and the unit comes to light; then the claim is taken back, and
/// another member claims the unit.
#[test]
fn by_a_claim_that_is_undone() {
    let mut undone = 0_u64;
    for looks in 6..11 {
        for claims in 4..18 {
            for vouches in 2..11 {
                for undoes in 1..16 {
                    for anew in [2, 4, 6, 8, 10] {
                        let world = World::new(64);
                        let (recoverer, mut first) = (world.sit(0), world.sit(1));
                        let (mut large, mut second) = (world.sit(2), world.sit(3));
                        first.alloc(0).unwrap();
                        first.free().unwrap();
                        large.alloc(6).unwrap();
                        let script = [
                            Turn::steps(0, looks),
                            Turn::steps(1, claims),
                            Turn::rest(2),
                            Turn::steps(0, vouches),
                            Turn::steps(1, undoes),
                            Turn::steps(3, anew),
                            Turn::rest(1),
                            Turn::rest(0),
                            Turn::rest(3),
                        ];
                        let others: Vec<Body<'_>> = vec![
                            Box::new(move || first.alloc(0)),
                            Box::new(move || {
                                large.free()?;
                                large.alloc(0)
                            }),
                            Box::new(move || second.alloc(0)),
                        ];
                        let tag = world.ledger().tag_of(0).unwrap();
                        let ended = play(&world, recoverer, tag, others, &script);
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
