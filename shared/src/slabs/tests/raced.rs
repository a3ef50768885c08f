//! A segment's words under loom: tags and slots' words are loom's, turns and pins where a test says so. The buddy
//! allocator's, which `verify/loom` races, and hints are not.

use std::sync::atomic::{AtomicU64 as Plain, Ordering};

use loom::sync::atomic::AtomicU64;
use nbbs::{Buddy, metadata_words};
use testkit_loom::Raced;

use crate::ledger::{Ledger, TURN_STRIDE};
use crate::slabs::class::Shape;
use crate::slabs::{HINTS, Memory, PIN_STRIDE, Slabs};

const UNITS: u64 = 8;
const SEATS: usize = 3;

/// What loom knows of [`Word::store_load_fence`]: it has no sequentially consistent accesses, so fences stand for them
/// where they matter, and must not order anything where they do not.
pub enum Word<const FENCED: bool> {
    Raced(Raced<AtomicU64>),
    Plain(Plain),
}

impl<const FENCED: bool> Word<FENCED> {
    fn raced() -> Self {
        Self::Raced(Raced::default())
    }

    fn some(count: usize, raced: impl Fn(usize) -> bool) -> Vec<Self> {
        let word = |at| if raced(at) { Self::raced() } else { Self::Plain(Plain::new(0)) };
        (0..count).map(word).collect()
    }
}

impl<const FENCED: bool> nbbs::sync::Word for Word<FENCED> {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Self::Raced(word) => word.turn().load(order),
            Self::Plain(word) => word.load(order),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Self::Raced(word) => word.turn().store(value, order),
            Self::Plain(word) => word.store(value, order),
        }
    }

    fn store_load_fence() {
        if FENCED {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        match self {
            Self::Raced(word) => word.turn().compare_exchange(current, new, success, failure),
            Self::Plain(word) => word.compare_exchange(current, new, success, failure),
        }
    }
}

/// Memory of units of 64 bytes, in which a slab takes four.
pub struct Units<const FENCED: bool>(pub Vec<Word<FENCED>>);

impl<const FENCED: bool> Memory<Word<FENCED>> for &Units<FENCED> {
    fn words(&self, at: u64, count: usize) -> Option<&[Word<FENCED>]> {
        self.0.get(at as usize / 8..at as usize / 8 + count)
    }
}

pub struct Words<const FENCED: bool> {
    buddy: Vec<Word<FENCED>>,
    tags: Vec<Word<FENCED>>,
    turns: Vec<Word<FENCED>>,
    pins: Vec<Word<FENCED>>,
    pub hints: Vec<Word<FENCED>>,
    pub units: Units<FENCED>,
}

impl<const FENCED: bool> Words<FENCED> {
    /// With those turns raced whose number in the table is like this, and those pins.
    pub fn new(turns: impl Fn(usize) -> bool, pins: impl Fn(usize) -> bool) -> Self {
        Self {
            buddy: Word::some(metadata_words(UNITS), |_| false),
            tags: Word::some(UNITS as usize, |unit| unit % 4 == 0),
            turns: Word::some(SEATS * TURN_STRIDE, turns),
            pins: Word::some(SEATS * PIN_STRIDE, pins),
            hints: Word::some(HINTS, |_| false),
            // The first slot's of either half: one of them is the slab.
            units: Units(Word::some(UNITS as usize * 8, |at| at % 32 == 0)),
        }
    }

    pub fn slabs(&self) -> Slabs<'_, Word<FENCED>, impl Memory<Word<FENCED>>> {
        let buddy = Buddy::attach(&self.buddy, UNITS).unwrap();
        let ledger = Ledger::new(buddy, &self.tags, &self.turns);
        Slabs::new(ledger, &self.units, &self.pins, &self.hints, Shape::new(UNITS, 64))
    }
}
