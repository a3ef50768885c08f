//! Tests the answer of a free whose block another thread frees, and allocates again, while the free looks.

use nbbs::{Buddy, FreeError};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, follow};

/// Lets `free` stop before each of its steps while `other` runs, and returns its answers.
fn stopped_everywhere<T: Send>(
    prepare: impl Fn(&Buddy<'_, Steered>),
    free: impl Fn(&Buddy<'_, Steered>) -> T + Sync,
    other: impl Fn(&Buddy<'_, Steered>) + Sync,
) -> Vec<T> {
    let mut answers = Vec::new();
    for stop in 0..60 {
        let arena = Arena::<Steered>::new(600);
        let buddy = arena.buddy();
        prepare(&buddy);
        let mut answer = None;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                answer = Some(free(&buddy));
                Ok(())
            }),
            Box::new(|| {
                other(&buddy);
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, stop), Turn::rest(1), Turn::rest(0)], bodies).unwrap();
        answers.extend(answer);
        buddy.audit().unwrap();
    }
    answers
}

/// The block was free when a second free of it came, and is held again when that free looks for the reason.
#[test]
fn a_sized_free_that_comes_too_late_names_no_other_order() {
    for (index, order) in [(0, 0), (4, 2), (32, 5), (64, 6), (0, 9)] {
        let answers = stopped_everywhere(
            |_| (),
            |buddy| buddy.on(0).free_sized(index, order),
            |buddy| _ = buddy.on(1).alloc_at(index, 1 << order).unwrap(),
        );
        let late = Err(FreeError::NotAllocated { index });
        assert!(answers.iter().all(|&answer| answer == late || answer == Ok(())), "{answers:?}");
        assert!(answers.contains(&late), "{answers:?}");
    }
}

/// The run was there when its free looked, and is gone when the free clears it.
#[test]
fn a_free_of_a_run_that_lost_says_that_nothing_is_there() {
    for (index, units) in [(3, 5), (40, 24), (3, 40), (64, 96)] {
        for sized in [true, false] {
            let answers = stopped_everywhere(
                |buddy| _ = buddy.on(0).alloc_at(index, units).unwrap(),
                |buddy| match sized {
                    true => buddy.on(0).free_units(index, units),
                    false => buddy.on(0).free(index).map(|_| ()),
                },
                |buddy| _ = buddy.on(1).free(index),
            );
            let gone = FreeError::NotAllocated { index };
            let right = |&answer: &Result<(), FreeError>| match answer {
                Ok(()) | Err(FreeError::Reserved { .. }) => true,
                // A part is gone already.
                Err(FreeError::WrongLength { actual, .. }) => sized && actual < units,
                Err(error) => error == gone,
            };
            assert!(answers.iter().all(right), "{units} at {index}: {answers:?}");
            assert!(answers.contains(&Err(gone)), "{units} at {index}: {answers:?}");
        }
    }
}
