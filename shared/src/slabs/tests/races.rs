//! Members that allocate, free, trim and recover at the same time, a stop of one at every step among them.

use testkit::program::Body;
use testkit::steered::{Schedule, Turn, all_schedules, die_before, follow};
use testkit::{Violation, depth};

use crate::ledger::tests::world::{Hand, World, steps_of};

type Act = fn(&mut Hand<'_>) -> Result<(), Violation>;

fn churn(hand: &mut Hand<'_>) -> Result<(), Violation> {
    for _ in 0..3 {
        hand.alloc_slot()?;
        hand.alloc_slot()?;
        hand.free_slot()?;
        hand.alloc(1)?;
        hand.free()?;
        hand.free_slot()?;
    }
    Ok(())
}

fn trim(hand: &mut Hand<'_>) -> Result<(), Violation> {
    hand.alloc_slot()?;
    hand.free_slot()?;
    hand.trim();
    // What was a slab is anybody's block now, who writes into it what looks like free slots.
    hand.alloc(2)?;
    hand.scribble();
    hand.free()
}

fn recover(hand: &mut Hand<'_>) -> Result<(), Violation> {
    hand.recover()?;
    hand.trim();
    Ok(())
}

/// A world in which the member on seat 0 has died with slots in its hands.
fn dead(units: u64, seed: u64) -> World {
    let world = World::new(units);
    {
        let mut hand = world.sit(0);
        (0..3).for_each(|_| hand.alloc_slot().unwrap());
        let _ = die_before(seed % 40, || {
            hand.free_slot().unwrap();
            hand.free_slot().unwrap();
            hand.free_slot().unwrap();
            hand.trim();
        });
    }
    world.kill(0);
    world
}

fn race(
    world: &World,
    acts: &[Act],
    together: impl FnOnce(Vec<Body<'_>>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let hands: Vec<Hand<'_>> = (1..=acts.len()).map(|seat| world.sit(seat)).collect();
    let bodies = hands.into_iter().zip(acts).map(|(mut hand, act)| {
        let body: Body<'_> = Box::new(move || act(&mut hand));
        body
    });
    together(bodies.collect())
}

/// The steps in which a member empties the world's only slab.
pub(super) fn steps_of_a_trim() -> u64 {
    steps_of(|steps| {
        let world = World::new(16);
        let mut hand = world.sit(2);
        hand.alloc_slot().unwrap();
        hand.free_slot().unwrap();
        die_before(steps, || hand.trim())
    })
}

fn end(world: &World, what: &str) {
    world.kill(1);
    world.kill(2);
    world.assert_whole(&mut world.sit(3), what);
}

#[test]
fn under_many_schedules() {
    let acts: [&[Act]; 4] = [&[churn, trim], &[trim, trim], &[recover, churn], &[recover, recover]];
    for seed in 0..2000 * depth() {
        let world = dead([8, 16, 64][seed as usize % 3], seed);
        let schedule = Schedule { seed, stalls: seed as u32 % 6, steps: 400 };
        let ended =
            race(&world, acts[seed as usize / 3 % 4], |bodies| schedule.run(bodies).map(drop));
        ended.unwrap_or_else(|found| panic!("{schedule:?}: {found}"));
        end(&world, &format!("{schedule:?}"));
    }
}

/// A member stops at any step of an allocation, another trims the slab away and uses its memory, and the first goes on.
#[test]
fn an_allocation_is_overtaken_by_a_trim() {
    let all = steps_of_a_trim();
    for stops_at in 0..40 {
        for trims in 0..=all {
            let world = World::new(16);
            // Both have a cursor of their own; a hint leads to what the second has freed.
            let (mut first, mut second) = (world.sit(1), world.sit(2));
            second.alloc_slot().unwrap();
            second.free_slot().unwrap();
            let slab = world.slabs().ledger.blocks()[0].index;
            world.hint_at(slab);
            let script =
                [Turn::steps(0, stops_at), Turn::steps(1, trims), Turn::rest(0), Turn::rest(1)];
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || first.alloc_slot()),
                Box::new(move || {
                    second.trim();
                    second.alloc(2)?;
                    second.scribble();
                    second.check_scribble()?;
                    second.free()
                }),
            ];
            follow(&script, bodies).unwrap_or_else(|found| panic!("{stops_at}, {trims}: {found}"));
            end(&world, &format!("{stops_at}, {trims}"));
        }
    }
}

/// The other way round: a member is about to look for a slot in a slab when another closes it, and goes on when that
/// has used its memory. What stays closed as it is pinned goes back by the next trim.
#[test]
fn a_trim_is_overtaken_by_an_allocation() {
    for trims in 0..=steps_of_a_trim() {
        for looks in 0..12 {
            let world = World::new(16);
            let (mut first, mut second) = (world.sit(1), world.sit(2));
            second.alloc_slot().unwrap();
            second.free_slot().unwrap();
            world.hint_at(world.slabs().ledger.blocks()[0].index);
            {
                let (first, second) = (&mut first, &mut second);
                let bodies: Vec<Body<'_>> = vec![
                    Box::new(move || first.alloc_slot()),
                    Box::new(move || {
                        second.trim();
                        second.alloc(2)?;
                        second.scribble();
                        Ok(())
                    }),
                ];
                let script =
                    [Turn::steps(1, trims), Turn::steps(0, looks), Turn::rest(1), Turn::rest(0)];
                follow(&script, bodies).unwrap_or_else(|found| panic!("{trims}, {looks}: {found}"));
            }
            second.check_scribble().unwrap_or_else(|found| panic!("{trims}, {looks}: {found}"));
            second.free().unwrap();
            first.free_slot().unwrap();
            first.trim();
            second.trim();
            assert_eq!(world.ledger().buddy.count_free(), 16, "{trims}, {looks}");
        }
    }
}

/// A slot is allocated while its slab is being closed: who trims keeps none of the others.
#[test]
fn a_trim_that_comes_too_late_gives_all_back() {
    for trims in 0..=steps_of_a_trim() {
        let world = World::new(16);
        let (mut first, mut second) = (world.sit(1), world.sit(2));
        second.alloc_slot().unwrap();
        second.free_slot().unwrap();
        world.hint_at(world.slabs().ledger.blocks()[0].index);
        {
            let (first, second) = (&mut first, &mut second);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(move || first.alloc_slot()),
                Box::new(move || {
                    second.trim();
                    Ok(())
                }),
            ];
            let script = [Turn::steps(1, trims), Turn::rest(0), Turn::rest(1)];
            follow(&script, bodies).unwrap_or_else(|found| panic!("{trims}: {found}"));
        }
        first.free_slot().unwrap();
        first.trim();
        assert_eq!(world.slabs().ledger.buddy.count_free(), 16, "{trims}");
    }
}

/// Two recoverers of one dead member, and a trimmer beside an allocation, under every schedule with one preemption.
#[test]
fn under_every_schedule() {
    let pairs: [&[Act]; 3] =
        [&[recover, recover], &[trim, |hand| hand.alloc_slot()], &[recover, churn]];
    for acts in pairs {
        for seed in [3, 12] {
            let schedules = all_schedules(1, |together| {
                let world = dead(8, seed);
                race(&world, acts, together)?;
                end(&world, "two");
                Ok(())
            });
            schedules.unwrap_or_else(|found| panic!("died at {seed}: {found}"));
        }
    }
}
