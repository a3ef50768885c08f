//! Makes races from bytes, as in `races`, and runs them on the allocator that the variable PATIENT names, each under
//! the schedules with two preemptions: the broken allocators hand out a unit twice.
#![no_main]

use std::cell::Cell;
use std::sync::LazyLock;

use baselines::Units;
use baselines::free_list::{Tagged, Untagged};
use baselines::paper::{Nb1, Nb4};
use libfuzzer_sys::fuzz_target;
use testkit::program::{Race, race_plain};
use testkit::steered::{Steered, all_schedules};
use testkit::{BackEnd, Violation};

static PATIENT: LazyLock<String> = LazyLock::new(|| std::env::var("PATIENT").unwrap_or_default());

/// The most schedules for a race.
const SCHEDULES: u64 = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let (race, _) = Race::from_bytes(bytes);
    match PATIENT.as_str() {
        "nb1" => judge(&race.plain(4), || Nb1::<Steered>::new(4, 2)),
        "nb4" => judge(&race.plain(32), || Nb4::<Steered>::new(32, 5)),
        "freelist-untagged" => judge(&race.plain(4), || Units(Untagged::<Steered>::new(4))),
        "freelist-tagged" => judge(&race.plain(4), || Units(Tagged::<Steered>::new(4))),
        other => panic!("no patient is called {other:?}"),
    }
});

/// Ends the process if a unit has two holders under one of the schedules with two preemptions.
fn judge<B: BackEnd>(race: &Race, fresh: impl Fn() -> B) {
    let count = Cell::new(0);
    let result = all_schedules(2, |together| {
        count.set(count.get() + 1);
        match race_plain(race, &fresh(), |bodies| together(bodies)) {
            Err(overlap @ Violation::Overlap { .. }) => Err(overlap),
            _ if count.get() == SCHEDULES => Err(Violation::Panicked("enough".to_owned())),
            _ => Ok(()),
        }
    });
    if let Err(culprit) = result
        && matches!(culprit.violation, Violation::Overlap { .. })
    {
        panic!("{culprit}\nin {race:?}");
    }
}
