//! The systems to run the matrix on: nbbs, what must be caught, and what must not.

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::{Pool, Units};
use testkit::Symptom;
use testkit::program::Arena;

use crate::caches::Behind;
use crate::system::{Ours, System};
use crate::word::Stepped;
use crate::zones::TwoZones;

impl System for Nb1<Stepped> {}
impl System for Nb4<Stepped> {}
impl System for Sl1<Stepped> {}
impl System for Sl4<Stepped> {}
impl<P: Pool> System for Units<P> {}

/// A function that creates a fresh system of a number of units and lends it to the visitor.
pub type Fresh = fn(u64, &mut dyn FnMut(&dyn System));

/// The kind of a system: what it can do, and so what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of nbbs.
    Nbbs,
    /// Two arenas of nbbs behind one handle.
    Zones,
    /// Three CPUs with caches in front of nbbs.
    Caches,
    /// Blocks of `2^order` units.
    Buddy,
    /// Blocks of one size.
    Pool,
}

/// A system to run the matrix on.
pub struct Subject {
    /// Its name, here and in the baselines.
    pub name: &'static str,
    /// How to create one.
    pub fresh: Fresh,
    /// What it can do.
    pub kind: Kind,
    /// The arenas to run it in; for a patient, those in which it is known to show its error.
    pub units: &'static [u64],
}

const fn subject(name: &'static str, units: &'static [u64], kind: Kind, fresh: Fresh) -> Subject {
    Subject { name, fresh, kind, units }
}

/// The library.
pub const OURS: &[Subject] = &[
    subject("nbbs", &[96, 8, 33, 600], Kind::Nbbs, |units, visit| {
        let arena = Arena::<Stepped>::new(units);
        visit(&Ours::of(&arena));
    }),
    subject("zones", &[104], Kind::Zones, |units, visit| {
        TwoZones::of(units).visit(visit);
    }),
    subject("caches", &[64], Kind::Caches, |units, visit| {
        let (arena, words) = (Arena::<Stepped>::new(units), Behind::words());
        visit(&Behind::new(&arena, &words));
    }),
];

/// All systems that must be caught, and their symptoms.
pub const PATIENTS: &[(Subject, &[Symptom])] = &[
    (
        subject("nb1", &[8, 16], Kind::Buddy, |units, visit| visit(&Nb1::<Stepped>::new(units, 9))),
        &[Symptom::Overlap, Symptom::Loss],
    ),
    (
        subject("nb4", &[32, 64], Kind::Buddy, |units, visit| {
            visit(&Nb4::<Stepped>::new(units, 9))
        }),
        &[Symptom::Overlap],
    ),
    (
        subject("sl1", &[8], Kind::Buddy, |units, visit| visit(&Sl1::<Stepped>::new(units, 9))),
        &[Symptom::Wait],
    ),
    (
        subject("sl4", &[32], Kind::Buddy, |units, visit| visit(&Sl4::<Stepped>::new(units, 9))),
        &[Symptom::Wait],
    ),
    (
        subject("freelist-untagged", &[8], Kind::Pool, |slots, visit| {
            visit(&Units(Untagged::<Stepped>::new(slots)));
        }),
        &[Symptom::Overlap],
    ),
    (
        subject("freelist-sl", &[8], Kind::Pool, |slots, visit| {
            visit(&Units(Locked::<Stepped>::new(slots)))
        }),
        &[Symptom::Wait],
    ),
];

/// The sound systems that are not ours: a thread that stops takes a slot, and no more.
pub const SOUND: &[Subject] = &[subject("freelist-tagged", &[8], Kind::Pool, |slots, visit| {
    visit(&Units(Tagged::<Stepped>::new(slots)));
})];
