//! An inspection that began before a claim, and commits after the claimer has died and a recoverer has taken the claim.

use testkit::program::Body;
use testkit::steered::{Turn, count_steps, die_within, follow};

use super::world::World;

const UNITS: u64 = 600;

/// Takes all but the word in which seat 1 allocates next.
fn fill(world: &World) -> (super::world::Hand<'_>, super::world::Hand<'_>) {
    let (mut holder, mut dead) = (world.sit(5), world.sit(1));
    dead.alloc(0).unwrap();
    for _ in 0..UNITS {
        holder.alloc(5).ok();
    }
    dead.free().unwrap();
    (holder, dead)
}

/// The inspection is that of another recoverer's `mend`, for which no turn tells that it is under way.
#[test]
fn what_is_taken_is_not_handed_out_again() {
    let steps = {
        let world = World::new(UNITS);
        drop(fill(&world));
        count_steps(10_000, || world.ledger().buddy.mend()).unwrap().1
    };
    let mut taken = 0;
    for inspects in (0..steps.min(90)).step_by(2) {
        for (dies, between) in [6, 8, 10]
            .into_iter()
            .flat_map(|dies| (16..44).step_by(4).map(move |between| (dies, between)))
        {
            for recovers in [0, 6, 12, 20, 28].map(|more| steps + 8 + more) {
                let what = format!("{inspects} {dies} {between} {recovers}");
                let world = World::new(UNITS);
                let (mut holder, mut dead) = fill(&world);
                let mut recoverer = world.sit(3);
                let (of, takes, claims) = (&world, &mut recoverer, &mut dead);
                let bodies: Vec<Body<'_>> = vec![
                    Box::new(move || {
                        of.ledger().buddy.mend();
                        Ok(())
                    }),
                    Box::new(move || {
                        claims.alloc(0)?;
                        claims.free()?;
                        _ = die_within(1, dies, || claims.alloc(0));
                        of.kill(1);
                        Ok(())
                    }),
                    Box::new(move || takes.recover().map(drop)),
                ];
                let script = [
                    Turn::steps(2, recovers),
                    Turn::steps(1, between),
                    Turn::steps(0, inspects),
                    Turn::rest(1),
                    Turn::rest(2),
                    Turn::rest(0),
                ];
                follow(&script, bodies).unwrap_or_else(|found| panic!("{what}: {found}"));
                taken += recoverer.held.len();
                // The owner map tells if somebody gets what the recoverer has.
                for _ in 0..3 {
                    holder.alloc(5).unwrap_or_else(|found| panic!("{what}: {found}"));
                }
                while !holder.held.is_empty() {
                    holder.free().unwrap();
                }
                while !recoverer.held.is_empty() {
                    recoverer.free().unwrap_or_else(|found| panic!("{what}: {found}"));
                }
                world.assert_whole(&mut recoverer, &what);
            }
        }
    }
    assert!(taken > 0, "nothing was recovered");
}
