//! The systems that are known to be broken must be caught, and their sound twins must not: a check that
//! finds nothing in the former proves nothing about the latter.

use baselines::Units;
use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use testkit::program::{Arena, Op, Program, Race, Step, race_plain};
use testkit::steered::{Culprit, Steered, Turn, all_schedules, follow};
use testkit::{BackEnd, Block, Holder, Violation};

const ALLOC: Op = alloc(0);
const FREE: Op = Op::FreeSized { pick: 0 };

const fn alloc(order: u32) -> Op {
    Op::Alloc { order }
}

fn race(units: u64, before: &[(usize, Op)], lanes: &[&[Op]]) -> Race {
    let step = |(lane, op): &(usize, Op)| Step { lane: *lane, op: op.clone() };
    let setup = Program { units, reserved: false, steps: before.iter().map(step).collect() };
    Race { setup, lanes: lanes.iter().map(|ops| ops.to_vec()).collect(), shared: false }
}

/// One thread frees a unit, one allocates and frees another, one allocates: all of them neighbours.
fn three_threads(units: u64) -> Race {
    race(units, &[(0, ALLOC)], &[&[FREE], &[ALLOC, FREE], &[ALLOC]])
}

/// The same operations, and more, by two threads.
fn two_threads(units: u64) -> Race {
    race(units, &[(0, ALLOC)], &[&[FREE, ALLOC, FREE, ALLOC], &[ALLOC, FREE, ALLOC, FREE]])
}

/// Both threads take slots from the list and bring one back.
fn slots() -> Race {
    race(4, &[], &[&[ALLOC, ALLOC, FREE], &[ALLOC, ALLOC, FREE]])
}

/// Every schedule of the race with two preemptions at most.
fn explore<B: BackEnd>(race: &Race, fresh: impl Fn(u64) -> B) -> Result<u64, Box<Culprit>> {
    all_schedules(2, |together| {
        race_plain(race, &fresh(race.setup.units), |bodies| together(bodies))
    })
}

#[track_caller]
fn must_overlap<B: BackEnd>(name: &str, race: &Race, fresh: impl Fn(u64) -> B) {
    let culprit = explore(race, fresh).expect_err(name);
    assert!(matches!(culprit.violation, Violation::Overlap { .. }), "{name}: {culprit}");
    println!("{name}: {culprit}");
}

#[track_caller]
fn must_pass<B: BackEnd>(name: &str, race: &Race, fresh: impl Fn(u64) -> B) {
    match explore(race, fresh) {
        Ok(schedules) => println!("{name}: nothing under any of {schedules} schedules"),
        Err(culprit) => panic!("{name}: {culprit}"),
    }
}

fn nb1(units: u64) -> Nb1<Steered> {
    Nb1::new(units, units.ilog2())
}

fn nb4(units: u64) -> Nb4<Steered> {
    Nb4::new(units, units.ilog2())
}

fn sl1(units: u64) -> Sl1<Steered> {
    Sl1::new(units, units.ilog2())
}

fn sl4(units: u64) -> Sl4<Steered> {
    Sl4::new(units, units.ilog2())
}

fn untagged(slots: u64) -> Units<Untagged<Steered>> {
    Units(Untagged::new(slots))
}

fn tagged(slots: u64) -> Units<Tagged<Steered>> {
    Units(Tagged::new(slots))
}

fn locked(slots: u64) -> Units<Locked<Steered>> {
    Units(Locked::new(slots))
}

#[test]
fn schedules_catch_the_paper() {
    must_overlap("nb1", &three_threads(4), nb1);
    must_overlap("nb1", &three_threads(8), nb1);
    must_overlap("nb4", &three_threads(32), nb4);
    must_overlap("nb4", &three_threads(64), nb4);
}

/// It takes three threads: what the checks find in the paper is not just anything.
#[test]
fn two_threads_do_not_show_it() {
    must_pass("nb1", &two_threads(4), nb1);
    must_pass("nb4", &two_threads(32), nb4);
}

#[test]
fn schedules_catch_the_untagged_list() {
    must_overlap("freelist-untagged", &slots(), untagged);
}

#[test]
fn schedules_find_nothing_in_the_locked_twins() {
    must_pass("sl1", &three_threads(4), sl1);
    must_pass("sl1", &two_threads(4), sl1);
    must_pass("sl4", &three_threads(32), sl4);
    must_pass("sl4", &two_threads(32), sl4);
}

#[test]
fn schedules_find_nothing_in_the_sound_lists() {
    must_pass("freelist-tagged", &slots(), tagged);
    must_pass("freelist-sl", &slots(), locked);
}

#[test]
fn schedules_find_nothing_in_nbbs() {
    for units in [32, 64] {
        for race in [three_threads(units), two_threads(units)] {
            let result = all_schedules(2, |together| {
                let arena = Arena::<Steered>::new(units);
                race_plain(&race, &arena.buddy(), |bodies| together(bodies))
            });
            println!("nbbs: nothing under any of {} schedules", result.unwrap());
        }
    }
}

/// Lane 0 was given a block at unit 0 although another lane holds the unit `unit`.
fn overlap(unit: u64, holder: usize, order: u32) -> Violation {
    let holder = Holder { lane: holder, block: Block { index: unit, order: 0 } };
    let index = unit >> order << order;
    Violation::Overlap { unit, holder, claimant: Holder { lane: 0, block: Block { index, order } } }
}

/// The race of the table in [`baselines::paper`]: A is lane 0 and holds n1, unit 0; B is lane 1 and begins
/// to look at n2, unit 1; C is lane 2.
fn table(units: u64) -> Race {
    let before = [(0, ALLOC), (1, ALLOC), (1, FREE)];
    race(units, &before, &[&[FREE, alloc(units.ilog2())], &[ALLOC, FREE], &[ALLOC]])
}

#[test]
fn nb1_hands_out_the_root_as_the_table_says() {
    let script = [
        // Reads index; marks P and R; clears n1; unmarks P.
        Turn::steps(0, 1 + 2 + 2 + 1 + 2),
        // Looks at n2, takes it; marks P and R; writes index. Reads index; marks P.
        Turn::steps(1, 2 + 2 + 2 + 1 + 1 + 2),
        Turn::rest(2),
        Turn::rest(1),
        Turn::rest(0),
    ];
    let result = race_plain(&table(4), &nb1(4), |bodies| follow(&script, bodies));
    assert_eq!(result, Err(overlap(0, 2, 2)));
    let result = race_plain(&table(4), &sl1(4), |bodies| follow(&script, bodies));
    assert_eq!(result, Ok(()));
}

/// P is in the bunch of n1 and n2 here, and R is the lowest node of the bunch above.
#[test]
fn nb4_hands_out_the_root_as_the_table_says() {
    let script = [
        // Reads index; looks at the bunch; marks R; clears n1, and with it P.
        Turn::steps(0, 1 + 1 + 2 + 2),
        // Looks at n2, takes it; marks R; writes index. Reads index; looks at the bunch.
        Turn::steps(1, 1 + 2 + 2 + 1 + 1 + 1),
        Turn::rest(2),
        Turn::rest(1),
        Turn::rest(0),
    ];
    let result = race_plain(&table(32), &nb4(32), |bodies| follow(&script, bodies));
    assert_eq!(result, Err(overlap(0, 2, 5)));
    let result = race_plain(&table(32), &sl4(32), |bodies| follow(&script, bodies));
    assert_eq!(result, Ok(()));
}

/// The table in [`baselines::free_list`]: A is lane 0, B is lane 1.
#[test]
fn the_untagged_list_hands_out_a_slot_twice_as_the_table_says() {
    let race = race(3, &[], &[&[ALLOC, ALLOC], &[ALLOC, ALLOC, FREE]]);
    // Reads next_free and the slot after it.
    let script = [Turn::steps(0, 2), Turn::rest(1), Turn::rest(0)];
    let result = race_plain(&race, &untagged(3), |bodies| follow(&script, bodies));
    assert_eq!(result, Err(overlap(1, 1, 0)));
    let result = race_plain(&race, &tagged(3), |bodies| follow(&script, bodies));
    assert_eq!(result, Ok(()));
}
