//! What the fuzzer has kept, replayed: every input that once reached something new.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use testkit::program::{Arena, Program, Race, run};
use testkit::steered::replay;

/// Calls `check` with each input of a fuzz target's corpus.
fn each_of(target: &str, check: impl Fn(&[u8], &Path)) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verify/fuzz/corpus").join(target);
    let inputs = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{corpus:?}: {error}"));
    let mut checked = 0;
    for input in inputs {
        let path = input.expect("the folder can be read").path();
        check(&fs::read(&path).expect("the input can be read"), &path);
        checked += 1;
    }
    assert!(checked >= 10, "{corpus:?} has {checked} inputs");
}

#[test]
fn programs() {
    each_of("programs", |bytes, path| {
        let program = Program::from_bytes(bytes);
        let arena = Arena::<AtomicU64>::new(program.units);
        let buddy = if program.reserved { arena.all_reserved() } else { arena.buddy() };
        run(&program, &buddy).unwrap_or_else(|failure| panic!("{path:?}: {failure}\n{program:?}"));
    });
}

#[test]
fn races() {
    each_of("races", |bytes, path| {
        let (race, schedule) = Race::from_bytes(bytes);
        let (_, result) = replay(&race, schedule);
        result.unwrap_or_else(|violation| panic!("{path:?}: {violation}\n{race:?} {schedule:?}"));
    });
}
