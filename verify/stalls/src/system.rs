//! What can be stalled: nbbs with everything it can do, and the others.

use std::ops::Range;

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::{Pool, Units};
use nbbs::{Buddy, Invariant};
use testkit::program::{Arena, Op};
use testkit::steered::Steered;
use testkit::{BackEnd, Violation};

/// An allocator that a thread can abandon in the middle.
pub trait System: BackEnd {
    /// Does what is neither an allocation nor a free; `None` if the system cannot.
    fn extra(&self, op: &Op) -> Option<Extra> {
        let _ = op;
        None
    }

    /// Where the metadata is out of order, once everybody stands still or is done.
    ///
    /// # Errors
    /// What is wrong, and the units that it concerns.
    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        Ok(())
    }
}

/// The outcome of an operation that is neither an allocation nor a free.
pub enum Extra {
    /// It was refused, or leaves nothing to remember.
    Done,
    /// The units are holes now.
    Reserved(Range<u64>),
}

impl System for Buddy<'_, Steered> {
    fn extra(&self, op: &Op) -> Option<Extra> {
        match *op {
            Op::Reserve { start, end } => Some(match self.reserve(start..end) {
                Ok(()) => Extra::Reserved(start..end),
                Err(_) => Extra::Done,
            }),
            Op::Release { start, end } => {
                _ = self.release(start..end);
                Some(Extra::Done)
            }
            Op::OrderOf { index } => {
                _ = self.order_of(index);
                Some(Extra::Done)
            }
            Op::Inspect => {
                let stats = self.stats();
                let counted = stats.free_units + stats.used_units + stats.reserved_units;
                assert_eq!(counted, stats.units, "{stats:?}");
                self.occupancy_map(1, &mut [0; 16]).expect("every arena here has this order");
                Some(Extra::Done)
            }
            _ => None,
        }
    }

    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        self.audit().map(|_| ()).map_err(|broken| {
            // A claim that died below a slot that is not split, or a free that died before it told the
            // words above: both are named by the slot. Nothing else can be out of order.
            let len = match broken.invariant {
                Invariant::Dormant | Invariant::Bound if broken.level == 0 => 1,
                Invariant::Dormant | Invariant::Bound => 1 << (1 + 4 * broken.level),
                _ => 0,
            };
            (Violation::Audit(broken.to_string()), broken.unit..broken.unit + len)
        })
    }
}

impl System for Nb1<Steered> {}
impl System for Nb4<Steered> {}
impl System for Sl1<Steered> {}
impl System for Sl4<Steered> {}
impl<P: Pool> System for Units<P> {}

/// Makes a fresh system of so many units and lends it to the visitor.
pub type Fresh = fn(u64, &mut dyn FnMut(&dyn System));

/// A kind of violation.
pub type Kind = fn(&Violation) -> bool;

/// What a system can do wrong when threads stop.
pub const OVERLAP: (&str, Kind) = ("hands out a unit twice", |violation| {
    matches!(violation, Violation::Overlap { .. } | Violation::NotHeld { .. })
});
/// More is gone than what the thread had in hand.
pub const LOSS: (&str, Kind) = ("loses memory", |violation| {
    matches!(violation, Violation::NotWhole { .. } | Violation::WrongAnswer { .. })
});
/// Somebody waits for a thread that stopped.
pub const WAIT: (&str, Kind) = ("waits", |violation| matches!(violation, Violation::Stuck { .. }));

/// A system to run the matrix on.
pub struct Subject {
    /// What it is called here and in the baselines.
    pub name: &'static str,
    /// How to make one.
    pub fresh: Fresh,
    /// Whether all its blocks are of one size.
    pub pool: bool,
    /// Arenas in which it is known to show its error.
    pub units: &'static [u64],
}

const fn subject(name: &'static str, units: &'static [u64], pool: bool, fresh: Fresh) -> Subject {
    Subject { name, fresh, pool, units }
}

/// The library.
pub const OURS: Subject = subject("nbbs", &[96, 8, 33, 600], false, |units, visit| {
    let arena = Arena::<Steered>::new(units);
    visit(&arena.buddy());
});

/// All that must be caught, and at what.
pub const PATIENTS: &[(Subject, &[(&str, Kind)])] = &[
    (
        subject("nb1", &[8, 16], false, |units, visit| visit(&Nb1::<Steered>::new(units, 9))),
        &[OVERLAP, LOSS],
    ),
    (
        subject("nb4", &[32, 64], false, |units, visit| visit(&Nb4::<Steered>::new(units, 9))),
        &[OVERLAP],
    ),
    (subject("sl1", &[8], false, |units, visit| visit(&Sl1::<Steered>::new(units, 9))), &[WAIT]),
    (subject("sl4", &[32], false, |units, visit| visit(&Sl4::<Steered>::new(units, 9))), &[WAIT]),
    (
        subject("arena-untagged", &[8], true, |slots, visit| {
            visit(&Units(Untagged::<Steered>::new(slots)));
        }),
        &[OVERLAP],
    ),
    (
        subject("arena-sl", &[8], true, |slots, visit| {
            visit(&Units(Locked::<Steered>::new(slots)))
        }),
        &[WAIT],
    ),
];

/// What stands up to the same although it is not ours: a thread that stops takes a slot, and no more.
pub const SOUND: &[Subject] = &[subject("arena-tagged", &[8], true, |slots, visit| {
    visit(&Units(Tagged::<Steered>::new(slots)));
})];
