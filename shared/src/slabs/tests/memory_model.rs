//! Under loom: what was done with a block or a slot happens before what its next holder does, where that has it by
//! recovery, or after recovery has freed it. In every execution with three preemptions.
//!
//! Tags, turns and the slots' words are raced; pins are not.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use testkit_loom::model;

use super::raced::Words;
use crate::ledger::{Fate, Liveness, Seat, TURN_STRIDE};
use crate::slabs::Cursors;

/// A segment, in which the member on seat 0 has died with a block and a slot, and what stands in these two.
struct Plot {
    words: Words<false>,
    /// Where the slot begins.
    slot_at: u64,
    block: UnsafeCell<()>,
    slot: UnsafeCell<()>,
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
            words: Words::new(|at| at % TURN_STRIDE == 0, |_| false),
            slot_at: 0,
            block: UnsafeCell::new(()),
            slot: UnsafeCell::new(()),
        };
        plot.slot_at = {
            let slabs = plot.words.slabs();
            let dead = slabs.sit(0).unwrap();
            slabs.ledger.alloc(&dead, 2).unwrap().unwrap();
            slabs.alloc(&dead, &Cursors::default(), 0).unwrap()
        };
        plot
    }

    /// Uses a block, or the slot, which must be the caller's alone.
    fn touch(&self, bytes: u64) {
        let cell = if bytes == 16 { &self.slot } else { &self.block };
        // Loom says so if another accesses it at the same time.
        cell.with_mut(drop);
    }

    /// Recovers, uses what it gets, and says how much that was.
    fn recover(&self, seat: &Seat, fate: Fate) -> usize {
        let found = self.words.slabs().recover(seat, self, |_, bytes| {
            self.touch(bytes);
            fate
        });
        assert_eq!((found.pending, found.damaged), (0, 0));
        found.kept + found.freed
    }
}

#[track_caller]
fn race(second: fn(&Plot, &Seat) -> usize, first: Fate, all: std::ops::RangeInclusive<usize>) {
    model(3, move || {
        #[expect(clippy::arc_with_non_send_sync)] // Loom looks at who shares it.
        let plot = Arc::new(Plot::new());
        let seats = [1, 2].map(|seat| plot.words.slabs().sit(seat).unwrap());
        let [mine, other] = seats;
        let beside = Arc::clone(&plot);
        let thread = thread::spawn(move || second(&beside, &other));
        let found = plot.recover(&mine, first) + thread.join().unwrap();
        assert!(all.contains(&found), "{found} of {all:?}");
    });
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
        let slabs = plot.words.slabs();
        let at = slabs.alloc(seat, &Cursors::default(), 0).unwrap();
        // Blocks change hands by the buddy allocator's words, of which loom knows nothing here.
        if at == plot.slot_at {
            plot.touch(16);
        }
        0
    };
    race(uses, Fate::Free, 2..=2);
}
