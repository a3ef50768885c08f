//! Recoverers and members at the same time.

use testkit::program::Body;
use testkit::steered::{Schedule, all_schedules, die_before};
use testkit::{Violation, depth};

use super::world::{Hand, SEATS, World};

type Act = fn(&mut Hand<'_>) -> Result<(), Violation>;

fn churn(hand: &mut Hand<'_>) -> Result<(), Violation> {
    for order in [0, 0, 5, 1] {
        hand.alloc(order)?;
        hand.alloc(0)?;
        hand.free()?;
        hand.free()?;
    }
    Ok(())
}

fn recover(hand: &mut Hand<'_>) -> Result<(), Violation> {
    hand.recover()?;
    // Goes on with what it watches.
    hand.recover().map(drop)
}

/// A world in which the member on seat 0 has died at a step of an operation.
fn dead(units: u64, seed: u64) -> World {
    let world = World::new(units);
    {
        let mut hand = world.sit(0);
        for order in [0, 3, 0] {
            hand.alloc(order).unwrap();
        }
        let step = seed % 12;
        if seed % 24 < 12 {
            let _ = die_before(step, || hand.alloc(0));
        } else {
            let _ = die_before(step, || hand.free());
        }
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

#[test]
fn under_many_schedules() {
    let acts: [&[Act]; 3] =
        [&[recover, recover, churn], &[churn, recover, churn], &[churn, churn, recover]];
    for seed in 0..3000 * depth() {
        let world = dead([40, 64, 600][seed as usize % 3], seed);
        let schedule = Schedule { seed, stalls: seed as u32 % 6, steps: 700 };
        let acts = acts[seed as usize / 3 % 3];
        let ended = race(&world, acts, |bodies| schedule.run(bodies).map(drop));
        ended.unwrap_or_else(|found| panic!("{schedule:?}: {found}"));
        (1..=acts.len()).for_each(|seat| world.kill(seat));
        world.assert_whole(&mut world.sit(SEATS - 1), &format!("{schedule:?}"));
    }
}

/// Two recoverers of one dead member, under every schedule with one preemption.
#[test]
fn two_recoverers() {
    for step in 0..10 {
        let schedules = all_schedules(1, |together| {
            let world = dead(40, step);
            race(&world, &[recover, recover], together)?;
            world.kill(1);
            world.kill(2);
            world.assert_whole(&mut world.sit(3), "two recoverers");
            Ok(())
        });
        schedules.unwrap_or_else(|found| panic!("died at {step}: {found}"));
    }
}
