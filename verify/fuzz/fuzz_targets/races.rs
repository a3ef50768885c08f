//! Runs operations at once, under the schedule that the bytes choose; the owner map judges them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::program::Race;
use testkit::steered::replay;

fuzz_target!(|bytes: &[u8]| {
    let (race, schedule) = Race::from_bytes(bytes);
    if let (_, Err(violation)) = replay(&race, schedule) {
        panic!("{violation}\nin {race:?}\nunder {schedule:?}");
    }
});
