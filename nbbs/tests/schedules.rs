//! Tests races under thousands of schedules, each of which stalls threads at chosen steps. Errors that need several
//! unlucky stalls, and would take hours to meet by chance, are met here and can be repeated.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use testkit::program::{LaneReport, Op, Program, Race, Step, races};
use testkit::steered::{explore, explore_with};
use testkit::{Violation, depth};

use Op::{Alloc, Drain, Free, FreeSized, Inspect, Release, Reserve};

/// The number of schedules for each race at depth 1, on separate lanes and again on one for all.
const SCHEDULES: u64 = 100;

fn alloc(order: u32) -> Op {
    Alloc { order }
}

const FREE: Op = Free { pick: 0 };
const FREE_SIZED: Op = FreeSized { pick: 0 };

/// Makes a race before which blocks of these orders are allocated, one for each lane.
fn race(units: u64, before: &[u32], lanes: &[&[Op]]) -> Race {
    let steps = before.iter().enumerate();
    let steps = steps.map(|(lane, &order)| Step { lane, op: alloc(order) }).collect();
    let setup = Program { units, reserved: false, steps };
    Race { setup, lanes: lanes.iter().map(|ops| ops.to_vec()).collect(), shared: false }
}

#[track_caller]
fn check(race: &Race) {
    check_with(race, |_| Ok(()));
}

#[track_caller]
fn check_with(race: &Race, judge: impl Fn(&[LaneReport]) -> Result<(), Violation>) {
    let schedules = depth() * if race.setup.units < 1000 { SCHEDULES } else { SCHEDULES / 4 };
    for shared in [false, true] {
        let race = Race { shared, ..race.clone() };
        if let Err(found) = explore_with(&race, schedules, 1, &judge) {
            panic!("{found}\nin {race:?}");
        }
    }
}

/// Two levels, cut and whole; three levels, cut and whole; four levels and two lanes.
const ARENAS: [u64; 6] = [33, 64, 96, 512, 600, 16_500];

/// The schedule that breaks the published algorithm: a release stalls before the root, and takes a later release's mark
/// for its own while another lane allocates below.
#[test]
fn a_stalled_release_frees_nothing_of_others() {
    for units in ARENAS {
        let max = units.ilog2();
        for order in [0, 4] {
            let lanes: [&[Op]; 4] =
                [&[FREE], &[alloc(order), FREE], &[alloc(order)], &[alloc(max), FREE]];
            check(&race(units, &[order], &lanes));
            check(&race(units, &[order, order], &[&[FREE], &[FREE, alloc(order)], &[alloc(max)]]));
        }
    }
}

#[test]
fn a_merge_meets_a_claim() {
    for units in ARENAS {
        let max = units.ilog2();
        for small in [0, 3, 4] {
            check(&race(units, &[small], &[&[FREE_SIZED], &[alloc(small)], &[alloc(max)]]));
            check(&race(units, &[small], &[&[FREE_SIZED, alloc(max)], &[alloc(small), FREE]]));
            check(&race(
                units,
                &[small, max - 1],
                &[&[FREE], &[FREE], &[alloc(max), FREE, alloc(0)]],
            ));
        }
    }
}

#[test]
fn claims_of_all_sizes_meet() {
    for units in ARENAS {
        let max = units.ilog2();
        check(&race(units, &[], &[&[alloc(max)], &[alloc(0)], &[alloc(max - 1)]]));
        check(&race(units, &[], &[&[alloc(max), FREE], &[alloc(0), FREE], &[alloc(max), FREE]]));
        check(&race(units, &[], &[&[alloc(5), FREE, alloc(4)], &[alloc(4), FREE, alloc(5)]]));
        check(&race(
            units,
            &[],
            &[&[Drain { order: max - 1 }], &[Drain { order: 4 }], &[Inspect, Inspect]],
        ));
    }
}

/// The last lane must leave the arena whole, whatever the others saw.
#[test]
fn frees_of_neighbours_meet() {
    for units in ARENAS {
        check(&race(units, &[4, 4, 3], &[&[FREE], &[FREE], &[FREE]]));
        check(&race(units, &[0, 0, 0], &[&[FREE], &[FREE_SIZED], &[FREE]]));
        check(&race(units, &[5, 4, 0], &[&[FREE, alloc(5)], &[FREE_SIZED, alloc(4)], &[FREE]]));
    }
}

#[test]
fn reservations_meet_claims_and_merges() {
    for units in ARENAS {
        let max = units.ilog2();
        let reserve = |start, end| Reserve { start, end };
        let release = |start, end| Release { start, end };
        let across: [&[Op]; 3] =
            [&[reserve(30, 33), release(30, 33)], &[alloc(max), FREE], &[alloc(0), FREE]];
        check(&race(units, &[], &across));
        check(&race(units, &[4], &[&[FREE], &[reserve(0, units)], &[alloc(4), FREE]]));
        let mut given =
            race(units, &[], &[&[release(8, 33)], &[alloc(4), alloc(max)], &[alloc(0), FREE]]);
        given.setup.reserved = true;
        check(&given);
        let overlap: [&[Op]; 3] =
            [&[reserve(0, 20)], &[reserve(10, 33), release(10, 33)], &[alloc(5), FREE]];
        check(&race(units, &[], &overlap));
    }
}

/// A block that is free from the beginning of a call to its end must not be refused, nor hidden by lanes that look for
/// larger ones.
#[test]
fn no_refusal_while_a_block_is_free() {
    for units in ARENAS {
        let max = units.ilog2();
        let none_refused_on = |lane: usize| {
            move |reports: &[LaneReport]| match reports[lane].refused {
                0 => Ok(()),
                refused => Err(Violation::wrong("allocations refused", 0, refused)),
            }
        };
        // Half is taken: the other lanes look for all of it, in vain, or free what they have.
        let lanes: [&[Op]; 3] = [&[alloc(max - 1), FREE_SIZED], &[alloc(max)], &[alloc(max)]];
        let mut half = race(units, &[], &lanes);
        half.setup.steps.push(Step { lane: 9, op: alloc(max - 1) });
        if units == 1 << max {
            check_with(&half, none_refused_on(0));
        }
        // The last block of its size comes back while another lane gives up looking for a larger one.
        let lanes: [&[Op]; 3] = [&[FREE, alloc(0), FREE, alloc(3)], &[alloc(max)], &[alloc(5)]];
        let mut full = race(units, &[4], &lanes);
        full.setup.steps.extend(fill(max));
        check_with(&full, none_refused_on(0));
        // Two units are free, two lanes look for one each, and a free merges nothing.
        let lanes: [&[Op]; 3] = [&[alloc(0)], &[alloc(0)], &[FREE]];
        let mut few = race(units, &[], &lanes);
        let pair = |lane| Step { lane, op: alloc(1) };
        few.setup.steps.extend([pair(2), pair(9)].into_iter().chain(fill(max)));
        few.setup.steps.push(Step { lane: 9, op: Free { pick: 1 } });
        check_with(&few, none_refused_on(0));
        check_with(&few, none_refused_on(1));
    }
}

/// At every instant some block is free, although not always the same: there are more blocks than lanes.
#[test]
fn no_refusal_while_blocks_outnumber_lanes() {
    for (units, order) in [(4, 0), (64, 4), (96, 3), (160, 5), (512, 7), (600, 7), (16_500, 12)] {
        let pairs: &[Op] = &[alloc(order), FREE, alloc(order), FREE_SIZED];
        check_with(&race(units, &[], &[pairs; 3]), none_refused);
        let pairs: &[Op] = &[FREE, alloc(order), FREE_SIZED, alloc(order)];
        check_with(&race(units, &[order; 3], &[pairs; 3]), none_refused);
    }
}

fn none_refused(reports: &[LaneReport]) -> Result<(), Violation> {
    match reports.iter().map(|report| report.refused).sum() {
        0 => Ok(()),
        refused => Err(Violation::wrong("allocations refused", 0, refused)),
    }
}

/// Takes everything that is left of an arena in which few blocks are in use: after the larger orders, at most three
/// blocks of each order are left.
fn fill(max: u32) -> impl Iterator<Item = Step> {
    (0..=max).rev().flat_map(|order| [order; 3]).map(|order| Step { lane: 9, op: alloc(order) })
}

#[test]
fn random_races() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    });
    let strategy = (races(4), any::<u64>());
    let result = runner.run(&strategy, |(race, seed)| {
        explore(&race, 200, seed).map_err(|found| TestCaseError::fail(found.to_string()))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
