//! The allocators that are known to be broken, and their sound twins, by name.

use baselines::Units;
use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use nbbs::Buddy;
use testkit::program::{Arena, Race};
use testkit::{BackEnd, Symptom, Violation};

use crate::races::{neighbours, slots};
use crate::word::Scheduled;

/// An allocator, and the race that shows whether it is broken.
#[derive(Clone, Copy, Debug)]
pub struct Patient {
    /// Its name.
    pub name: &'static str,
    /// The symptom that it is known for, if it is broken.
    pub symptom: Option<Symptom>,
    /// Makes the race, with a number of lanes.
    pub race: fn(usize) -> Race,
    /// Lends a fresh allocator, of a number of units, to a visitor.
    pub with: With,
}

/// A function that lends a fresh allocator, of a number of units, to a visitor.
pub type With =
    fn(u64, &mut dyn FnMut(&dyn BackEnd) -> Result<(), Violation>) -> Result<(), Violation>;

macro_rules! patient {
    ($name:literal, $symptom:expr, $race:expr, $fresh:expr) => {
        Patient {
            name: $name,
            symptom: $symptom,
            race: $race,
            with: |units, visit| visit(&$fresh(units)),
        }
    };
}

const OVERLAP: Option<Symptom> = Some(Symptom::Overlap);

/// All patients, the broken ones first.
pub const PATIENTS: &[Patient] = &[
    patient!("nb1", OVERLAP, |lanes| neighbours(4, lanes), |n: u64| {
        Nb1::<Scheduled>::new(n, n.ilog2())
    }),
    patient!("nb4", OVERLAP, |lanes| neighbours(32, lanes), |n: u64| {
        Nb4::<Scheduled>::new(n, n.ilog2())
    }),
    patient!("freelist-untagged", OVERLAP, slots, |n: u64| Units(Untagged::<Scheduled>::new(n))),
    patient!("sl1", None, |lanes| neighbours(4, lanes), |n: u64| {
        Sl1::<Scheduled>::new(n, n.ilog2())
    }),
    patient!("sl4", None, |lanes| neighbours(32, lanes), |n: u64| {
        Sl4::<Scheduled>::new(n, n.ilog2())
    }),
    patient!("freelist-tagged", None, slots, |n: u64| Units(Tagged::<Scheduled>::new(n))),
    patient!("freelist-sl", None, slots, |n: u64| Units(Locked::<Scheduled>::new(n))),
    Patient {
        name: "nbbs",
        symptom: None,
        race: |lanes| neighbours(64, lanes),
        with: |units, visit| visit(&ours(&Arena::new(units))),
    },
];

fn ours(arena: &Arena<Scheduled>) -> Buddy<'_, Scheduled> {
    arena.buddy()
}
