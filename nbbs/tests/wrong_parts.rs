//! Tests that nothing is lost if somebody wrongly releases or frees a part of what another thread is writing: the other
//! thread finds out as it ends, and frees what is left.

use std::cell::RefCell;

use nbbs::{Buddy, FreeError, Piece, RangeError, RequestError, ResizeError};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Together, Turn, all_schedules, follow};

type Stepped<'a> = Buddy<'a, Steered>;
type Change = fn(&Stepped<'_>) -> Result<(), ResizeError>;
type Mistake = fn(&Stepped<'_>) -> bool;

/// What can be seen to be in use or reserved.
fn seen(buddy: &Stepped<'_>) -> Vec<Piece> {
    let mut seen = Vec::new();
    buddy.walk(|piece| {
        if !matches!(piece, Piece::Free { .. }) {
            seen.push(piece);
        }
    });
    seen
}

/// The owner of units 40 to 119 changes them, and somebody makes a mistake at any of its steps. Returns in how many
/// schedules the mistake was accepted.
fn change_beside(change: Change, mistake: Mistake) -> u32 {
    let accepted = RefCell::new(0);
    let race = |together: &mut Together<'_>| {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        let index = buddy.on(0).alloc_at(40, 80).unwrap();
        let (mut changed, mut is_accepted) = (None, false);
        together(vec![
            Box::new(|| {
                changed = Some(change(&buddy));
                Ok(())
            }),
            Box::new(|| {
                is_accepted = mistake(&buddy);
                Ok(())
            }),
        ])?;
        if is_accepted {
            *accepted.borrow_mut() += 1;
            assert_eq!(changed, Some(Err(FreeError::NotAllocated { index }.into())));
            assert_eq!(seen(&buddy), [], "lost");
        }
        buddy.audit().unwrap();
        Ok(())
    };
    all_schedules(1, race).unwrap_or_else(|culprit| panic!("{culprit}"));
    accepted.into_inner()
}

#[test]
fn a_part_of_the_head_of_a_changing_run_is_released() {
    let changes: [Change; 4] = [
        |buddy| buddy.on(0).grow(40, 120),
        |buddy| buddy.on(0).shrink(40, 50),
        |buddy| buddy.on(0).split(40, 3),
        |buddy| buddy.on(0).free_part(40, 70..100),
    ];
    let mistakes: [Mistake; 4] = [
        |buddy| buddy.release(40..63).is_ok(),
        |buddy| buddy.release(45..50).is_ok(),
        |buddy| buddy.release(62..63).is_ok(),
        |buddy| buddy.on(1).free_sized(63, 0).is_ok(),
    ];
    for change in changes {
        let accepted = mistakes.map(|mistake| change_beside(change, mistake));
        assert!(accepted.iter().all(|&times| times > 0), "{accepted:?}");
    }
}

/// While lane 1 holds units 0 to 63, `refused` is stopped after each of its steps, and somebody makes a mistake. Returns
/// how often that was accepted.
fn refuse_below_a_block(refused: fn(&Stepped<'_>), mistake: Mistake) -> u32 {
    let mut times = 0;
    for step in 1..40 {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        let block = buddy.on(1).alloc_at(0, 64).unwrap();
        let mut is_accepted = false;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                refused(&buddy);
                Ok(())
            }),
            Box::new(|| {
                is_accepted = mistake(&buddy);
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1)], bodies).unwrap();
        times += u32::from(is_accepted);
        assert!(buddy.audit().is_ok(), "after {step} steps: {:?}", buddy.audit());
        // Nobody is at work, and nobody has died: nothing is in the way of a cut.
        buddy.on(1).split_off(block, 36).unwrap();
        buddy.on(1).free(36).unwrap();
        buddy.on(1).free(block).unwrap();
        // What splits the slot would bring to light what was left below it.
        let unit = buddy.on(1).alloc_at(33, 1).unwrap();
        buddy.on(1).free(unit).unwrap();
        assert_eq!(seen(&buddy), [], "lost, after {step} steps");
    }
    times
}

#[test]
fn the_head_of_a_refused_run_is_freed() {
    let refused = |buddy: &Stepped<'_>| {
        let answer = buddy.on(0).alloc_at(60, 40);
        assert!(matches!(answer, Err(RequestError::InUse { .. })), "{answer:?}");
    };
    let mistakes: [Mistake; 3] = [
        |buddy| buddy.on(2).free_sized(63, 0).is_ok(),
        |buddy| buddy.release(60..63).is_ok(),
        |buddy| buddy.release(61..62).is_ok(),
    ];
    for mistake in mistakes {
        assert!(refuse_below_a_block(refused, mistake) > 0);
    }
}

/// A reservation that is refused, for the unit behind it or for a block around it that goes meanwhile, takes back what
/// it has written. Of what somebody else was granted there, after a part was wrongly released, it takes nothing, whatever
/// that looks like: an open head in the last unit of the word, a block, or a run that is just then being shrunk.
#[test]
fn what_was_granted_meanwhile_stays() {
    let (mut granted, mut shrunk) = (0, 0);
    for (released, index, len) in [
        (25..32, 31, 3),
        (25..32, 28, 6),
        (25..32, 25, 7),
        (25..32, 25, 3),
        (20..32, 20, 14),
        (20..32, 31, 3),
        (21..32, 31, 1),
    ] {
        for number in 0..480 {
            let (around, of_shrink, step) =
                (number % 2 == 1, [0, 3, 5, 8][number / 2 % 4], number as u64 / 8);
            let arena = Arena::<Steered>::new(1024);
            let buddy = arena.buddy();
            let (at, units) = if around { (0, 32) } else { (35, 1) };
            let in_the_way = buddy.on(3).alloc_at(at, units).unwrap();
            let (mut is_granted, mut is_shrunk) = (false, false);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(|| {
                    let answer = buddy.reserve(if around { 20..32 } else { 20..40 });
                    assert!(around || matches!(answer, Err(RangeError::InUse { .. })));
                    Ok(())
                }),
                Box::new(|| {
                    let is_released = buddy.release(released.clone()).is_ok();
                    if around {
                        buddy.on(3).free(in_the_way).unwrap();
                    }
                    is_granted = is_released && buddy.on(2).alloc_at(index, len).is_ok();
                    Ok(())
                }),
                Box::new(|| {
                    if buddy.len_of(index) == Ok(len) && len > 1 {
                        buddy.on(2).shrink(index, len - 1).unwrap();
                        is_shrunk = true;
                    }
                    Ok(())
                }),
            ];
            let turns = [Turn::steps(0, step), Turn::rest(1), Turn::steps(2, of_shrink)];
            follow(&turns, bodies).unwrap();
            if is_granted {
                granted += 1;
                shrunk += u32::from(is_shrunk);
                let left = len - u64::from(is_shrunk);
                assert_eq!(
                    buddy.len_of(index),
                    Ok(left),
                    "{released:?}, {index}, after {step} steps"
                );
                assert!(buddy.on(4).alloc_at(index, 1).is_err());
                assert_eq!(buddy.free(index), Ok(left));
            }
        }
    }
    assert!(granted > 0 && shrunk > 0, "{granted} granted, {shrunk} shrunk");
}

/// Somebody frees a block that its owner cuts, and releases units that the cut has written below it: the cut takes back
/// the others.
#[test]
fn what_a_refused_cut_has_written_is_taken_back() {
    let cuts: [Change; 3] = [
        |buddy| buddy.on(0).shrink(0, 10),
        |buddy| buddy.on(0).free_part(0, 10..37),
        |buddy| buddy.on(0).split(0, 1),
    ];
    let mut met = 0;
    for cut in cuts {
        for number in 0..120 {
            let (step, order) = (number / 3, [5, 6, 9][number as usize % 3]);
            let arena = Arena::<Steered>::new(1024);
            let buddy = arena.buddy();
            let index = buddy.on(0).alloc(order).unwrap();
            let (mut is_released, mut is_freed, mut answer) = (false, false, None);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(|| {
                    answer = Some(cut(&buddy));
                    Ok(())
                }),
                Box::new(|| {
                    is_released = buddy.release(3..8).is_ok();
                    is_freed = buddy.on(1).free_sized(index, order).is_ok();
                    Ok(())
                }),
            ];
            follow(&[Turn::steps(0, step), Turn::rest(1)], bodies).unwrap();
            if is_released && is_freed {
                met += 1;
                assert_eq!(answer, Some(Err(FreeError::NotAllocated { index }.into())));
                assert!(
                    buddy.audit().is_ok(),
                    "order {order}, after {step} steps: {:?}",
                    buddy.audit()
                );
                assert_eq!(buddy.count_free(), 1024);
            }
        }
    }
    assert!(met > 5, "{met}");
}

/// Somebody frees the head of a run that is just then changed, and another run that reaches from in front of it to what
/// is left is refused: it gives back all of its units, though rests stand behind them.
#[test]
fn a_run_refused_in_front_of_rests_without_a_head_is_given_back() {
    let mut met = 0;
    for step in 0..40 {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        buddy.on(0).alloc_at(63, 65).unwrap();
        let (mut is_freed, mut refused) = (false, false);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                _ = buddy.on(0).grow(63, 200);
                Ok(())
            }),
            Box::new(|| {
                is_freed = buddy.on(1).free_sized(63, 0).is_ok();
                refused = is_freed && buddy.on(2).alloc_at(20, 100).is_err();
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1)], bodies).unwrap();
        if refused {
            met += 1;
            assert_eq!(seen(&buddy), [], "lost, after {step} steps");
            assert!(buddy.audit().is_ok());
        }
    }
    assert!(met > 0);
}

/// Somebody frees the last unit of a head that is being claimed, reserves it, and frees what now looks like a run. The
/// claimer, which is refused further on, finds that the rests it had claimed are gone, and ends.
#[test]
fn a_refused_run_whose_rests_were_freed_ends() {
    let mut met = 0;
    for step in 0..40 {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        let (mut are_freed, mut claimed) = (false, None);
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                claimed = Some(buddy.on(0).alloc_at(20, 100));
                Ok(())
            }),
            Box::new(|| {
                are_freed = buddy.on(1).free_sized(31, 0).is_ok()
                    && buddy.reserve(31..32).is_ok()
                    && buddy.on(1).free(31).is_ok();
                _ = buddy.on(1).alloc_at(119, 1);
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, step), Turn::rest(1)], bodies).unwrap();
        met += u32::from(are_freed && claimed.unwrap().is_err());
    }
    assert!(met > 0);
}

/// Somebody frees the head of a run that is being claimed, and all around it is allocated as a block. Below that the
/// run's rests are claimed, and in front of them, from an earlier look, what another call asks for. Both are refused. The
/// rests of the other call do not stay, as nobody could free them; a run may, until the block is free.
#[test]
fn a_claim_refused_in_front_of_rests_without_a_head() {
    let claims = [(500, 12 + 64), (512, 64), (512 + 32, 32)];
    let stops = (0..20).flat_map(|first| (1..4).map(move |second| (first, second)));
    for (start, len) in claims {
        let (mut met, mut stayed) = (0, 0);
        for (first, second) in stops.clone() {
            let arena = Arena::<Steered>::new(8192);
            let buddy = arena.buddy();
            let (mut is_freed, mut block, mut refused) = (false, None, false);
            let bodies: Vec<Body<'_>> = vec![
                Box::new(|| {
                    _ = buddy.on(0).alloc_at(512 + 63, 65);
                    Ok(())
                }),
                Box::new(|| {
                    is_freed = buddy.on(1).free_sized(512 + 63, 0).is_ok();
                    block = buddy.on(2).alloc_at(512, 512).ok();
                    Ok(())
                }),
                Box::new(|| {
                    refused = buddy.on(3).alloc_at(start, len).is_err();
                    Ok(())
                }),
            ];
            let turns =
                [Turn::steps(0, first), Turn::rest(1), Turn::steps(0, second), Turn::rest(2)];
            follow(&turns, bodies).unwrap();
            if is_freed && refused && block.is_some_and(|block| buddy.free(block).is_ok()) {
                met += 1;
                buddy.mend();
                let left = seen(&buddy);
                stayed += left.len();
                if start < 512 {
                    assert_eq!(left, [], "stopped after {first} steps and {second}");
                }
                left.into_iter().for_each(|_| _ = buddy.free(start).unwrap());
                assert_eq!((buddy.count_free(), seen(&buddy)), (8192, vec![]));
                buddy.audit().unwrap();
            }
        }
        assert!(met > 10 && (stayed > 0) == (start >= 512), "{start}: {met}, {stayed}");
    }
}
