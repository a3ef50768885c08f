//! Runs operations one after the other, and checks every answer against the specification.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::program::{Arena, Program, run};

fuzz_target!(|bytes: &[u8]| {
    let program = Program::from_bytes(bytes);
    let arena = Arena::<std::sync::atomic::AtomicU64>::new(program.units);
    let buddy = if program.reserved { arena.all_reserved() } else { arena.buddy() };
    if let Err(failure) = run(&program, &buddy) {
        panic!("{failure}\nin {program:?}");
    }
});
