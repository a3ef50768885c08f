//! What is checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::{Pause, Units};
use nbbs::sync::Word;
use testkit::program::Arena;
use testkit::{BackEnd, Violation};

use crate::Hooked;

type Fresh = fn(u64, &mut dyn FnMut(&dyn BackEnd));

/// A system, on words of two kinds.
#[derive(Debug)]
pub struct System {
    /// As in the baselines.
    pub name: &'static str,
    /// Whether all blocks are of one size.
    pub pool: bool,
    hooked: Fresh,
    plain: Fresh,
}

macro_rules! system {
    ($name:literal, $pool:literal, $make:ident) => {
        System { name: $name, pool: $pool, hooked: $make::<Hooked>, plain: $make::<AtomicU64> }
    };
}

/// All of them, nbbs first.
pub const SYSTEMS: &[System] = &[
    system!("nbbs", false, nbbs),
    system!("nb1", false, nb1),
    system!("nb4", false, nb4),
    system!("sl1", false, sl1),
    system!("sl4", false, sl4),
    system!("arena-untagged", true, untagged),
    system!("arena-tagged", true, tagged),
    system!("arena-sl", true, locked),
];

/// The system of that name.
pub fn find(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}

impl System {
    /// Lends a fresh system of so many units to `body`, on words with a hook or the processor's own.
    ///
    /// # Errors
    /// Those of `body`; a panic of it, or of the audit of nbbs afterwards.
    pub fn lend(
        &self,
        units: u64,
        hooked: bool,
        body: &mut dyn FnMut(&dyn BackEnd) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let fresh = if hooked { self.hooked } else { self.plain };
        let mut result = Ok(());
        let lent = catch_unwind(AssertUnwindSafe(|| {
            fresh(units, &mut |back_end| result = body(back_end));
        }));
        result.and(lent.map_err(|payload| Violation::from_panic(&*payload)))
    }
}

fn nbbs<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    let arena = Arena::<W>::new(units);
    visit(&arena.buddy());
    if let Err(broken) = arena.buddy().audit() {
        panic!("audit: {broken}");
    }
}

fn nb1<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Nb1::<W>::new(units, units.ilog2()));
}

fn nb4<W: Word + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Nb4::<W>::new(units, units.ilog2()));
}

fn sl1<W: Pause + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
    visit(&Sl1::<W>::new(units, units.ilog2()));
}

fn sl4<W: Pause + Default>(units: u64, visit: &mut dyn FnMut(&dyn BackEnd)) {
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
