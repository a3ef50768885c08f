//! Any sequence of operations against a model.

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

/// The corpus: one program a file, as bytes.
#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn the_corpus() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../verify/fuzz/corpus/arena");
    let files: Vec<_> = std::fs::read_dir(corpus).unwrap().collect();
    assert!(files.len() >= 5, "{} programs", files.len());
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        let program = std::fs::read(path).unwrap();
        operations::run_all(&program);
        handles::run_all(&program);
    }
}
