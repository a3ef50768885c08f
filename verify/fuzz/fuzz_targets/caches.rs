//! Runs operations of several CPUs, one after the other, on caches in front of a small arena: the owner map and the
//! specification judge every answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::program::CacheProgram;

fuzz_target!(|bytes: &[u8]| {
    let program = CacheProgram::from_bytes(bytes);
    if let Err(violation) = program.run() {
        panic!("{violation}\nin {program:?}");
    }
});
