//! What can be stalled: nbbs with everything it can do, and the others.

use std::ops::Range;
use std::sync::Arc;

use baselines::free_list::{Locked, Tagged, Untagged};
use baselines::paper::{Nb1, Nb4, Sl1, Sl4};
use baselines::{Pool, Units};
use nbbs::{Buddy, Invariant};
use testkit::program::{Arena, Op};
use testkit::steered::Steered;
use testkit::{BackEnd, Block, InHand, Symptom, Violation};

use crate::claims::{Places, Watched, forget};

/// An allocator that a thread can abandon in the middle.
pub trait System: BackEnd {
    /// Does what is neither an allocation nor a free; `None` if the system cannot.
    fn extra(&self, op: &Op) -> Option<Extra> {
        let _ = op;
        None
    }

    /// What an allocation of this order, which the calling thread is in the middle of, has in hand.
    fn claimed(&self, order: u32) -> InHand {
        InHand::Claim(order)
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

/// nbbs, and where its claims are.
struct Ours<'a> {
    arena: &'a Arena<Watched>,
    buddy: Buddy<'a, Watched>,
    places: Arc<Places>,
}

impl BackEnd for Ours<'_> {
    fn units(&self) -> u64 {
        self.buddy.units()
    }

    fn max_order(&self) -> u32 {
        self.buddy.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.buddy.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        forget();
        self.buddy.alloc_on(lane, order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        BackEnd::free(&self.buddy, lane, index, order)
    }
}

impl System for Ours<'_> {
    fn extra(&self, op: &Op) -> Option<Extra> {
        match *op {
            Op::Reserve { start, end } => Some(match self.buddy.reserve(start..end) {
                Ok(()) => Extra::Reserved(start..end),
                Err(_) => Extra::Done,
            }),
            Op::Release { start, end } => {
                _ = self.buddy.release(start..end);
                Some(Extra::Done)
            }
            Op::OrderOf { index } => {
                _ = self.buddy.order_of(index);
                Some(Extra::Done)
            }
            Op::Inspect => {
                let stats = self.buddy.stats();
                let counted = stats.free_units + stats.used_units + stats.reserved_units;
                assert_eq!(counted, stats.units, "{stats:?}");
                self.buddy.occupancy_map(1, &mut [0; 16]).expect("every arena here has this order");
                Some(Extra::Done)
            }
            _ => None,
        }
    }

    fn claimed(&self, order: u32) -> InHand {
        let index = self.places.last_claim(self.arena);
        index.map_or(InHand::Nothing, |index| InHand::Block(Block { index, order }))
    }

    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        self.buddy.audit().map(|_| ()).map_err(|broken| {
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
    let arena = Arena::<Watched>::new(units);
    visit(&Ours { arena: &arena, buddy: arena.buddy(), places: Places::of(units) });
});

/// All that must be caught, and at what.
pub const PATIENTS: &[(Subject, &[Symptom])] = &[
    (
        subject("nb1", &[8, 16], false, |units, visit| visit(&Nb1::<Steered>::new(units, 9))),
        &[Symptom::Overlap, Symptom::Loss],
    ),
    (
        subject("nb4", &[32, 64], false, |units, visit| visit(&Nb4::<Steered>::new(units, 9))),
        &[Symptom::Overlap],
    ),
    (
        subject("sl1", &[8], false, |units, visit| visit(&Sl1::<Steered>::new(units, 9))),
        &[Symptom::Wait],
    ),
    (
        subject("sl4", &[32], false, |units, visit| visit(&Sl4::<Steered>::new(units, 9))),
        &[Symptom::Wait],
    ),
    (
        subject("arena-untagged", &[8], true, |slots, visit| {
            visit(&Units(Untagged::<Steered>::new(slots)));
        }),
        &[Symptom::Overlap],
    ),
    (
        subject("arena-sl", &[8], true, |slots, visit| {
            visit(&Units(Locked::<Steered>::new(slots)))
        }),
        &[Symptom::Wait],
    ),
];

/// What stands up to the same although it is not ours: a thread that stops takes a slot, and no more.
pub const SOUND: &[Subject] = &[subject("arena-tagged", &[8], true, |slots, visit| {
    visit(&Units(Tagged::<Steered>::new(slots)));
})];
