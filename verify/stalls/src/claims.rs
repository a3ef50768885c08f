//! Which block a lane has claimed, though it has not been given it yet.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use nbbs::sync::{Ordering, Word};
use testkit::program::Arena;
use testkit::steered::Steered;

/// A word that takes its turns, and notes for each thread what its compare-and-swaps changed.
#[derive(Debug, Default)]
pub struct Watched(Steered);

/// A change of the word at this address.
struct Change {
    word: usize,
    from: u64,
    to: u64,
}

thread_local! {
    static CHANGES: RefCell<Vec<Change>> = const { RefCell::new(Vec::new()) };
}

impl Word for Watched {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let result = self.0.compare_exchange(current, new, success, failure);
        if result.is_ok() {
            let change = Change { word: std::ptr::from_ref(self).addr(), from: current, to: new };
            CHANGES.with_borrow_mut(|changes| changes.push(change));
        }
        result
    }
}

/// Forgets what the calling thread has changed.
pub fn forget() {
    CHANGES.take();
}

/// What the slots of a word are about: from this unit on, so many units (their log2) each.
#[derive(Clone, Copy)]
struct Slots {
    first: u64,
    order: u32,
}

impl Slots {
    /// The unit at which a change sets a head, if it does.
    fn claimed(self, change: &Change) -> Option<u64> {
        // A head has both bits of its slot set. Leaf words have 32 slots, inner words 16.
        let slots = if self.order == 0 { u64::MAX } else { u64::from(u32::MAX) };
        let heads = |word: u64| word & word >> 1 & 0x5555_5555_5555_5555 & slots;
        let set = heads(change.to) & !heads(change.from);
        (set != 0).then(|| self.first + (u64::from(set.trailing_zeros() / 2) << self.order))
    }
}

/// Which units the words of an arena are about, by their places.
pub struct Places(BTreeMap<usize, Slots>);

impl Places {
    /// Those of an arena of so many units.
    pub fn of(units: u64) -> Arc<Self> {
        static KNOWN: Mutex<BTreeMap<u64, Arc<Places>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(units).or_insert_with(|| Arc::new(Self::learn(units))))
    }

    /// Claims the first slot of each word on a fresh arena, which changes that word first.
    fn learn(units: u64) -> Self {
        let mut places = BTreeMap::new();
        for level in 0..=units.ilog2() / 4 {
            let order = if level == 0 { 0 } else { 1 + 4 * level };
            for first in (0..units).step_by(1 << (5 + 4 * level)) {
                let arena = Arena::<Watched>::new(units);
                forget();
                if arena.buddy().alloc_at_on(0, first, 1 << order).is_ok() {
                    let word = CHANGES.with_borrow(|changes| changes[0].word);
                    places.insert(place(&arena, word), Slots { first, order });
                }
            }
        }
        Self(places)
    }

    /// The first unit of what the calling thread claimed last, since it forgot what was before.
    pub fn last_claim(&self, arena: &Arena<Watched>) -> Option<u64> {
        CHANGES.with_borrow(|changes| {
            changes.iter().rev().find_map(|change| {
                let slots = self.0.get(&place(arena, change.word))?;
                slots.claimed(change)
            })
        })
    }
}

fn place(arena: &Arena<Watched>, word: usize) -> usize {
    (word - arena.words().as_ptr().addr()) / size_of::<Watched>()
}
