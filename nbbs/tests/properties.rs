//! Tests random programs on random arenas, and checks every answer against the specification.

use nbbs::Buddy;
use proptest::prelude::*;
use testkit::program::{Arena, BOUNDARIES, CacheProgram, Op, Program, geometries, programs, run};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns a fresh arena as the program demands it.
fn subject<'a>(program: &Program, arena: &'a Arena) -> Buddy<'a> {
    if program.reserved { arena.all_reserved() } else { arena.buddy() }
}

fn check(program: &Program) -> Result<(), TestCaseError> {
    let arena = Arena::new(program.units);
    let summary = run(program, &subject(program, &arena));
    summary.map(|_| ()).map_err(|failure| TestCaseError::fail(failure.to_string()))
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn every_answer_is_the_specifications(program in programs(120)) {
        check(&program)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn long_programs_keep_to_the_specification(program in programs(1500)) {
        check(&program)?;
    }

    /// Blocks of several CPUs, through caches with small caps.
    #[test]
    fn caches_keep_to_the_specification(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let program = CacheProgram::from_bytes(&bytes);
        let answer = program.run();
        prop_assert!(answer.is_ok(), "{:?}: {program:?}", answer);
    }

    /// Fills the arena with one order, frees some, and asks for every order.
    #[test]
    fn no_refusal_is_false_at_any_fill(
        units in geometries(),
        fill in 0_u32..5,
        seed in any::<u64>(),
        freed in 0_usize..300,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let max = units.ilog2();
        let fill = fill.max(max.saturating_sub(11)).min(max);
        let full = (0..units >> fill).map(|_| Op::Alloc { order: fill });
        let scattered: Vec<Op> = (0..freed).map(|_| Op::FreeSized { pick: random.usize(..) }).collect();
        let every_order = (0..=max).rev().map(|order| Op::Drain { order });
        let every_order = every_order.filter(|op| !matches!(op, Op::Drain { order } if units >> order > 1 << 12));
        check(&Program::new(units, full.chain(scattered).chain(every_order)))?;
    }
}

/// Each boundary size in turn, so that none depends on chance.
#[test]
fn boundary_sizes_are_whole_and_exact() {
    for units in BOUNDARIES {
        let max = units.ilog2();
        // The largest order, then ever smaller ones in what is left; then the same backwards.
        let down = (0..=max).rev().chain(0..=max).map(|order| Op::Alloc { order });
        let frees = (0..2 * max as usize).map(|step| Op::Free { pick: 7 * step });
        let up = (0..=max).map(|order| Op::Alloc { order });
        let ops = down.chain(frees).chain(up).chain([Op::Inspect]);
        let program = Program::new(units, ops);
        let arena = Arena::new(units);
        let summary = run(&program, &subject(&program, &arena)).unwrap();
        assert!(summary.granted > u64::from(max), "{units} units: {summary:?}");
    }
}
