//! The systems that are checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::{Pause, Units};
use nbbs::Zone;
use nbbs::sync::Word;
use testkit::program::Arena;
use testkit::{BackEnd, Oracle, Symptom, Violation, check_whole};

use crate::cached::{of_cpus, of_threads};
use crate::{Actor, Blocks, Everything, Hands, Hooked};

type Fresh = fn(u64, &mut dyn FnMut(&dyn BackEnd));

/// A system, on words of two kinds.
#[derive(Debug)]
pub struct System {
    /// Its name, as in the baselines.
    pub name: &'static str,
    /// Whether all blocks are of one size.
    pub pool: bool,
    /// Whether it never has a hook before its steps: some of them are plain accesses.
    pub unhooked: bool,
    /// What signals show of it, if it does not withstand them.
    pub under_signals: Option<Symptom>,
    /// What stress shows of it, if it is broken.
    pub under_stress: Option<Symptom>,
    hooked: Fresh,
    plain: Fresh,
}

macro_rules! system {
    ($name:literal, $pool:literal, $make:ident, $under_signals:expr, $under_stress:expr) => {
        System {
            name: $name,
            pool: $pool,
            unhooked: false,
            under_signals: $under_signals,
            under_stress: $under_stress,
            hooked: $make::<Hooked>,
            plain: $make::<AtomicU64>,
        }
    };
}

/// All systems, nbbs first.
pub const SYSTEMS: &[System] = &[
    system!("nbbs", false, nbbs, None, None),
    system!("caches", false, of_cpus, None, None),
    System {
        name: "thread-caches",
        pool: false,
        unhooked: true,
        under_signals: None,
        under_stress: None,
        hooked: of_threads,
        plain: of_threads,
    },
    system!("nb1", false, nb1, Some(Symptom::Overlap), Some(Symptom::Overlap)),
    system!("nb4", false, nb4, Some(Symptom::Overlap), Some(Symptom::Overlap)),
    system!("sl1", false, sl1, Some(Symptom::Wait), None),
    system!("sl4", false, sl4, Some(Symptom::Wait), None),
    system!("freelist-untagged", true, untagged, Some(Symptom::Overlap), Some(Symptom::Overlap)),
    system!("freelist-tagged", true, tagged, None, None),
    system!("freelist-sl", true, locked, Some(Symptom::Wait), None),
];

/// Finds the system of that name.
pub fn find(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}

impl System {
    /// Lends a fresh system of `units` units to `body`, on words with a hook or the processor's own.
    ///
    /// # Errors
    /// Those of `body`, or a panic of it or of the audit of nbbs afterwards.
    pub fn lend(
        &self,
        units: u64,
        hooked: bool,
        body: &mut dyn FnMut(&dyn BackEnd) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let fresh = if hooked { self.hooked } else { self.plain };
        let mut result = Ok(());
        let lent = no_panic(|| {
            fresh(units, &mut |back_end| result = body(back_end));
            Ok(())
        });
        result.and(lent)
    }

    /// Lends an actor on such a system to `body`. For nbbs it makes every call on two arenas, one of them of `units`
    /// units; for the others it uses blocks. Afterwards the actor gives everything back, and the memory must be whole.
    ///
    /// # Errors
    /// Those of [`lend`](Self::lend), and what is found afterwards.
    pub fn lend_actor(&self, units: u64, hooked: bool, body: Body<'_>) -> Result<(), Violation> {
        match (self.name, hooked) {
            ("nbbs", false) => no_panic(|| everything::<AtomicU64>(units, body)),
            ("nbbs", true) => no_panic(|| everything::<Hooked>(units, body)),
            _ => self.lend(units, hooked, &mut |back_end| blocks(back_end, body)),
        }
    }
}

pub(crate) type Body<'b> = &'b mut dyn FnMut(&dyn Actor) -> Result<(), Violation>;

/// Runs `body`, and returns a panic as a violation.
pub(crate) fn no_panic(body: impl FnOnce() -> Result<(), Violation>) -> Result<(), Violation> {
    let result = catch_unwind(AssertUnwindSafe(body));
    result.unwrap_or_else(|payload| Err(Violation::from_panic(&*payload)))
}

/// Returns slots for an actor on `units` units: so few that what is in use comes and goes.
fn slots(units: u64) -> Vec<AtomicU64> {
    (0..(units * 3 / 4).clamp(3, 24)).map(|_| AtomicU64::new(0)).collect()
}

fn blocks(back_end: &dyn BackEnd, body: Body<'_>) -> Result<(), Violation> {
    let (oracle, slots, stake) = (Oracle::of(back_end), slots(back_end.units()), AtomicU64::new(0));
    let hands = Hands { oracle: &oracle, who: 0, slots: &slots, stake: &stake };
    let actor = Blocks { back_end, hands, lane: 0 };
    body(&actor)?;
    actor.give_back()?;
    oracle.check_empty()?;
    check_whole(back_end, &oracle)
}

/// The units of the second arena, and the distance between the two.
pub(crate) const SECOND: u64 = 40;
pub(crate) const BETWEEN: u64 = 5;

fn everything<W: Word + Default>(units: u64, body: Body<'_>) -> Result<(), Violation> {
    let arenas = [Arena::<W>::new(units), Arena::new(SECOND)];
    let [first, second] = arenas.each_ref().map(Arena::buddy);
    let base = units + BETWEEN;
    let zones = [Zone { base: 0, buddy: first }, Zone { base, buddy: second }];
    let (oracle, slots, stake) = (Oracle::new(base + SECOND), slots(units), AtomicU64::new(0));
    let hands = Hands { oracle: &oracle, who: 0, slots: &slots, stake: &stake };
    let reservations = [const { AtomicU64::new(0) }; 2];
    let actor = Everything::new(&zones, 0, hands, &reservations);
    body(&actor)?;
    actor.give_back()?;
    oracle.check_empty()?;
    zones.iter().try_for_each(|zone| {
        check_whole(&zone.buddy, &Oracle::of(&zone.buddy))?;
        let audit = zone.buddy.audit();
        audit.map(drop).map_err(|broken| Violation::Audit(broken.to_string()))
    })
}

fn nbbs<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    let arena = Arena::<W>::new(units);
    visit(&arena.buddy());
    if let Err(broken) = arena.buddy().audit() {
        panic!("audit: {broken}");
    }
}

pub(crate) fn nb1<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Nb1::<W>::new(units, units.ilog2()));
}

pub(crate) fn nb4<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Nb4::<W>::new(units, units.ilog2()));
}

pub(crate) fn sl1<W: Pause + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Sl1::<W>::new(units, units.ilog2()));
}

pub(crate) fn sl4<W: Pause + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Sl4::<W>::new(units, units.ilog2()));
}

fn untagged<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Units(Untagged::<W>::new(units)));
}

fn tagged<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Units(Tagged::<W>::new(units)));
}

fn locked<W: Pause + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Units(Locked::<W>::new(units)));
}
