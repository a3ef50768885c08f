//! Tests arenas in which every counter begins at its last value, or shortly before: the version of each inner word, and
//! the epoch. `preemptions.rs` runs its races on such arenas, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use nbbs::Buddy;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use testkit::program::{Arena, Program, programs, race, races, run};
use testkit::steered::{Schedule, Steered};
use testkit::{Counters, Load, Oracle, stress};

/// Returns a handle to an arena as the program demands it, with its counters a number of steps before the end.
fn subject<'a>(
    program: &Program,
    arena: &'a Arena<Steered>,
    counters: &Counters,
    before: u64,
) -> Buddy<'a, Steered> {
    let buddy = if program.reserved { arena.all_reserved() } else { arena.buddy() };
    counters.preset(arena.words(), before);
    buddy
}

/// Runs a property that returns how many counters have wrapped: most cases must see some.
fn check<T>(cases: u32, values: T, property: impl Fn(T::Value) -> Result<usize, TestCaseError>)
where
    T: Strategy,
{
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let with_wraps = AtomicUsize::new(0);
    let judged = TestRunner::new(config).run(&values, |value| {
        // Relaxed: it is only a count.
        with_wraps.fetch_add(usize::from(property(value)? > 0), Ordering::Relaxed);
        Ok(())
    });
    judged.unwrap_or_else(|error| panic!("{error}"));
    let with_wraps = with_wraps.into_inner();
    assert!(2 * with_wraps > cases as usize, "wraps in {with_wraps} of {cases} cases only");
}

#[test]
fn there_is_a_version_for_each_inner_word_and_an_epoch() {
    for (units, count) in [(31, 0), (32, 1), (511, 1), (512, 3), (600, 4), (8192, 19), (20_000, 45)]
    {
        assert_eq!(Counters::of(&Arena::<Steered>::new(units)).count(), count, "{units} units");
    }
}

#[test]
fn every_answer_is_the_specifications() {
    check(200, (programs(120), 0_u64..2), |(program, before)| {
        let arena = Arena::new(program.units);
        let counters = Counters::of(&arena);
        let buddy = subject(&program, &arena, &counters, before);
        run(&program, &buddy).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        Ok(counters.wrapped(arena.words()))
    });
}

#[test]
fn random_races() {
    check(40, (races(4), any::<u64>()), |(of, seed)| {
        let counters = Counters::of(&Arena::<Steered>::new(of.setup.units));
        let runs = (0..100).map(|number| {
            let arena = Arena::new(of.setup.units);
            // The setup counts, too: with some steps left, the race itself reaches the end.
            let buddy = subject(&of.setup, &arena, &counters, number % 4);
            let schedule = Schedule { seed: seed ^ number, stalls: number as u32 % 5, steps: 150 };
            race(&of, &buddy, |bodies| schedule.run(bodies).map(|_| ()))
                .map_err(|found| TestCaseError::fail(format!("{found} under {schedule:?}")))?;
            Ok(counters.wrapped(arena.words()))
        });
        runs.sum()
    });
}

#[test]
fn threads_against_each_other() {
    for (units, threads) in [(64_u64, 2), (600, 4), (8193, 3), (20_000, 8)] {
        for before in 0..3 {
            let arena = Arena::<Steered>::new(units);
            let counters = Counters::of(&arena);
            counters.preset(arena.words(), before);
            let load = Load::new(threads, 2_000, 0..=units.ilog2() - 1).by_size().runs(20);
            let load = load.occupancy(60).jitter(40).seed(before);
            stress(&arena.buddy(), &Oracle::new(units), &load)
                .unwrap_or_else(|violation| panic!("{violation}\nwith {units} units and {load:?}"));
            arena.buddy().audit().unwrap();
            let wrapped = counters.wrapped(arena.words());
            assert!(2 * wrapped > counters.count(), "{wrapped} of {}", counters.count());
        }
    }
}
