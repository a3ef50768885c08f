//! What is asked of a system that can be stalled, and nbbs with everything that it can do.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use nbbs::{Buddy, FreeError, Invariant};
use testkit::program::{Arena, Ask, Held, No, Op};
use testkit::{BackEnd, Block, InHand, Oracle, Violation};

use crate::call::{Answer, Call, Cost};
use crate::places::{Ledger, Places};
use crate::word::{Past, Stepped};

/// An allocator that a thread can abandon in the middle.
pub trait System: BackEnd {
    /// Makes a call.
    fn call(&self, lane: usize, call: &Call) -> Answer {
        match call {
            Call::Alloc(order) => {
                self.alloc(lane, *order).map_or(Answer::No(No::Exhausted), Answer::Yes)
            }
            Call::FreeSized(block) => {
                let freed = self.free(lane, block.index, block.order);
                freed.map_or_else(Answer::Wrong, |()| Answer::Yes(block.index))
            }
            Call::Run(..) => ask_run(call, |ask| self.ask(lane, ask)),
            _ => self.extra(lane, call),
        }
    }

    /// Makes a call that not every system can answer.
    fn extra(&self, _lane: usize, call: &Call) -> Answer {
        Answer::Wrong(format!("not every system can do {call:?}"))
    }

    /// Returns the cost of a call that never goes on.
    fn cost(&self, _oracle: &Oracle, call: &Call, _past: &Past) -> Cost {
        let in_hand = match *call {
            Call::Alloc(order) => InHand::Claim(order),
            Call::FreeSized(block) => InHand::Block(block),
            _ => InHand::Nothing,
        };
        Cost { in_hand, run: None }
    }

    /// Returns the borders between units that no block or run crosses.
    fn borders(&self) -> Vec<u64> {
        vec![self.units()]
    }

    /// Returns whether units can be reserved and released.
    fn reserves(&self) -> bool {
        false
    }

    /// Checks whether the metadata is in order, once all lanes are stopped or done.
    ///
    /// # Errors
    /// The violation, and the units that it concerns.
    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        Ok(())
    }

    /// Returns the blocks that are in caches which a call is about to use.
    fn kept(&self, _lane: usize, _call: &Call) -> Vec<Block> {
        Vec::new()
    }

    /// Has caches emptied, once all lanes are stopped or done, except what the lane that stopped in this call may keep
    /// from the others.
    ///
    /// # Errors
    /// More than that is kept, or the call that empties caches waits.
    fn settle(&self, _stopped: Option<(usize, &Call)>) -> Result<(), Violation> {
        Ok(())
    }

    /// Puts to use again, and empties, what the lane that stopped in this call for good kept from the others. Returns
    /// `false` if there is nothing of the kind.
    ///
    /// # Errors
    /// Something is still kept.
    fn recover(&self, _lane: usize, _call: &Call) -> Result<bool, Violation> {
        Ok(false)
    }
}

/// Makes a request about runs, parts or many blocks.
fn ask_run(call: &Call, put: impl FnOnce(Ask<'_>) -> Result<u64, No>) -> Answer {
    let mut blocks = Vec::new();
    let Some(ask) = call.ask(&mut blocks) else { return Answer::No(No::NotOffered) };
    let is_batch = matches!(ask, Ask::Batch(..));
    match put(ask) {
        Err(No::Exhausted) if is_batch => Answer::Blocks(Vec::new()),
        Err(no) => Answer::No(no),
        Ok(_) if is_batch => Answer::Blocks(blocks),
        Ok(index) => Answer::Yes(index),
    }
}

/// Returns the cost of a call from what it has claimed and cleared.
pub fn cost(call: &Call, mut ledger: Ledger) -> Cost {
    if let Some(Held { index, len }) = call.changed() {
        // A run that is written in smaller slots already belongs to the lane.
        ledger.claimed.retain(|unit| !(index..index + len).contains(unit));
    }
    let gap = call.gap();
    let given = call.given().into_iter().flat_map(|held| held.index..held.index + held.len);
    let mut least: BTreeSet<u64> = given.collect();
    if let Call::Release(range) = call {
        least.extend(range.clone());
    }
    let in_hand = if !gap.is_empty() {
        InHand::First(gap)
    } else if call.may_claim(&ledger.claimed) {
        least.retain(|unit| !ledger.cleared.contains(unit));
        let most = least.iter().chain(&ledger.claimed).chain(&ledger.untold).copied();
        let most: BTreeSet<u64> = most.collect();
        InHand::Between { least: Vec::from_iter(least), most: Vec::from_iter(most) }
    } else {
        // It has claimed more than it may: all of that is lost without an excuse.
        InHand::Nothing
    };
    Cost { in_hand, run: call.changed() }
}

/// Returns the answer to a free of what is held by its index.
pub fn freed(held: Held, answer: Result<u64, FreeError>) -> Answer {
    match answer {
        Ok(units) if units == held.len => Answer::Yes(held.index),
        other => Answer::Wrong(format!("{other:?}")),
    }
}

/// Looks at an arena while others use it.
pub fn look(buddy: &Buddy<'_, Stepped>, op: &Op) {
    if let Op::OrderOf { index } = *op {
        _ = buddy.order_of(index);
        return;
    }
    let stats = buddy.stats();
    let counted = stats.free_units + stats.used_units + stats.reserved_units;
    assert_eq!(counted, stats.units, "{stats:?}");
    buddy.occupancy_map(1, &mut [0; 16]).expect("every arena here has this order");
}

/// Runs an audit. Returns what it finds out of order, and the units that this concerns.
pub fn audit(buddy: &Buddy<'_, Stepped>) -> Result<(), (Violation, Range<u64>)> {
    buddy.audit().map(|_| ()).map_err(|broken| {
        // A claim that died below a slot that is not split, or a free that died before it told the words above: the
        // audit names the slot in both cases. Nothing else can be out of order.
        let len = match broken.invariant {
            Invariant::Dormant | Invariant::Bound if broken.level == 0 => 1,
            Invariant::Dormant | Invariant::Bound => 1 << (1 + 4 * broken.level),
            _ => 0,
        };
        (Violation::Audit(broken.to_string()), broken.unit..broken.unit + len)
    })
}

/// nbbs, and the places of its words.
pub struct Ours<'a> {
    arena: &'a Arena<Stepped>,
    /// A handle to the arena.
    pub buddy: Buddy<'a, Stepped>,
    places: Arc<Places>,
}

impl<'a> Ours<'a> {
    /// Creates a handle to an arena.
    pub fn of(arena: &'a Arena<Stepped>) -> Self {
        let buddy = arena.buddy();
        Self { arena, buddy, places: Places::of(buddy.units()) }
    }

    /// Returns what a call has claimed and cleared so far.
    pub fn ledger(&self, past: &Past) -> Ledger {
        let mut ledger = Ledger::default();
        self.places.enter(self.arena, 0, &past.changes, &mut ledger);
        ledger
    }
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
        self.buddy.on(lane).alloc(order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        BackEnd::free(&self.buddy, lane, index, order)
    }

    fn offers_runs(&self) -> bool {
        true
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        self.buddy.ask(lane, ask)
    }
}

impl System for Ours<'_> {
    fn extra(&self, lane: usize, call: &Call) -> Answer {
        match call {
            Call::Free(held) => freed(*held, self.buddy.on(lane).free(held.index)),
            Call::Reserve(range) => match self.buddy.reserve(range.clone()) {
                Ok(()) => Answer::Yes(range.start),
                Err(_) => Answer::No(No::InUse(range.start)),
            },
            Call::Release(range) => match self.buddy.release(range.clone()) {
                Ok(()) => Answer::Yes(range.start),
                Err(error) => Answer::Wrong(error.to_string()),
            },
            Call::Look(op) => {
                look(&self.buddy, op);
                Answer::Yes(0)
            }
            _ => Answer::No(No::NotOffered),
        }
    }

    fn cost(&self, _oracle: &Oracle, call: &Call, past: &Past) -> Cost {
        cost(call, self.ledger(past))
    }

    fn reserves(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        audit(&self.buddy)
    }
}
