//! Words made of the atomics of the crate `portable-atomic`: where the target has none of its own these are locks, or
//! worse, and everything else has to hold as it does with the processor's.
#![cfg(feature = "portable-atomic")]

use portable_atomic::AtomicU64;
use proptest::prelude::*;
use testkit::program::{Arena, programs, run};
use testkit::{Load, Oracle, stress};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_the_specifications(program in programs(120)) {
        let arena = Arena::<AtomicU64>::new(program.units);
        let buddy = if program.reserved { arena.all_reserved() } else { arena.buddy() };
        run(&program, &buddy).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }
}

#[test]
fn threads_share_what_there_is() {
    for units in [64_u64, 600, 8193] {
        let arena = Arena::<AtomicU64>::new(units);
        let load = Load::new(4, 3_000, 0..=units.ilog2() - 1).by_size().occupancy(70).runs(30);
        let report = stress(&arena.buddy(), &Oracle::new(units), &load).unwrap();
        assert!(report.allocations > 0, "{units} units: {report:?}");
        arena.buddy().audit().unwrap();
    }
}

/// The storage that the library itself brings.
#[test]
fn metadata_is_made_of_the_default_word() {
    static METADATA: nbbs::Metadata<{ nbbs::metadata_words(64) }> = nbbs::Metadata::new();
    let words: &[nbbs::sync::AtomicU64] = METADATA.words();
    let buddy = nbbs::Buddy::new(words, 64).unwrap();
    let block = buddy.alloc(3).unwrap();
    assert_eq!(buddy.free(block), Ok(8));
}
