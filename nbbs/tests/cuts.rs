//! Tests changes of runs across words: refused, overtaken by a free of the same run, and beside claims under way.

use std::cell::Cell;

use nbbs::sync::{Ordering, Word};
use nbbs::{Buddy, FreeError, Piece, ResizeError};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Together, Turn, all_schedules, count_steps, die_before, follow};
use testkit::{Oracle, Violation, preemptions};

type Steers<'a> = Buddy<'a, Steered>;

/// Runs a race under every schedule with few preemptions.
fn race(race: impl Fn(&mut Together<'_>) -> Result<(), Violation>) {
    let schedules =
        all_schedules(preemptions(), race).unwrap_or_else(|culprit| panic!("{culprit}"));
    assert!(schedules > 100, "{schedules} schedules are no race");
}

/// Frees every block and run, and checks that the arena is whole then.
fn clear_up(buddy: &Steers<'_>) {
    let mut held = Vec::new();
    buddy.walk(|piece| match piece {
        Piece::Used { index, .. } | Piece::Run { index, .. } => held.push(index),
        Piece::Reserved { index, .. } => panic!("unit {index} is reserved by nobody"),
        _ => {}
    });
    held.into_iter().for_each(|index| _ = buddy.on(7).free(index).unwrap());
    buddy.audit().unwrap();
    let largest = buddy.max_order();
    let all: Vec<_> = std::iter::from_fn(|| buddy.on(7).alloc(largest).ok()).collect();
    assert_eq!(all.len() as u64, buddy.units() >> largest, "not whole: {:?}", buddy.stats());
}

/// Runs two operations on the run of `units` units at `index` that lane 0 holds; the second is a free. Under every
/// schedule with two preemptions one of them is refused, or both are done, and nothing is lost.
fn beside_a_free(
    (index, units): (u64, u64),
    change: impl Fn(&Steers<'_>, u64) -> Result<(), ResizeError> + Sync,
) {
    race(|together| {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        let run = buddy.on(0).alloc_at(index, units).unwrap();
        let (mut changed, mut freed) = (None, None);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                changed = Some(change(&buddy, run));
                Ok(())
            }),
            Box::new(|| {
                freed = Some(buddy.on(1).free(run));
                Ok(())
            }),
        ];
        together(bodies)?;
        let gone = buddy.len_of(run).is_err();
        match (changed.unwrap(), freed.unwrap()) {
            (_, Ok(_)) => assert!(gone, "the run is freed"),
            (changed, Err(FreeError::Reserved { index })) => {
                assert_eq!((changed, index), (Ok(()), run), "the free met the change");
            }
            outcome => panic!("{outcome:?}"),
        }
        clear_up(&buddy);
        Ok(())
    });
}

#[test]
fn a_shrink_beside_a_free_of_the_same_run() {
    beside_a_free((0, 512), |buddy, run| buddy.on(0).shrink(run, 100));
    beside_a_free((0, 100), |buddy, run| buddy.on(0).shrink(run, 40));
    beside_a_free((31, 70), |buddy, run| buddy.on(0).shrink(run, 40));
}

#[test]
fn a_split_beside_a_free_of_the_same_run() {
    beside_a_free((0, 64), |buddy, run| buddy.on(0).split(run, 4));
    beside_a_free((63, 6), |buddy, run| buddy.on(0).split(run, 0));
    beside_a_free((0, 512), |buddy, run| buddy.on(0).split_off(run, 70).map(|_| ()));
}

#[test]
fn a_partial_free_beside_a_free_of_the_same_run() {
    beside_a_free((0, 512), |buddy, run| buddy.on(0).free_part(run, run + 40..run + 300));
    beside_a_free((31, 70), |buddy, run| buddy.on(0).free_part(run, run + 1..run + 9));
}

#[test]
fn a_growth_beside_a_free_of_the_same_run() {
    beside_a_free((0, 5), |buddy, run| buddy.on(0).grow(run, 70));
    beside_a_free((0, 64), |buddy, run| buddy.on(0).grow(run, 100));
    beside_a_free((31, 1), |buddy, run| buddy.on(0).grow(run, 40));
}

/// While a run across words changes, its units in the first leaf word look reserved, and the last of them like a block.
/// A mistaken release or free of them may succeed: then all of the run is gone, and its owner is told.
#[test]
fn units_that_are_just_then_changing_are_released_or_freed() {
    mistaken_for(|buddy| buddy.release(40..63).is_ok());
    mistaken_for(|buddy| buddy.on(1).free(63).is_ok());
}

fn mistaken_for(mistake: fn(&Steers<'_>) -> bool) {
    type Change = fn(&Steers<'_>) -> Result<(), ResizeError>;
    let changes: [Change; 8] = [
        |buddy| buddy.on(0).grow(40, 120),
        |buddy| buddy.on(0).grow(40, 900),
        |buddy| buddy.on(0).shrink(40, 50),
        |buddy| buddy.on(0).shrink(40, 3),
        |buddy| buddy.on(0).split_off(40, 40).map(|_| ()),
        |buddy| buddy.on(0).split_off(40, 8).map(|_| ()),
        |buddy| buddy.on(0).split(40, 3),
        |buddy| buddy.on(0).free_part(40, 70..100),
    ];
    let believed = Cell::new(0);
    for (number, change) in changes.iter().enumerate() {
        let race = |together: &mut Together<'_>| {
            let arena = Arena::<Steered>::new(1024);
            let buddy = arena.buddy();
            let run = buddy.on(0).alloc_at(40, 80).unwrap();
            buddy.on(1).alloc_at(512, 1).unwrap();
            let (mut changed, mut is_believed) = (None, false);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(|| {
                    changed = Some(change(&buddy));
                    Ok(())
                }),
                Box::new(|| {
                    is_believed = mistake(&buddy);
                    Ok(())
                }),
            ];
            together(bodies)?;
            let (changed, gone) = (changed.unwrap(), buddy.len_of(run).is_err());
            let refused = matches!(changed, Err(ResizeError::InUse { unit: 512 }));
            if is_believed {
                believed.set(believed.get() + 1);
                let lost = Err(ResizeError::Free(FreeError::NotAllocated { index: run }));
                assert!(gone && changed == lost, "change {number}: {changed:?}");
                assert_eq!(buddy.stats().used_units, 1, "change {number}");
            } else {
                assert!(!gone && (changed == Ok(()) || refused), "change {number}: {changed:?}");
            }
            clear_up(&buddy);
            Ok(())
        };
        all_schedules(preemptions(), race).unwrap_or_else(|culprit| panic!("{culprit}"));
    }
    assert!(believed.get() > 100, "{} mistakes were believed", believed.get());
}

/// The growth of a closed run that meets another's unit in its leaf word is refused, and does not take the rest of the
/// word.
#[test]
fn growth_takes_what_it_says() {
    race(|together| {
        let arena = Arena::<Steered>::new(64);
        let buddy = arena.buddy();
        let run = buddy.on(0).alloc_at(2, 3).unwrap();
        let mut grown = None;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                grown = Some(buddy.on(0).grow(run, 8));
                Ok(())
            }),
            Box::new(|| {
                for _ in 0..3 {
                    if buddy.on(1).alloc_at(7, 1).is_ok() {
                        buddy.on(1).free_sized(7, 0).unwrap();
                    }
                }
                Ok(())
            }),
        ];
        together(bodies)?;
        let len = match grown.unwrap() {
            Ok(()) => 8,
            Err(ResizeError::InUse { .. }) => 3,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(buddy.len_of(run), Ok(len));
        buddy.on(0).free_units(run, len).unwrap();
        clear_up(&buddy);
        Ok(())
    });
}

const LARGE: u64 = 1 << 15;
/// The first unit of a leaf word, in the second slot of level 3.
const CUT: u64 = 8192 + 4096 + 96;

/// Lane 2 holds the first half as a block. Below it lane 0 has its cursor in the leaf word of `CUT`; lane 1 had its own
/// in the second word of level 2, and died before step `step` of a claim there.
fn a_claim_below(buddy: &Steers<'_>, step: u64) {
    for (lane, order, at) in [(0, 0, CUT), (1, 9, 8192)] {
        let others = [0..at, at + (1 << order)..LARGE];
        others.iter().for_each(|range| buddy.reserve(range.clone()).unwrap());
        assert_eq!(buddy.on(lane).alloc(order), Ok(at));
        buddy.on(lane).free(at).unwrap();
        others.into_iter().for_each(|range| buddy.release(range).unwrap());
    }
    assert_eq!(buddy.on(2).alloc_at(0, LARGE / 2), Ok(0));
    die_before(step, || buddy.on(1).alloc(9));
}

/// Runs a race of this kind beside a claim that only stands in a word of level 2.
fn beside_a_claim_below(body: impl Fn(&Steers<'_>, &mut Together<'_>) -> Result<(), Violation>) {
    let stands = |&step: &u64| {
        let arena = Arena::<Steered>::new(LARGE);
        a_claim_below(&arena.buddy(), step);
        arena.buddy().audit().is_err()
    };
    let step = (1..100).find(stands).expect("the claim is made at some step");
    race(|together| {
        let arena = Arena::<Steered>::new(LARGE);
        let buddy = arena.buddy();
        a_claim_below(&buddy, step);
        body(&buddy, together)
    });
}

/// A cut below a slot of level 3 is refused, as a claim stands in the word of level 2 below it. Meanwhile another claim
/// came into the leaf word that the cut has given back, and found the slot above it split: if that slot became free
/// without a look at the leaf word, the unit would have two owners.
#[test]
fn what_a_refused_cut_takes_back_is_merged() {
    beside_a_claim_below(|buddy, together| {
        let oracle = Oracle::new(LARGE);
        let mut cut = Ok(());
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                cut = buddy.on(2).shrink(0, CUT + 4);
                buddy.on(2).free(0).unwrap();
                Ok(())
            }),
            Box::new(|| {
                buddy.on(0).alloc(0).map_or(Ok(()), |unit| oracle.take(0, unit, 0).map(|_| ()))
            }),
        ];
        together(bodies)?;
        assert!(matches!(cut, Err(ResizeError::Contended { .. })), "{cut:?}");
        while let Ok(block) = buddy.on(3).alloc(5) {
            oracle.take(3, block, 5)?;
        }
        Ok(())
    });
}

/// The same cut, while the claim in the leaf word is undone and merged: whatever is merged first, all that the cut had
/// written comes free with the block.
#[test]
fn what_a_refused_cut_takes_back_is_free_again() {
    beside_a_claim_below(|buddy, together| {
        let mut unit = None;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                unit = buddy.on(0).alloc(0).ok();
                Ok(())
            }),
            Box::new(|| {
                let cut = buddy.on(2).shrink(0, CUT + 4);
                assert!(matches!(cut, Err(ResizeError::Contended { .. })), "{cut:?}");
                Ok(())
            }),
        ];
        together(bodies)?;
        buddy.on(2).free(0).unwrap();
        if let Some(unit) = unit {
            buddy.on(0).free(unit).unwrap();
        }
        // Everything except the claim of the lane that died.
        let free = std::iter::from_fn(|| buddy.on(3).alloc(9).ok()).count() as u64;
        assert_eq!(free, (LARGE >> 9) - 1);
        Ok(())
    });
}

/// The same cut, while two claims are undone below it: the merge of the first may free a slot of a word that the cut
/// has yet to give back, and the second takes it. It must be able to clear its block again, though rests stand beside
/// it.
#[test]
fn a_claim_beside_what_a_refused_cut_takes_back_is_undone() {
    beside_a_claim_below(|buddy, together| {
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                let cut = buddy.on(2).shrink(0, CUT + 4);
                assert!(matches!(cut, Err(ResizeError::Contended { .. })), "{cut:?}");
                Ok(())
            }),
            Box::new(|| {
                let (unit, leaf) = (buddy.on(0).alloc_at(CUT, 1), buddy.on(0).alloc_at(CUT, 32));
                assert!(unit.is_err() && leaf.is_err(), "{unit:?}, {leaf:?}: all is held");
                Ok(())
            }),
        ];
        together(bodies)?;
        buddy.on(2).free(0).unwrap();
        // Everything except the claim of the lane that died.
        let free = std::iter::from_fn(|| buddy.on(3).alloc(9).ok()).count() as u64;
        assert_eq!(free, (LARGE >> 9) - 1);
        Ok(())
    });
}

/// A leaf word that reads as one block of all its units is corrupt: that block would stand in the word above.
#[test]
fn a_corrupt_word_ends_a_free() {
    let arena = Arena::<Steered>::new(64);
    let buddy = arena.buddy();
    buddy.on(0).alloc_at(0, 31).unwrap();
    // A head and 30 rests; the last unit becomes a rest, too. The notes of lanes stand before the leaf words.
    let codes = (u64::MAX / 3 * 2) | 1;
    let leaf =
        arena.words().iter().rfind(|word| word.load(Ordering::Relaxed) == codes & !(1 << 63));
    leaf.expect("the leaf word of the run").store(codes, Ordering::Relaxed);
    count_steps(100, || _ = buddy.on(0).free(0)).unwrap();
}

/// Somebody frees a run a second time, by mistake, whose first unit is the last of a word, and that unit has become a
/// reservation since: with the same code.
#[test]
fn a_late_second_free_takes_no_reservation() {
    type Frees = fn(&Buddy<'_, Steered>) -> bool;
    let by_index: Frees = |buddy| buddy.on(1).free(31).is_ok();
    let by_units: Frees = |buddy| buddy.on(1).free_units(31, 9).is_ok();
    let shrinks: Frees = |buddy| buddy.on(1).shrink(31, 4).is_ok();
    let mut reservations = 0;
    for (step, frees) in (0..40).flat_map(|step| [by_index, by_units, shrinks].map(|by| (step, by)))
    {
        let arena = Arena::<Steered>::new(512);
        let buddy = arena.buddy();
        buddy.on(0).alloc_at(0, 1).unwrap();
        buddy.on(0).alloc_at(31, 9).unwrap();
        let (mut was_freed, mut is_reserved) = (false, false);
        let (freed, reserved) = (&mut was_freed, &mut is_reserved);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                *freed = frees(&buddy);
                Ok(())
            }),
            Box::new(|| {
                *reserved = buddy.on(0).free(31) == Ok(9) && buddy.reserve(31..32).is_ok();
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1), Turn::rest(0)], bodies)
            .unwrap_or_else(|wrong| panic!("{step}: {wrong}"));
        buddy.audit().unwrap_or_else(|broken| panic!("{step}: {broken}"));
        if is_reserved {
            reservations += 1;
            assert!(!was_freed, "{step}");
            assert_eq!(buddy.release(31..32), Ok(()), "{step}");
        }
    }
    assert!(reservations > 0);
}
