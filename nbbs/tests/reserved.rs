//! Tests units that are never handed out: at construction, and later, while others allocate.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nbbs::sync::Word;
use nbbs::{AllocError, Buddy, FreeError, RangeError};
use testkit::counting::{Counted, count};
use testkit::program::{Arena, Body, Op, Program, Step, run};
use testkit::steered::{Steered, Turn, follow, jitter};
use testkit::{Load, Oracle, Violation, stress_beside};

#[test]
fn a_reservation_of_every_place_and_length_in_two_words() {
    for start in 0..64 {
        for end in start + 1..=64 {
            let ops = [
                Op::Reserve { start, end },
                Op::Inspect,
                Op::Drain { order: 3 },
                Op::Drain { order: 0 },
            ];
            let arena: Arena = Arena::new(64);
            run(&Program::new(64, ops), &arena.buddy()).unwrap();
        }
    }
}

#[test]
fn reservations_across_levels() {
    let units = 8193 + 600;
    for (start, end) in
        [(0, 512), (511, 513), (1, 8192), (8192, 8193), (8190, units), (0, units), (4096, 4608)]
    {
        let orders = [13, 12, 9, 8, 5, 4];
        let drains = orders.map(|order| Op::Drain { order });
        let within = [
            Op::Release { start: start + (end - start) / 2, end },
            Op::Inspect,
            Op::Alloc { order: 0 },
            Op::Release { start, end },
            Op::Reserve { start, end: start + 1 },
            Op::Inspect,
        ];
        let ops = [Op::Reserve { start, end }, Op::Inspect].into_iter().chain(drains).chain(within);
        let arena: Arena = Arena::new(units);
        run(&Program::new(units, ops), &arena.buddy()).unwrap();
    }
}

/// Memory as firmware describes it: nothing is usable until a range is given.
#[test]
fn everything_reserved_then_given_range_by_range() {
    for units in [1, 31, 33, 512, 700, 8193, 20_000] {
        let third = units / 3;
        let ops = [
            Op::Alloc { order: 0 },
            Op::Release { start: third, end: units - third },
            Op::Drain { order: (units - 2 * third).ilog2() },
            Op::Alloc { order: 0 },
            Op::Release { start: third, end: third + 1 },
            Op::FreeAt { index: 0 },
        ];
        let steps = ops.into_iter().map(|op| Step { lane: 3, op }).collect();
        let program = Program { units, reserved: true, steps };
        let arena: Arena = Arena::new(units);
        let summary = run(&program, &arena.all_reserved()).unwrap();
        assert!(summary.granted > units / 4 && summary.exhausted > 0, "{units} units: {summary:?}");
    }
}

#[test]
fn reserved_construction_overwrites_what_was_there() {
    let arena: Arena = Arena::new(100);
    arena.words().iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    let buddy = arena.all_reserved();
    buddy.audit().unwrap();
    assert_eq!(buddy.stats().reserved_units, 100);
    assert_eq!(buddy.alloc(0), Err(AllocError::Exhausted { units: 1 }));
    buddy.release(0..100).unwrap();
    assert_eq!(buddy.alloc(6), Ok(0));
    buddy.audit().unwrap();
}

#[test]
fn a_refused_reservation_leaves_nothing_behind() {
    let arena: Arena = Arena::new(2048);
    let buddy = arena.buddy();
    buddy.reserve(1700..1701).unwrap();
    let before = buddy.stats();
    assert_eq!(buddy.reserve(100..1800), Err(RangeError::InUse { unit: 1700 }));
    assert_eq!(buddy.stats(), before);
    buddy.audit().unwrap();
    assert_eq!(buddy.release(1690..1710), Err(RangeError::NotReserved { unit: 1690 }));
    assert_eq!(buddy.stats(), before);
    assert_eq!(buddy.free(1700), Err(FreeError::Reserved { index: 1700 }));
    buddy.release(1700..1701).unwrap();
    assert_eq!(buddy.alloc(11), Ok(0));
    buddy.audit().unwrap();
}

/// Reserves random ranges and releases them again, as long as the others run, and records this in the owner map.
fn reserve<W: Word>(
    buddy: &Buddy<'_, W>,
    oracle: &Oracle,
    running: &AtomicBool,
    reserved: &AtomicU64,
) -> Result<(), Violation> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut reservations = Vec::new();
    while running.load(Ordering::Relaxed) || reserved.load(Ordering::Relaxed) == 0 {
        let start = random.u64(0..buddy.units());
        let end = (start + 1 + random.u64(0..80)).min(buddy.units());
        if reservations.len() < 4 && buddy.reserve(start..end).is_ok() {
            oracle.reserve(start..end)?;
            reservations.push(start..end);
            reserved.fetch_add(1, Ordering::Relaxed);
        } else if !reservations.is_empty() {
            let range = reservations.swap_remove(random.usize(..reservations.len()));
            release(buddy, oracle, range)?;
        }
    }
    reservations.into_iter().try_for_each(|range| release(buddy, oracle, range))
}

fn release<W: Word>(
    buddy: &Buddy<'_, W>,
    oracle: &Oracle,
    range: std::ops::Range<u64>,
) -> Result<(), Violation> {
    oracle.release(range.clone())?;
    let question = format!("release({range:?})");
    buddy.release(range).map_err(|error| Violation::wrong(question, "done", error))
}

fn check_reserving<W: Word + Default>(units: u64, load: &Load) {
    let arena = Arena::<W>::new(units);
    let buddy = arena.buddy();
    let (oracle, reserved) = (Oracle::of(&buddy), AtomicU64::new(0));
    let side = |running: &AtomicBool| match load.jitter {
        0 => reserve(&buddy, &oracle, running, &reserved),
        one_in => jitter(99, one_in, || reserve(&buddy, &oracle, running, &reserved)),
    };
    stress_beside(&buddy, &oracle, load, side)
        .unwrap_or_else(|violation| panic!("{violation}\nwith {units} units and {load:?}"));
    buddy.audit().unwrap_or_else(|broken| panic!("{broken}\nwith {units} units and {load:?}"));
}

#[test]
fn reservations_come_and_go_while_others_allocate() {
    for units in [20_u64, 64, 100, 600, 2048] {
        for threads in [1, 2, 4] {
            for occupancy in [20, 60] {
                let load = Load::new(threads, 10_000, 0..=units.ilog2().min(9)).by_size();
                check_reserving::<AtomicU64>(units, &load.clone().occupancy(occupancy));
                let jittered = Load { operations: 3_000, ..load }.occupancy(occupancy).jitter(40);
                check_reserving::<Steered>(units, &jittered);
            }
        }
    }
}

/// Words of free memory, the slots above them, and what is lowered above.
#[test]
fn a_reservation_costs_what_is_said() {
    for units in [1 << 12, 1 << 18] {
        for (start, len) in [(0, 1), (0, 512), (512, 1024), (5, 1000), (1000, 3000), (0, 1 << 12)] {
            let arena = Arena::<Counted>::new(units);
            let (_, counts) = count(|| arena.buddy().reserve(start..start + len).unwrap());
            let swaps = counts.swaps;
            let touched = |size: u64| (start + len).div_ceil(size) - start / size;
            // Those of each level: of 32 units, of 512, and so on.
            let sizes = (0..).map(|level| 32 << (4 * level)).take_while(|&size| size < units);
            let (levels, slots) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + touched(size)));
            let most = touched(32) + slots + 3 * touched(512) * levels;
            assert!(swaps <= most, "{units}, {start}, {len}: {swaps} swaps, {most} at most");
            let is_whole = units == 1 << 12 && start % 512 == 0 && len % 512 == 0;
            assert!(!is_whole || swaps == 38 * len / 512, "{start}, {len}: {swaps} swaps");
        }
    }
}

/// A reservation, like a claim by an old cursor, stands below a block that is held until its caller looks up. A wrong
/// `release` or free at that moment takes it back: that must not harm the block, nor leave anything below it.
#[test]
fn what_is_wrongly_freed_below_a_block_leaves_the_block_as_it_is() {
    below_a_block(
        |buddy, unit| buddy.reserve(unit..unit + 4).is_err(),
        |buddy, unit| buddy.release(unit..unit + 4).is_ok(),
    );
    below_a_block(
        |buddy, unit| buddy.on(1).alloc(0).is_ok_and(|other| other != unit),
        |buddy, unit| buddy.free_sized(unit, 0).is_ok(),
    );
}

/// Tries `wrong` before each step of `claim`, which claims at a unit below a block.
fn below_a_block(
    claim: impl Fn(&Buddy<'_, Steered>, u64) -> bool + Sync,
    wrong: impl Fn(&Buddy<'_, Steered>, u64) -> bool + Sync,
) {
    let mut accepted = 0;
    for step in 0.. {
        let arena = Arena::<Steered>::new(1 << 10);
        // Leaves a cursor at the unit.
        let unit = arena.buddy().on(1).alloc(0).unwrap();
        arena.buddy().on(0).free(unit).unwrap();
        let block = arena.buddy().on(0).alloc_at(unit >> 9 << 9, 1 << 9).unwrap();
        let (has_ended, answer) = (AtomicBool::new(false), Mutex::new(None));
        let bodies: [Body<'_>; 2] = [
            Box::new(|| {
                assert!(claim(&arena.buddy(), unit), "step {step}");
                has_ended.store(true, Ordering::Relaxed);
                Ok(())
            }),
            Box::new(|| {
                let is_late = has_ended.load(Ordering::Relaxed);
                *answer.lock().unwrap() = (!is_late).then(|| wrong(&arena.buddy(), unit));
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies.into()).unwrap();
        let Some(is_accepted) = answer.into_inner().unwrap() else { break };
        accepted += u32::from(is_accepted);

        assert_eq!(arena.buddy().len_of(block), Ok(1 << 9), "step {step}");
        let audit = arena.buddy().audit();
        assert!(audit.is_ok(), "step {step}: {audit:?}");
    }
    assert!(accepted > 0, "no step at which the claim stands");
}
