//! Tests every schedule with few preemptions of small races, and runs the same suite on the list that hands out slots
//! twice.

#[path = "../support/mod.rs"]
mod support;

mod chunks;
mod handles;
mod slots;

use baselines::Units;
use baselines::free_list::{Tagged, Untagged};
use testkit::program::{Op, Program, Race, Step, race_plain};
use testkit::steered::{Culprit, Steered, all_schedules};
use testkit::{BackEnd, Violation};

const ALLOC: Op = Op::Alloc { order: 0 };
const FREE: Op = Op::FreeSized { pick: 0 };

fn race(units: u64, before: usize, lanes: &[&[Op]]) -> Race {
    let steps = (0..before).map(|_| Step { lane: 0, op: ALLOC }).collect();
    let setup = Program { units, reserved: false, steps };
    Race { setup, lanes: lanes.iter().map(|ops| ops.to_vec()).collect(), shared: false }
}

/// The races that every pool runs: slots go back and forth, and the last slot is fought for.
fn suite(units: u64) -> Vec<Race> {
    vec![
        race(units, 0, &[&[ALLOC, ALLOC, FREE], &[ALLOC, ALLOC, FREE]]),
        race(units, 1, &[&[FREE, ALLOC], &[ALLOC, FREE], &[ALLOC]]),
        race(units, units as usize - 1, &[&[FREE, ALLOC, FREE], &[ALLOC, FREE, ALLOC]]),
    ]
}

#[track_caller]
fn must_pass(name: &str, explored: Result<u64, Box<Culprit>>) {
    let schedules = explored.unwrap_or_else(|culprit| panic!("{name}: {culprit}"));
    println!("{name}: nothing under any of {schedules} schedules");
    assert!(schedules > 20, "{name}: {schedules} schedules are no race");
}

fn explore_list<B: BackEnd>(race: &Race, fresh: impl Fn(u64) -> B) -> Result<u64, Box<Culprit>> {
    all_schedules(2, |together| {
        race_plain(race, &fresh(race.setup.units), |bodies| together(bodies))
    })
}

/// The suite finds what is wrong with the list, and nothing in its sound twin.
#[test]
fn the_untagged_list_fails_the_same_suite() {
    let untagged = |slots| Units(Untagged::<Steered>::new(slots));
    let tagged = |slots| Units(Tagged::<Steered>::new(slots));
    let found = suite(4).iter().find_map(|race| explore_list(race, untagged).err());
    let culprit = found.expect("the untagged list must be caught");
    assert!(matches!(culprit.violation, Violation::Overlap { .. }), "{culprit}");
    println!("untagged: {culprit}");
    for race in suite(4) {
        must_pass("tagged", explore_list(&race, tagged));
    }
}
