//! A member that stands still anywhere and goes on later: nobody waits for it, and what it has in hand stays its own.

use testkit::program::Body;
use testkit::steered::{Turn, follow};
use testkit::{Violation, depth};

use super::world::{Hand, World};

/// More steps than what a member does here takes.
const STEPS: u64 = 80;

type Act = fn(&mut Hand<'_>) -> Result<(), Violation>;

/// A member that holds a block of order 0, and what it does.
const ACTS: [(&str, Act); 4] = [
    ("allocates", |hand| hand.alloc(0)),
    ("allocates a large block", |hand| hand.alloc(5)),
    ("frees", |hand| hand.free()),
    ("frees and allocates", |hand| {
        hand.free()?;
        hand.alloc(0)?;
        hand.free()?;
        hand.alloc(0)
    }),
];

/// A world in which a member has died in an allocation, and one holds a block of order 0; and a recoverer.
fn scene(world: &World, died_at: u64) -> (Hand<'_>, Hand<'_>) {
    let mut dead = world.sit(0);
    dead.alloc(0).unwrap();
    let _ = testkit::steered::die_before(died_at, || dead.alloc(1));
    world.kill(0);
    let mut acting = world.sit(1);
    acting.alloc(0).unwrap();
    (acting, world.sit(2))
}

/// The member stops after so many steps, the recoverer runs for so many, the member goes on for so many, the recoverer
/// comes to its end, and the member after it.
fn interleave(act: Act, died_at: u64, steps: [u64; 3]) -> Result<(), Violation> {
    let world = World::new(64);
    let (mut acting, mut recoverer) = scene(&world, died_at);
    let script = [
        Turn::steps(0, steps[0]),
        Turn::steps(1, steps[1]),
        Turn::steps(0, steps[2]),
        Turn::rest(1),
        Turn::rest(0),
    ];
    let mut still_held = Vec::new();
    {
        let (acting, recoverer) = (&mut acting, &mut recoverer);
        let bodies: Vec<Body<'_>> =
            vec![Box::new(move || act(acting)), Box::new(move || recoverer.recover().map(drop))];
        follow(&script, bodies)?;
    }
    still_held.append(&mut acting.held);
    recoverer.held.append(&mut Vec::new());
    acting.held = still_held;
    while !acting.held.is_empty() {
        acting.free()?;
    }
    world.assert_whole(&mut recoverer, &format!("died at {died_at}, {steps:?}"));
    Ok(())
}

/// Every schedule of these two with up to three switches before the recoverer ends.
#[test]
fn and_goes_on_while_others_recover() {
    let recovery = recovery_steps();
    let mut schedules = 0_u64;
    for (name, act) in ACTS {
        for first in 0..24 {
            for then in (0..recovery).step_by(if depth() == 1 { 9 } else { 2 }) {
                for last in (0..16).chain((16..=STEPS).step_by(4)) {
                    schedules += 1;
                    let ended = interleave(act, 6, [first, then, last]);
                    ended
                        .unwrap_or_else(|found| panic!("{name}, {first}, {then}, {last}: {found}"));
                }
            }
        }
    }
    println!("{schedules} schedules");
}

/// Steps of a recovery that nobody disturbs.
fn recovery_steps() -> u64 {
    let world = World::new(64);
    let (_acting, mut recoverer) = scene(&world, 6);
    testkit::steered::count_steps(10_000, || recoverer.recover().unwrap()).unwrap().1
}

/// It stands still for good, alive: recovery ends all the same, in a bounded number of steps, and leaves what could be
/// its own.
#[test]
fn for_good() {
    for (name, act) in ACTS {
        for stops_at in 0..STEPS {
            let world = World::new(64);
            let (mut acting, mut recoverer) = scene(&world, 6);
            let _ = testkit::steered::die_before(stops_at, || act(&mut acting));
            let recovered = testkit::steered::count_steps(3000, || recoverer.recover());
            let what = format!("{name}, stopped at {stops_at}");
            recovered.unwrap_or_else(|stuck| panic!("{what}: {stuck}")).0.unwrap();
            // What the owner map has it hold is there yet.
            for block in &acting.held {
                assert_eq!(world.ledger().buddy.order_of(block.index), Ok(block.order), "{what}");
            }
            recoverer.alloc(0).unwrap();
            recoverer.free().unwrap();
            // Killed in the end, it is recovered as any other.
            world.kill(1);
            world.assert_whole(&mut recoverer, &what);
        }
    }
}
