//! Schedules that are written down, and all schedules with few preemptions.

use std::sync::Mutex;

use nbbs::sync::{Ordering::SeqCst, Word};
use testkit::Violation;
use testkit::program::Body;
use testkit::steered::{Steered, Together, Turn, all_schedules, follow, pause};

/// Lanes that take so many steps each and note which lane took them, in a race that never goes wrong.
fn note_steps(counts: &[u64], together: &mut Together<'_>) -> Result<Vec<usize>, Violation> {
    let (word, order) = (Steered::default(), Mutex::new(Vec::new()));
    let bodies = counts.iter().enumerate().map(|(lane, &count)| -> Body<'_> {
        let (word, order) = (&word, &order);
        Box::new(move || {
            for _ in 0..count {
                word.load(SeqCst);
                order.lock().unwrap().push(lane);
            }
            Ok(())
        })
    });
    together(bodies.collect())?;
    Ok(order.into_inner().unwrap())
}

#[test]
fn a_script_is_followed() {
    let script = [Turn::steps(1, 2), Turn::steps(0, 1), Turn::steps(1, 1), Turn::rest(2)];
    let order = note_steps(&[2, 4, 1], &mut |bodies| follow(&script, bodies));
    assert_eq!(order.unwrap(), [1, 1, 0, 1, 2, 0, 1]);
    // Turns of lanes that are done are left out.
    let script = [Turn::rest(2), Turn::steps(2, 5), Turn::steps(1, 0), Turn::steps(1, 1)];
    let order = note_steps(&[1, 2, 1], &mut |bodies| follow(&script, bodies));
    assert_eq!(order.unwrap(), [2, 1, 0, 1]);
}

/// The number of ways to interleave, as long as there are preemptions enough.
#[test]
fn all_schedules_are_run_once() {
    for (counts, preemptions, expected) in [
        (&[2, 2][..], 0, 2), // AABB, BBAA
        (&[2, 2], 1, 4),     // and ABBA, BAAB
        (&[2, 2], 2, 6),     // and ABAB, BABA
        (&[2, 2], 9, 6),
        (&[1, 1, 1], 0, 6),
        (&[3, 3], 9, 20),
        (&[2, 2, 2], 9, 90),
        (&[5], 9, 1),
        (&[0, 3], 9, 4), // a lane without steps ends before any step, or after all
    ] {
        let seen = Mutex::new(Vec::new());
        let schedules = all_schedules(preemptions, |together| {
            seen.lock().unwrap().push(note_steps(counts, together)?);
            Ok(())
        });
        assert_eq!(schedules.unwrap(), expected, "{counts:?}, {preemptions} preemptions");
        let mut seen = seen.into_inner().unwrap();
        assert_eq!(seen.len() as u64, expected);
        seen.sort();
        seen.dedup();
        assert!(seen.len() as u64 == expected || counts.contains(&0), "{counts:?}: some run twice");
    }
}

/// Two increments by a load and a store each: one is lost if another comes between.
fn count_to_two(together: &mut Together<'_>, locked: bool) -> Result<(), Violation> {
    let (word, lock) = (Steered::default(), Steered::default());
    let increment = || -> Body<'_> {
        Box::new(|| {
            while locked && lock.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
                pause();
            }
            word.store(word.load(SeqCst) + 1, SeqCst);
            lock.store(0, SeqCst);
            Ok(())
        })
    };
    together(vec![increment(), increment()])?;
    match word.load(SeqCst) {
        2 => Ok(()),
        count => Err(Violation::wrong("count", 2, count)),
    }
}

#[test]
fn a_lost_update_takes_one_preemption() {
    let explore =
        |preemptions, locked| all_schedules(preemptions, |together| count_to_two(together, locked));
    assert_eq!(explore(0, false), Ok(2));
    let culprit = explore(1, false).unwrap_err();
    assert_eq!(culprit.violation, Violation::wrong("count", 2, 1));
    assert!(explore(9, true).is_ok_and(|schedules| schedules > 10));
}

#[test]
fn what_went_wrong_can_be_followed_again() {
    let culprit = all_schedules(2, |together| count_to_two(together, false)).unwrap_err();
    let script: Vec<Turn> = culprit.lanes.iter().map(|&lane| Turn::steps(lane, 1)).collect();
    let result = count_to_two(&mut |bodies| follow(&script, bodies), false);
    assert_eq!(result, Err(culprit.violation));
}

#[test]
fn a_wait_without_an_end_is_noticed() {
    let result = all_schedules(0, |together| {
        let word = Steered::default();
        together(vec![Box::new(|| {
            while word.load(SeqCst) == 0 {
                pause();
            }
            Ok(())
        })])
    });
    assert!(matches!(result.unwrap_err().violation, Violation::Stuck { lane: 0, .. }));
}

#[test]
fn a_panic_is_a_violation() {
    let panics = |together: &mut Together<'_>| {
        let word = Steered::default();
        let body = |lane: u64| -> Body<'_> {
            let word = &word;
            Box::new(move || {
                assert!(word.load(SeqCst) + lane != 1, "a fault");
                Ok(())
            })
        };
        together(vec![body(0), body(1)])
    };
    let culprit = all_schedules(1, panics).unwrap_err();
    assert!(matches!(culprit.violation, Violation::Panicked(_)), "{culprit}");
}
