//! What the fuzzer has kept, replayed: every input that once reached something new.

use std::sync::atomic::AtomicU64;

use testkit::corpus;
use testkit::program::{Arena, CacheProgram, Program, Race, run};
use testkit::steered::replay;

/// Calls `check` with each input of a fuzz target's corpus, and its name.
fn each_of(target: &str, check: impl Fn(&[u8], &str)) {
    let inputs = corpus(target).expect("the archive can be read");
    assert!(inputs.len() >= 10, "{target} has {} inputs", inputs.len());
    inputs.iter().for_each(|(name, bytes)| check(bytes, name));
}

#[test]
fn programs() {
    each_of("programs", |bytes, name| {
        let program = Program::from_bytes(bytes);
        let arena = Arena::<AtomicU64>::new(program.units);
        let buddy = if program.reserved { arena.all_reserved() } else { arena.buddy() };
        run(&program, &buddy).unwrap_or_else(|failure| panic!("{name}: {failure}\n{program:?}"));
    });
}

#[test]
fn races() {
    each_of("races", |bytes, name| {
        let (race, schedule) = Race::from_bytes(bytes);
        let (_, result) = replay(&race, schedule);
        result.unwrap_or_else(|violation| panic!("{name}: {violation}\n{race:?} {schedule:?}"));
    });
}

#[test]
fn caches() {
    each_of("caches", |bytes, name| {
        let program = CacheProgram::from_bytes(bytes);
        program.run().unwrap_or_else(|violation| panic!("{name}: {violation}\n{program:?}"));
    });
}
