//! Tests runs of any number of units, under schedules, under load, and with threads that die in the middle.

use nbbs::{Buddy, FreeError, Piece, RangeError, Request, RequestError};
use testkit::Oracle;
use testkit::program::{Arena, Op, Program, Race, RunOp, Step, run};
use testkit::steered::{Steered, count_steps, die_before, explore};

use RunOp::{Alloc, At, Batch, FreeBatch, FreePart, Grow, Shrink, Split, SplitOff};

/// Two levels, cut and whole; three levels; four levels and two lanes.
const ARENAS: [u64; 5] = [64, 96, 600, 1024, 16_500];

const FREE: RunOp = RunOp::Free { pick: 0 };

fn alloc(units: u64) -> RunOp {
    Alloc { units }
}

fn at(index: u64, units: u64) -> RunOp {
    At { index, units }
}

fn shrink_to(units: u64) -> RunOp {
    Shrink { pick: 0, units: units - 1 }
}

fn grow_by(units: u64) -> RunOp {
    Grow { pick: 0, units }
}

/// Runs `before` on each lane, and then the lanes.
#[track_caller]
fn check(units: u64, before: &[RunOp], lanes: &[&[RunOp]]) {
    let steps = before.iter().cloned().enumerate();
    let steps = steps.map(|(lane, op)| Step { lane, op: Op::Run(op) }).collect();
    let setup = Program { units, reserved: false, steps };
    let ops = |ops: &&[RunOp]| ops.iter().cloned().map(Op::Run).collect();
    let lanes: Vec<Vec<Op>> = lanes.iter().map(ops).collect();
    for shared in [false, true] {
        let race = Race { setup: setup.clone(), lanes: lanes.clone(), shared };
        let schedules = if units < 1000 { 300 } else { 80 };
        if let Err(found) = explore(&race, schedules, 5) {
            panic!("{found}\nin {race:?}");
        }
    }
}

#[test]
fn claims_across_words_meet() {
    for units in ARENAS {
        check(units, &[], &[&[at(20, 30), FREE], &[at(40, 20), FREE], &[alloc(64), FREE]]);
        check(units, &[], &[&[alloc(33), FREE], &[alloc(33), FREE], &[alloc(units - 3), FREE]]);
        check(units, &[], &[&[at(5, 50), FREE, alloc(5)], &[alloc(32), FREE], &[alloc(7), FREE]]);
        check(units, &[], &[&[alloc(units)], &[at(30, 3), FREE], &[alloc(1), FREE]]);
    }
}

/// Every request is served at the first place that meets it, or the last, and refused only if there is none.
#[test]
fn requests_find_every_place() {
    // Two levels; three, of which a run fills words of the second; four, the third cut.
    for (units, fillings, requests) in [(100, 200, 300), (1100, 300, 300), (9000, 100, 300)] {
        let arena: Arena = Arena::new(units);
        let buddy = arena.buddy();
        let mut random = fastrand::Rng::with_seed(7);
        for filling in 0..fillings {
            // Pieces of one length on average, from single units to a third of the arena.
            let mean = 1 << (filling % units.ilog2());
            let mut used = vec![false; units as usize];
            let mut at = random.usize(..=mean);
            while at < used.len() {
                used[at] = true;
                buddy.here().alloc_at(at as u64, 1).unwrap();
                at += 1 + random.usize(..2 * mean + 1);
            }
            for _ in 0..requests {
                request_where_it_fits(&buddy, &used, &mut random);
            }
            for unit in (0..used.len()).filter(|&unit| used[unit]) {
                buddy.free(unit as u64).unwrap();
            }
        }
    }
}

/// Makes a request drawn at random, beside `used` units, and compares its place with that of a walk over all of them.
fn request_where_it_fits(buddy: &Buddy<'_>, used: &[bool], random: &mut fastrand::Rng) {
    let all = used.len();
    let (units, order) = (random.usize(1..all * 2 / 5), random.u32(..buddy.max_order() + 4));
    let (offset, top_down) = (random.usize(..3 * all), random.bool());
    let range = random.usize(..all / 2)..random.usize(all / 2..=all);
    // How many units are free from each on.
    let mut free = vec![0; all + 1];
    (0..all).rev().for_each(|unit| free[unit] = if used[unit] { 0 } else { free[unit + 1] + 1 });
    let fits = |&unit: &usize| (unit + offset).is_multiple_of(1 << order) && free[unit] >= units;
    let mut places = range.start..(range.end + 1).saturating_sub(units).max(range.start);
    let place = if top_down { places.rfind(fits) } else { places.find(fits) };
    let request = Request::units(units as u64).aligned(order).offset(offset as u64);
    let request = request.within(range.start as u64..range.end as u64);
    let found = buddy.here().request(if top_down { request.top_down() } else { request });
    assert_eq!(found.ok(), place.map(|unit| unit as u64), "{units}, {order}, {offset} in {all}");
    found.into_iter().for_each(|unit| _ = buddy.free(unit).unwrap());
}

/// The rests of a run that is being freed, or given up, are never taken for another's.
#[test]
fn frees_meet_claims_that_end_where_they_begin() {
    for units in ARENAS {
        let before = [at(32, 31)];
        check(
            units,
            &before,
            &[&[FREE, at(40, 3)], &[at(0, 32), FREE], &[at(3, 29), grow_by(2), FREE]],
        );
        let before = [at(20, 44)];
        check(units, &before, &[&[FREE], &[at(0, 20), grow_by(12), FREE], &[alloc(40), FREE]]);
        check(
            units,
            &before,
            &[&[FREE, alloc(9)], &[at(20, 12), grow_by(32), FREE], &[alloc(32), FREE]],
        );
    }
}

#[test]
fn growth_meets_claims() {
    for units in ARENAS {
        check(units, &[at(3, 9)], &[&[grow_by(30), FREE], &[at(30, 4), FREE], &[alloc(8), FREE]]);
        check(units, &[at(0, 32)], &[&[grow_by(5), FREE], &[at(32, 3), FREE], &[alloc(32), FREE]]);
        check(units, &[at(3, 10)], &[&[grow_by(40), FREE], &[at(34, 4), FREE], &[at(40, 4)]]);
        check(units, &[at(0, 5), at(5, 5)], &[&[grow_by(3)], &[FREE], &[at(5, 40), FREE]]);
    }
}

/// A block is written in smaller slots while others merge around it and search below it.
#[test]
fn cuts_meet_searches_and_merges() {
    for units in ARENAS {
        let before = [at(0, 32), alloc(1)];
        let others: [&[RunOp]; 2] = [&[FREE, alloc(32), FREE], &[alloc(3), alloc(1), FREE, FREE]];
        check(units, &before, &[&[shrink_to(20), FREE], others[0], others[1]]);
        check(
            units,
            &before,
            &[&[SplitOff { pick: 0, units: 9 }, FREE, FREE], others[0], others[1]],
        );
        check(units, &before, &[&[Split { pick: 0, order: 3 }, FREE, FREE], others[0], others[1]]);
        let part = FreePart { pick: 0, skip: 7, units: 11 };
        check(units, &before, &[&[part, FREE, FREE], others[0], others[1]]);
    }
    for ops in [shrink_to(530), SplitOff { pick: 0, units: 700 }, Split { pick: 0, order: 5 }] {
        check(
            2048,
            &[at(0, 1024)],
            &[&[ops, FREE], &[alloc(512), FREE], &[alloc(1), alloc(31), FREE]],
        );
    }
}

#[test]
fn batches_meet_each_other_and_large_blocks() {
    for units in ARENAS {
        let batch = Batch { order: 0, count: 50 };
        let lane: [RunOp; 2] = [batch, FreeBatch { order: 0 }];
        check(units, &[], &[&lane, &lane, &[alloc(units / 2), FREE]]);
        let lane: [RunOp; 2] = [Batch { order: 2, count: 9 }, FreeBatch { order: 2 }];
        check(units, &[], &[&lane, &[alloc(32), FREE], &[alloc(33), FREE]]);
    }
}

/// Of several threads that free the same run, one succeeds.
#[test]
fn one_free_of_a_run_succeeds() {
    for (index, len) in [(0, 40), (7, 30), (30, 5), (31, 5), (31, 97), (16, 48), (0, 96), (3, 100)]
    {
        for seed in 0..400 {
            let arena = Arena::<Steered>::new(128);
            let buddy = arena.buddy();
            buddy.here().alloc_at(index, len).unwrap();
            let mut answers = [None; 3];
            let bodies = answers.iter_mut().enumerate().map(|(lane, answer)| {
                let free = move || {
                    *answer = Some(buddy.on(lane).free(index));
                    Ok(())
                };
                Box::new(free) as testkit::program::Body<'_>
            });
            let schedule = testkit::steered::Schedule { seed, stalls: seed as u32 % 5, steps: 60 };
            schedule.run(bodies.collect()).unwrap();
            let freed = answers.iter().filter(|answer| matches!(answer, Some(Ok(_)))).count();
            assert_eq!(freed, 1, "{len} units at {index}, seed {seed}: {answers:?}");
            buddy.audit().unwrap();
            assert_eq!(buddy.stats().free_units, 128);
        }
    }
}

/// A second free that comes late takes nothing from the lane that has the units then.
#[test]
fn a_late_second_free_takes_nothing() {
    for (index, len) in [(0, 40), (7, 30), (31, 40), (16, 48), (3, 100)] {
        for seed in 0..3000 {
            let arena = Arena::<Steered>::new(128);
            let buddy = arena.buddy();
            buddy.here().alloc_at(index, len).unwrap();
            let (mut first, mut second, mut again) = (None, None, None);
            let bodies: Vec<testkit::program::Body<'_>> = vec![
                Box::new(|| {
                    first = Some(buddy.on(0).free(index).is_ok());
                    again = Some(buddy.on(0).alloc_at(index, len).is_ok());
                    Ok(())
                }),
                Box::new(|| {
                    second = Some(buddy.on(1).free(index).is_ok());
                    Ok(())
                }),
            ];
            testkit::steered::Schedule { seed, stalls: 1 + seed as u32 % 4, steps: 90 }
                .run(bodies)
                .unwrap();
            let held = match (first, second, again) {
                // The second came when the units were held again: a free like any other.
                (Some(true), Some(true), Some(true)) => 0,
                // While they were claimed again: the head that hides them there looks like a block.
                (Some(true), Some(true), Some(false)) if index == 31 => 0,
                (Some(_), Some(false), Some(true)) => len,
                (.., Some(true)) if first != second => len,
                (.., Some(false)) if first != second => 0,
                answers => panic!("{len} units at {index}, seed {seed}: {answers:?}"),
            };
            buddy.audit().unwrap();
            assert_eq!(buddy.stats().used_units, held, "{len} units at {index}, seed {seed}");
        }
    }
}

/// Lets `act` die before each of its steps in turn. At most `lost` units may be lost.
fn die_everywhere(
    prepare: impl Fn(&Buddy<'_, Steered>),
    act: impl Fn(&Buddy<'_, Steered>),
    lost: u64,
) {
    for units in [64, 100, 600, 1100] {
        for step in 0.. {
            let arena = Arena::<Steered>::new(units);
            let buddy = arena.buddy();
            prepare(&buddy);
            if die_before(step, || act(&buddy)).is_some() {
                buddy.audit().unwrap();
                break;
            }
            go_on(&buddy, lost, step);
        }
    }
}

/// Checks what is left for others: all units except the lost ones, at every order, except the blocks that these touch.
fn go_on(buddy: &Buddy<'_, Steered>, lost: u64, step: u64) {
    let (units, oracle) = (buddy.units(), Oracle::new(buddy.units()));
    for order in (0..=buddy.max_order()).rev() {
        let mut blocks = Vec::new();
        while let Ok(index) = buddy.on(3).alloc(order) {
            blocks.push(oracle.take(3, index, order).unwrap());
        }
        let spoilt = if lost == 0 { 0 } else { lost.next_multiple_of(1 << order) + (1 << order) };
        let got = (blocks.len() as u64) << order;
        assert!(
            got + spoilt >= units >> order << order,
            "died before step {step}: {got} of {units} units left at order {order}"
        );
        for block in blocks {
            oracle.give(block).unwrap();
            buddy.on(4).free_sized(block.index, order).unwrap();
        }
    }
    let stats = buddy.stats();
    assert!(stats.used_units + stats.reserved_units <= lost, "died before step {step}: {stats:?}");
}

#[test]
fn dying_in_an_exact_allocation_costs_at_most_its_units() {
    for len in [1, 5, 31, 32, 33, 40, 63] {
        die_everywhere(|_| (), |buddy| _ = buddy.on(0).alloc_units(len), len);
        let prepare = |buddy: &Buddy<'_, Steered>| {
            let first = buddy.here().alloc_at(0, 1).unwrap();
            buddy.on(0).alloc_units(len).ok().map(|run| buddy.on(0).free(run));
            buddy.free(first).unwrap();
        };
        die_everywhere(prepare, |buddy| _ = buddy.on(0).alloc_units(len), len);
    }
    for (index, len) in [(3, 40), (20, 13), (30, 34), (0, 64), (16, 48)] {
        die_everywhere(|_| (), |buddy| _ = buddy.here().alloc_at(index, len), len);
        let prepare = |buddy: &Buddy<'_, Steered>| _ = buddy.here().alloc_at(index, len);
        die_everywhere(prepare, |buddy| _ = buddy.on(0).free(index), len);
    }
}

#[test]
fn dying_in_a_change_costs_at_most_what_is_changed() {
    for (index, len) in [(3, 40), (20, 13), (0, 32), (0, 64), (16, 48), (0, 31)] {
        let prepare = |buddy: &Buddy<'_, Steered>| _ = buddy.here().alloc_at(index, len);
        for kept in [1, 12, len - 1] {
            die_everywhere(prepare, |buddy| _ = buddy.here().shrink(index, kept), len);
            die_everywhere(prepare, |buddy| _ = buddy.here().split_off(index, kept), len);
        }
        die_everywhere(
            prepare,
            |buddy| _ = buddy.here().free_part(index, index + 1..index + 9),
            len,
        );
        die_everywhere(prepare, |buddy| _ = buddy.here().split(index, 0), len);
        for more in [1, 10, 36] {
            die_everywhere(prepare, |buddy| _ = buddy.here().grow(index, len + more), len + more);
        }
    }
}

#[test]
fn dying_in_a_batch_costs_at_most_its_blocks() {
    let batch = |buddy: &Buddy<'_, Steered>| _ = buddy.on(0).alloc_batch(0, &mut [0; 40]);
    die_everywhere(|_| (), batch, 40);
    let prepare = |buddy: &Buddy<'_, Steered>| _ = buddy.on(0).alloc_batch(0, &mut [0; 40]);
    let free =
        |buddy: &Buddy<'_, Steered>| _ = buddy.on(0).free_batch(0, &(0..40).collect::<Vec<_>>());
    die_everywhere(prepare, free, 40);
}

/// What each block costs does not grow with their number.
#[test]
fn a_split_looks_at_each_word_a_few_times() {
    for log2 in [10, 14, 16] {
        let arena = Arena::<Steered>::new(1 << log2);
        let buddy = arena.buddy();
        let block = buddy.alloc(log2).unwrap();
        let (split, steps) = count_steps(64 << log2, || buddy.here().split(block, 0)).unwrap();
        assert_eq!(split, Ok(()));
        assert!(steps < 40 << log2, "{steps} accesses for 2^{log2} blocks");
    }
}

/// Every start and length in three words, and what is then left.
#[test]
fn every_place_and_length() {
    for start in 0..70 {
        for len in 1..=96 - start {
            let shrunk = [1, len / 2, len - 1].map(|units| Op::Run(Shrink { pick: 0, units }));
            let grown = Op::Run(grow_by(17));
            let ops = [Op::Run(at(start, len)), Op::Inspect, grown, Op::Inspect];
            let ops =
                ops.into_iter().chain(shrunk).chain([Op::Inspect, Op::Run(FREE), Op::Inspect]);
            let arena: Arena = Arena::new(96);
            run(&Program::new(96, ops), &arena.buddy()).unwrap();
        }
    }
}

/// In the last unit of a word, a reservation and the head of a run across words only differ by what the next word has.
#[test]
fn a_head_in_the_last_unit_of_a_word_is_not_reserved() {
    for units in [2, 33, 65] {
        let arena: Arena = Arena::new(128);
        let buddy = arena.buddy();
        let cpu = buddy.here();
        buddy.reserve(27..31).unwrap();
        assert_eq!(cpu.alloc_at(31, units), Ok(31));
        assert_eq!(buddy.len_of(31), Ok(units));
        assert_eq!(buddy.release(27..32), Err(RangeError::NotReserved { unit: 31 }));
        assert_eq!(buddy.stats().reserved_units, 4);
        let run = Piece::Run { index: 31, len: units };
        let mut pieces = Vec::new();
        buddy.walk(|piece| pieces.push(piece));
        assert!(pieces.contains(&Piece::Reserved { index: 27, len: 4 }) && pieces.contains(&run));
        assert_eq!(
            buddy.free_sized(31, 0),
            Err(FreeError::WrongLength { index: 31, units: 1, actual: units })
        );
        buddy.audit().unwrap();
        assert_eq!(buddy.free(31), Ok(units));
        buddy.reserve(31..33).unwrap();
        assert_eq!(buddy.free(31), Err(FreeError::Reserved { index: 31 }));
        buddy.release(27..33).unwrap();
        assert_eq!(buddy.stats().free_units, 128);
    }
}

#[test]
fn refusals_name_what_is_wrong() {
    let arena: Arena = Arena::new(100);
    let buddy = arena.buddy();
    assert_eq!(buddy.here().alloc_units(0), Err(RequestError::Units { units: 0, max: 100 }));
    assert_eq!(buddy.here().alloc_units(101), Err(RequestError::Units { units: 101, max: 100 }));
    let huge = Request::units(1).aligned(7);
    assert_eq!(buddy.here().request(huge), Err(RequestError::OrderTooLarge { order: 7, max: 6 }));
    let outside = RequestError::OutOfRange { start: 99, end: 101, units: 100 };
    assert_eq!(buddy.here().alloc_at(99, 2), Err(outside));
    let run = buddy.here().alloc_at(10, 50).unwrap();
    assert_eq!(buddy.here().alloc_at(0, 11), Err(RequestError::InUse { unit: 10 }));
    for index in 11..60 {
        assert_eq!(buddy.free(index), Err(FreeError::NotABlock { index }));
    }
    let wrong = FreeError::WrongLength { index: run, units: 2, actual: 50 };
    assert_eq!(buddy.free_sized(run, 1), Err(wrong));
    assert!(buddy.release(10..11).is_err(), "an open head is not reserved");
    assert_eq!(buddy.free(run), Ok(50));
    assert_eq!(buddy.free(run), Err(FreeError::NotAllocated { index: run }));
}
