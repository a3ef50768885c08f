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

#[test]
fn a_part_of_a_refused_reservation_is_released() {
    let refused = |buddy: &Stepped<'_>| {
        assert!(matches!(buddy.reserve(40..50), Err(RangeError::InUse { .. })));
    };
    assert!(refuse_below_a_block(refused, |buddy| buddy.release(42..44).is_ok()) > 0);
}

/// The reservation is refused in its second word, after the mistake was made in its first.
#[test]
fn a_part_of_what_a_reservation_takes_back_is_released() {
    let race = |together: &mut Together<'_>| {
        let arena = Arena::<Steered>::new(1024);
        let buddy = arena.buddy();
        let unit = buddy.on(1).alloc_at(80, 1).unwrap();
        together(vec![
            Box::new(|| {
                assert_eq!(buddy.reserve(40..100), Err(RangeError::InUse { unit }));
                Ok(())
            }),
            Box::new(|| {
                _ = buddy.release(42..44);
                Ok(())
            }),
        ])?;
        assert_eq!(seen(&buddy), [Piece::Used { index: unit, order: 0 }]);
        Ok(())
    };
    all_schedules(2, race).unwrap_or_else(|culprit| panic!("{culprit}"));
}
