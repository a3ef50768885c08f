//! Finds out which units the words of an arena describe, and so which units a call has claimed and cleared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use testkit::program::Arena;

use crate::word::{Change, Past, Stepped, advance};

/// The units that the slots of a word describe: from this unit on, a number of units each (as its log2).
#[derive(Clone, Copy)]
struct Slots {
    first: u64,
    order: u32,
}

impl Slots {
    /// Returns the slots that are held in a word.
    fn held(self, word: u64) -> u64 {
        // In a leaf word every code except 00 is held; in an inner word 01 is a split slot.
        let pairs = 0x5555_5555_5555_5555;
        if self.order == 0 { (word | word >> 1) & pairs } else { word >> 1 & pairs >> 32 }
    }

    /// Returns the units of slots, which are given by their low bits.
    fn units(self, slots: u64) -> Vec<u64> {
        let numbers = (0..32).filter(|number| slots >> (2 * number) & 1 == 1);
        let size = 1 << self.order;
        numbers
            .flat_map(|number| self.first + number * size..self.first + (number + 1) * size)
            .collect()
    }
}

/// Returns the free slots of a word, by their low bits.
fn free(slots: Slots, word: u64) -> u64 {
    let pairs = 0x5555_5555_5555_5555;
    !(word | word >> 1) & if slots.order == 0 { pairs } else { pairs >> 32 }
}

/// The ledger of a call: what it has claimed and cleared so far.
#[derive(Default)]
pub struct Ledger {
    /// The units that it has claimed, and not cleared again.
    pub claimed: BTreeSet<u64>,
    /// The units that it has cleared.
    pub cleared: BTreeSet<u64>,
    /// The units that it cleared last: it may not have told the words above.
    pub untold: Vec<u64>,
}

/// The units that the words of an arena describe, by the words' places.
pub struct Places(BTreeMap<usize, Slots>);

impl Places {
    /// Returns the places of an arena of `units` units.
    pub fn of(units: u64) -> Arc<Self> {
        static KNOWN: Mutex<BTreeMap<u64, Arc<Places>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(units).or_insert_with(|| Arc::new(Self::learn(units))))
    }

    /// Learns the places: claims the first slot of each word on a fresh arena, which changes that word first.
    fn learn(units: u64) -> Self {
        let mut places = BTreeMap::new();
        for level in 0..=units.ilog2() / 4 {
            let order = if level == 0 { 0 } else { 1 + 4 * level };
            for first in (0..units).step_by(1 << (5 + 4 * level)) {
                let arena = Arena::<Stepped>::new(units);
                let mut past = Past::default();
                let claim = || arena.buddy().on(0).alloc_at(first, 1 << order).is_ok();
                advance(&mut past, &mut u64::MAX.clone(), false, claim);
                if let Some(change) = past.changes.first() {
                    places.insert(place(&arena, *change), Slots { first, order });
                }
            }
        }
        Self(places)
    }

    /// Enters the changes of this arena's words in the ledger, where the arena's first unit is `base`.
    pub fn enter(
        &self,
        arena: &Arena<Stepped>,
        base: u64,
        changes: &[Change],
        ledger: &mut Ledger,
    ) {
        let own = arena.words().as_ptr_range();
        let own = own.start.addr()..own.end.addr();
        for change in changes.iter().filter(|change| own.contains(&change.word)) {
            let Some(&slots) = self.0.get(&place(arena, *change)) else { continue };
            let units = |slots: Vec<u64>| slots.into_iter().map(|unit| base + unit);
            let claimed = slots.units(free(slots, change.from) & slots.held(change.to));
            let cleared = slots.units(slots.held(change.from) & free(slots, change.to));
            if !claimed.is_empty() || !cleared.is_empty() {
                ledger.untold = units(cleared).collect();
            }
            ledger.claimed.extend(units(claimed));
            for unit in &ledger.untold {
                ledger.claimed.remove(unit);
                ledger.cleared.insert(*unit);
            }
        }
    }
}

fn place(arena: &Arena<Stepped>, change: Change) -> usize {
    (change.word - arena.words().as_ptr().addr()) / size_of::<Stepped>()
}
