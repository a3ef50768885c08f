//! Under loom: either a member that goes for a slot sees that its slab is closed, or the trimmer that closes it sees
//! the pin; and a member that finds a new slab sees what its maker did before. In every execution with three
//! preemptions.
//!
//! Tags, slots' words and the pins of the one are raced; turns, which nobody reads here, are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::thread;
use nbbs::sync::Word as _;
use testkit_loom::model;

use super::raced::{Word, Words};
use crate::ledger::{Liveness, Seat};
use crate::slabs::{Cursors, PIN_STRIDE};

/// The order of a slab, its words, and the bytes of a slot.
const ORDER: u32 = 2;
const WORDS: usize = 8 << ORDER;
const BYTES: u64 = 16;

struct Plot(Words<true>);

impl Liveness for Plot {
    fn is_alive(&self, _seat: usize) -> bool {
        true
    }
}

impl Plot {
    /// With a slab of which no slot is in use, and a hint that leads to it; and its maker, who has not pinned it.
    fn new() -> (Self, Seat) {
        let words = Words::new(|_| false, |at| at == 2 * PIN_STRIDE);
        let (slab, maker) = {
            let (slabs, cursors) = (words.slabs(), Cursors::default());
            let seat = slabs.sit(1).unwrap();
            let at = slabs.alloc(&seat, &cursors, 0).unwrap();
            slabs.free(&seat, &cursors, at).unwrap().unwrap();
            slabs.unpin_all(seat.number);
            ((at >> 6 >> ORDER) << ORDER, seat)
        };
        words.hints[0].store(slab + 1, Ordering::Relaxed);
        (Self(words), maker)
    }

    /// Trims, and fills the block that was a slab, if one was freed, with what free slots look like.
    fn trim(&self, seat: &Seat) -> Option<u64> {
        if self.0.slabs().trim(seat, &Cursors::default(), self) == 0 {
            return None;
        }
        let block = self.0.slabs().ledger.alloc(seat, ORDER).unwrap().unwrap();
        self.words(block).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        Some(block)
    }

    fn words(&self, block: u64) -> &[Word<true>] {
        &self.0.units.0[block as usize * 8..][..WORDS]
    }

    fn is_as_it_was(&self, block: u64) -> bool {
        self.words(block).iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }
}

#[test]
fn a_pin_is_seen_or_the_tag() {
    let (kept, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = [Arc::clone(&kept), Arc::clone(&freed)];
    model(3, move || {
        let (plot, trimmer) = Plot::new();
        let plot = Arc::new(plot);
        let other = plot.0.slabs().sit(2).unwrap();
        let beside = Arc::clone(&plot);
        let thread = thread::spawn(move || {
            let at = beside.0.slabs().alloc(&other, &Cursors::default(), 0);
            (at.unwrap(), other.owner)
        });
        let block = plot.trim(&trimmer);
        let (at, owner) = thread.join().unwrap();
        assert_eq!(plot.0.slabs().owner_at(at), Some(Ok((BYTES, owner))), "{at}");
        assert!(block.is_none_or(|block| plot.is_as_it_was(block)), "somebody wrote there");
        counted[usize::from(block.is_some())].fetch_add(1, Ordering::Relaxed);
    });
    let [kept, freed] = [kept, freed].map(|count| count.load(Ordering::Relaxed));
    println!("nothing in {kept} executions that keep the slab, and {freed} that free it");
    assert!(kept > 5 && freed > 5, "{kept} and {freed} executions are no race");
}

/// The maker has used the memory before: nothing but the slab's tag says so to who finds a slot behind its first.
#[test]
fn a_new_slab_is_seen_whole() {
    let found = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&found);
    model(3, move || {
        // Fences of the way there would order it, too.
        let words = Words::<false>::new(|_| false, |_| false);
        let seats = [1, 2].map(|seat| words.slabs().sit(seat).unwrap());
        // There is room for one.
        let held = words.slabs().ledger.alloc(&seats[0], ORDER).unwrap().unwrap();
        let slab = held ^ 1 << ORDER;
        words.hints[0].store(slab + 1, Ordering::Relaxed);
        let [maker, other] = seats;
        #[expect(clippy::arc_with_non_send_sync)] // Loom looks at who shares it.
        let plot = Arc::new((words, UnsafeCell::new(())));
        let beside = Arc::clone(&plot);
        let thread = thread::spawn(move || {
            let at = beside.0.slabs().alloc(&other, &Cursors::default(), 0);
            // The last one is the first slot, of who made the slab.
            let finds = at.is_some_and(|at| at != (slab << 6) + (64 << ORDER) - BYTES);
            if finds {
                // Loom says so if that is not after the maker's.
                beside.1.with_mut(drop);
            }
            finds
        });
        plot.1.with_mut(drop);
        // Nothing, while the other makes one.
        let _ = plot.0.slabs().alloc(&maker, &Cursors::default(), 0);
        counted.fetch_add(usize::from(thread.join().unwrap()), Ordering::Relaxed);
    });
    let found = found.load(Ordering::Relaxed);
    assert!(found > 5, "{found} executions that find it are no race");
}
