//! A check that cannot fail is worth nothing: each of these allocators is broken on purpose, and each
//! must be caught; the sound one must not be.

mod support;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use support::{Fault, Patient};
use testkit::program::{Failure, Program, programs, run};
use testkit::{BackEnd, Checked, Load, Oracle, Violation, stress};

/// Faults that show whenever blocks are allocated and freed correctly.
const SHOW_IN_USE: [Fault; 8] = [
    Fault::HandsOutTwice,
    Fault::Misaligns,
    Fault::LeavesTheArena,
    Fault::LosesBlocks,
    Fault::FreesHalf,
    Fault::RefusesToFree,
    Fault::RefusesFalsely,
    Fault::Panics,
];

/// Faults that only show when something else is asked.
const SHOW_IN_QUESTIONS: [Fault; 5] = [
    Fault::GivesReserved,
    Fault::AcceptsBadFrees,
    Fault::ChangesOnRefusal,
    Fault::NamesTheWrongReason,
    Fault::MistakesTheOrder,
];

/// The first failure among so many random programs.
fn run_programs(fault: Fault, count: usize) -> Result<(), Failure> {
    let mut runner = TestRunner::deterministic();
    for _ in 0..count {
        let tree = programs(100).new_tree(&mut runner).expect("a strategy that rejects nothing");
        let program: Program = tree.current();
        if program.units <= 600 && !program.reserved {
            run(&program, &Patient::new(program.units, fault))?;
        }
    }
    Ok(())
}

#[test]
fn the_sound_one_passes_programs() {
    run_programs(Fault::None, 400).unwrap();
}

#[test]
fn programs_catch_every_fault() {
    for fault in SHOW_IN_USE.into_iter().chain(SHOW_IN_QUESTIONS) {
        if fault != Fault::Panics {
            assert!(run_programs(fault, 400).is_err(), "{fault:?} went unnoticed");
        }
    }
}

#[test]
fn the_sound_one_passes_the_stress() {
    let patient = Patient::new(100, Fault::None);
    let report = stress(&patient, &Oracle::of(&patient), &Load::new(3, 20_000, 0..=6)).unwrap();
    assert!(report.allocations > 10_000, "{report:?}");
    assert!(report.refusals > 100, "{report:?}");
    assert!(report.own_frees > 1_000 && report.foreign_frees > 1_000, "{report:?}");
}

/// The stress cannot tell a false refusal that later goes away: everything but that.
#[test]
fn the_stress_catches_what_shows_in_use() {
    for fault in SHOW_IN_USE {
        let patient = Patient::new(100, fault);
        let result = stress(&patient, &Oracle::of(&patient), &Load::new(3, 2_000, 0..=6));
        let right = match fault {
            // The first of two holders may have given it back before the second is noted.
            Fault::HandsOutTwice => {
                matches!(result, Err(Violation::Overlap { .. } | Violation::FreeRefused { .. }))
            }
            Fault::Misaligns => matches!(
                result,
                Err(Violation::Misaligned { .. }
                    | Violation::Overlap { .. }
                    | Violation::OutsideArena { .. }
                    | Violation::FreeRefused { .. })
            ),
            Fault::LeavesTheArena => matches!(result, Err(Violation::OutsideArena { .. })),
            Fault::RefusesToFree => matches!(result, Err(Violation::FreeRefused { .. })),
            Fault::Panics => matches!(result, Err(Violation::Panicked(_))),
            _ => matches!(result, Err(Violation::NotWhole { .. })),
        };
        assert!(right, "{fault:?} led to {result:?}");
    }
}

/// What a replay does: allocates and frees in turn, and asks at the end.
fn replay<B: BackEnd>(checked: &Checked<B>) -> Result<(), Violation> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut held = Vec::new();
    for _ in 0..2_000 {
        let order = random.u32(0..5);
        if random.bool() {
            held.extend(checked.alloc(0, order).map(|index| (index, order)));
        } else if !held.is_empty() {
            let (index, order) = held.swap_remove(random.usize(..held.len()));
            let _ = checked.free(0, index, order);
        }
        checked.violation().map_or(Ok(()), Err)?;
    }
    for (index, order) in held {
        let _ = checked.free(0, index, order);
    }
    checked.finish()
}

#[test]
fn a_checked_back_end_catches_what_shows_in_use() {
    replay(&Checked::sequential(Patient::new(200, Fault::None))).unwrap();
    replay(&Checked::concurrent(Patient::new(200, Fault::None))).unwrap();
    for fault in SHOW_IN_USE {
        if fault == Fault::Panics {
            continue;
        }
        let judged = replay(&Checked::sequential(Patient::new(200, fault)));
        assert!(judged.is_err(), "{fault:?} went unnoticed");
        if fault == Fault::RefusesFalsely {
            assert!(matches!(judged, Err(Violation::Dishonest { .. })), "{judged:?}");
        } else {
            let judged = replay(&Checked::concurrent(Patient::new(200, fault)));
            assert!(judged.is_err(), "{fault:?} went unnoticed");
        }
    }
}

#[test]
fn a_checked_back_end_catches_a_bad_free() {
    let checked = Checked::concurrent(Patient::new(64, Fault::None));
    assert!(checked.free(0, 3, 0).is_err());
    assert_eq!(checked.violation(), None);

    let checked = Checked::concurrent(Patient::new(64, Fault::AcceptsBadFrees));
    let accepted = (0..10).filter(|_| checked.free(0, 3, 0).is_ok()).count();
    assert_eq!(accepted, 1);
    assert!(matches!(checked.violation(), Some(Violation::FreeAccepted { .. })));
}
