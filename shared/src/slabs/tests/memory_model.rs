//! Under loom: what was done with a block or a slot happens before what its next holder does, where that has it by recovery, or
//! after recovery has freed it. In every execution with three preemptions.
//!
//! Tags, turns and the slots' words are loom's. The buddy allocator's, which `verify/loom` races, pins and hints are not.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Plain, AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use nbbs::{Buddy, metadata_words};

use crate::ledger::{Fate, Ledger, Liveness, Seat, TURN_STRIDE};
use crate::slabs::class::Shape;
use crate::slabs::{Cursors, HINTS, Memory, PIN_STRIDE, Slabs};

const UNITS: u64 = 8;
const SEATS: usize = 3;

enum Word {
    /// Loom's search forgets a load as soon as somebody else loads the same word: so each access is preceded by one of the second,
    /// that it does not forget, and that orders nothing.
    Raced(AtomicU64, AtomicU64),
    Plain(Plain),
}

impl Word {
    fn raced() -> Self {
        Self::Raced(AtomicU64::new(0), AtomicU64::new(0))
    }

    fn some(count: usize, raced: impl Fn(usize) -> bool) -> Vec<Self> {
        let word = |at| if raced(at) { Self::raced() } else { Self::Plain(Plain::new(0)) };
        (0..count).map(word).collect()
    }
}

impl nbbs::sync::Word for Word {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Self::Raced(word, turn) => {
                turn.fetch_add(0, Ordering::Relaxed);
                word.load(order)
            }
            Self::Plain(word) => word.load(order),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Self::Raced(word, turn) => {
                turn.fetch_add(0, Ordering::Relaxed);
                word.store(value, order);
            }
            Self::Plain(word) => word.store(value, order),
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
            Self::Raced(word, turn) => {
                turn.fetch_add(0, Ordering::Relaxed);
                word.compare_exchange(current, new, success, failure)
            }
            Self::Plain(word) => word.compare_exchange(current, new, success, failure),
        }
    }
}

/// A segment, in which the member on seat 0 has died with a block and a slot, and what stands in these two.
struct Plot {
    buddy: Vec<Word>,
    tags: Vec<Word>,
    turns: Vec<Word>,
    pins: Vec<Word>,
    hints: Vec<Word>,
    units: Units,
    /// Where the slot begins.
    slot_at: u64,
    block: UnsafeCell<()>,
    slot: UnsafeCell<()>,
}

struct Units(Vec<Word>);

impl Memory<Word> for &Units {
    fn words(&self, at: u64, count: usize) -> Option<&[Word]> {
        self.0.get(at as usize / 8..at as usize / 8 + count)
    }
}

/// All but the first.
impl Liveness for Plot {
    fn is_alive(&self, seat: usize) -> bool {
        seat != 0
    }
}

impl Plot {
    fn new() -> Self {
        let mut plot = Self {
            buddy: Word::some(metadata_words(UNITS), |_| false),
            tags: Word::some(UNITS as usize, |unit| unit % 4 == 0),
            turns: Word::some(SEATS * TURN_STRIDE, |at| at % TURN_STRIDE == 0),
            pins: Word::some(SEATS * PIN_STRIDE, |_| false),
            hints: Word::some(HINTS, |_| false),
            // The first slot's of either half: one of them is the slab.
            units: Units(Word::some(UNITS as usize * 8, |at| at % 32 == 0)),
            slot_at: 0,
            block: UnsafeCell::new(()),
            slot: UnsafeCell::new(()),
        };
        plot.slot_at = {
            let slabs = plot.slabs();
            let dead = slabs.sit(0).unwrap();
            slabs.ledger.alloc(&dead, 2).unwrap().unwrap();
            slabs.alloc(&dead, &Cursors::default(), 0).unwrap()
        };
        plot
    }

    fn slabs(&self) -> Slabs<'_, Word, impl Memory<Word>> {
        let buddy = Buddy::attach(&self.buddy, UNITS).unwrap();
        let ledger = Ledger::new(buddy, &self.tags, &self.turns);
        Slabs::new(ledger, &self.units, &self.pins, &self.hints, Shape::new(UNITS, 64))
    }

    /// Uses a block, or the slot, which must be the caller's alone.
    fn touch(&self, bytes: u64) {
        let cell = if bytes == 16 { &self.slot } else { &self.block };
        // Loom says so if another accesses it at the same time.
        cell.with_mut(drop);
    }

    /// Recovers, uses what it gets, and says how much that was.
    fn recover(&self, seat: &Seat, fate: Fate) -> usize {
        let found = self.slabs().recover(seat, self, |_, bytes| {
            self.touch(bytes);
            fate
        });
        assert_eq!((found.pending, found.damaged), (0, 0));
        found.kept + found.freed
    }
}

#[track_caller]
fn race(second: fn(&Plot, &Seat) -> usize, first: Fate, all: std::ops::RangeInclusive<usize>) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        #[expect(clippy::arc_with_non_send_sync)] // Loom looks at who shares it.
        let plot = Arc::new(Plot::new());
        let seats = [1, 2].map(|seat| plot.slabs().sit(seat).unwrap());
        let [mine, other] = seats;
        let beside = Arc::clone(&plot);
        let thread = thread::spawn(move || second(&beside, &other));
        let found = plot.recover(&mine, first) + thread.join().unwrap();
        assert!(all.contains(&found), "{found} of {all:?}");
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{}: nothing in any of {executions} executions", Location::caller());
    assert!(executions > 5, "{executions} executions are no race");
}

/// Each goes to one of two recoverers.
#[test]
fn two_recoverers() {
    race(|plot, seat| plot.recover(seat, Fate::Keep), Fate::Keep, 2..=2);
}

/// Recovery frees the slot, and another allocates it if it comes late enough.
#[test]
fn recovery_and_a_use() {
    let uses = |plot: &Plot, seat: &Seat| {
        let slabs = plot.slabs();
        let at = slabs.alloc(seat, &Cursors::default(), 0).unwrap();
        // Blocks change hands by the buddy allocator's words, of which loom knows nothing here.
        if at == plot.slot_at {
            plot.touch(16);
        }
        0
    };
    race(uses, Fate::Free, 2..=2);
}
