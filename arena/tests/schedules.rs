//! Every schedule with two preemptions of small races, growth and shrink among them; and the same
//! suite on the list that hands out slots twice.

mod support;

use std::sync::atomic::Ordering;

use baselines::Units;
use baselines::free_list::{Tagged, Untagged};
use support::steps::Stepped;
use support::{Bank, Locals, Pointers};
use testkit::program::{Body, Op, Program, Race, Step, race_plain};
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

/// What goes on beside the lanes of a race.
type Side<'a> = &'a dyn for<'p> Fn(&'p Pointers<'_, Stepped>) -> Vec<Body<'p>>;

fn no_side<'p>(_: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
    Vec::new()
}

fn explore_pointers(
    preemptions: u32,
    race: &Race,
    (chunk_size, at_first): (usize, usize),
    side: Side<'_>,
) -> Result<u64, Box<Culprit>> {
    all_schedules(preemptions, |together| {
        let bank = Bank::new(chunk_size, race.setup.units as usize / chunk_size);
        let pool = Pointers::<Stepped>::new(&bank);
        pool.arena.reserve(at_first).expect("the bank has room");
        pool.traceless.store(true, Ordering::Relaxed);
        race_plain(race, &pool, |bodies| {
            pool.traceless.store(false, Ordering::Relaxed);
            let shorter = bodies.into_iter().map(|body| -> Body<'_> { Box::new(body) });
            together(shorter.chain(side(&pool)).collect())
        })
    })
}

fn explore_locals(
    preemptions: u32,
    race: &Race,
    chunk_size: usize,
    most: usize,
) -> Result<u64, Box<Culprit>> {
    all_schedules(preemptions, |together| {
        let bank = Bank::new(chunk_size, race.setup.units as usize / chunk_size);
        let arena = Pointers::<Stepped>::new(&bank).arena;
        arena.reserve(bank.slots()).expect("the bank has room");
        let pool = Locals::new(&bank, &arena, race.lanes.len().max(1), most);
        race_plain(race, &pool, |bodies| together(bodies))
    })
}

#[track_caller]
fn must_pass(name: &str, explored: Result<u64, Box<Culprit>>) {
    let schedules = explored.unwrap_or_else(|culprit| panic!("{name}: {culprit}"));
    println!("{name}: nothing under any of {schedules} schedules");
    assert!(schedules > 20, "{name}: {schedules} schedules are no race");
}

#[test]
fn pointers_under_every_schedule() {
    for (number, race) in suite(4).iter().enumerate() {
        must_pass(
            &format!("one chunk, race {number}"),
            explore_pointers(2, race, (4, 4), &no_side),
        );
    }
    let short = race(4, 3, &[&[ALLOC, FREE], &[ALLOC, FREE]]);
    must_pass("short", explore_pointers(2, &short, (4, 4), &no_side));
    must_pass("two chunks", explore_pointers(2, &suite(4)[2], (2, 4), &no_side));
}

#[test]
fn locals_under_every_schedule() {
    for (number, race) in suite(4).iter().enumerate() {
        must_pass(&format!("locals, race {number}"), explore_locals(2, race, 4, 1024));
    }
    must_pass("locals of few", explore_locals(2, &suite(4)[0], 4, 2));
    must_pass("locals, two chunks", explore_locals(2, &suite(4)[2], 2, 1024));
}

#[test]
fn growth_and_shrink_beside_allocation() {
    fn shrink<'p>(pool: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            pool.arena.shrink();
            Ok(())
        })]
    }
    fn grow_and_shrink<'p>(pool: &'p Pointers<'_, Stepped>) -> Vec<Body<'p>> {
        vec![Box::new(|| {
            // No room is an ordinary answer here.
            _ = pool.arena.grow();
            pool.arena.shrink();
            Ok(())
        })]
    }
    let shortest = race(2, 1, &[&[FREE, ALLOC]]);
    must_pass("shrink, two stalls", explore_pointers(2, &shortest, (2, 2), &shrink));
    let short = race(4, 0, &[&[ALLOC, FREE], &[ALLOC]]);
    must_pass("shrink beside free and alloc", explore_pointers(2, &short, (2, 4), &shrink));
    let held = race(4, 3, &[&[FREE, ALLOC], &[ALLOC]]);
    must_pass("shrink beside a chunk in use", explore_pointers(2, &held, (2, 4), &shrink));
    let one = race(4, 1, &[&[FREE, ALLOC]]);
    must_pass("grow and shrink", explore_pointers(2, &one, (2, 0), &grow_and_shrink));
}

/// A pointer that is freed by two at once: one of them has the object.
#[test]
fn of_two_who_free_a_slot_one_succeeds() {
    let explored = all_schedules(2, |together| {
        let bank = Bank::new(4, 1);
        let pool = Pointers::<Stepped>::new(&bank);
        let index = pool.alloc(0, 0).expect("an empty arena");
        let freed = std::sync::atomic::AtomicUsize::new(0);
        let free = || {
            let freed_here = pool.free(0, index, 0).is_ok();
            freed.fetch_add(usize::from(freed_here), std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        together(vec![Box::new(free), Box::new(free)])?;
        assert_eq!(freed.into_inner(), 1);
        assert_eq!(pool.arena.len(), 0);
        Ok(())
    });
    must_pass("double free", explored);
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
