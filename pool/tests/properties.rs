//! Tests random sequences of operations against a model.

mod support;

use proptest::prelude::*;
use support::{handles, operations};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

    #[test]
    fn any_sequence(program in prop::collection::vec(any::<u8>(), 0..if cfg!(miri) { 60 } else { 400 })) {
        operations::run_all(&program);
    }

    #[test]
    fn any_sequence_of_handles(program in prop::collection::vec(any::<u8>(), 0..if cfg!(miri) { 60 } else { 200 })) {
        handles::run_all(&program);
    }
}

/// The inputs that the fuzzer has kept: each is a program.
#[test]
#[cfg_attr(miri, ignore = "reads a file")]
fn the_corpus() {
    let inputs = testkit::corpus("pool").unwrap();
    assert!(inputs.len() >= 5, "{} programs", inputs.len());
    for (name, program) in inputs {
        println!("{name}");
        operations::run_all(&program);
        handles::run_all(&program);
    }
}
