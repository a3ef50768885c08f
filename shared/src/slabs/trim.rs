//! Trimming: empty slabs become blocks again. All slots are allocated, the slab is closed, and freed if nobody has
//! pinned it.
//!
//! A member that dies on the way leaves slots of its own, a closed slab, or a block of its own. The next trimmer
//! continues with a closed slab; the rest is recovered.

use nbbs::sync::{Ordering, Word};

use super::pins::VISIT;
use super::{Cursors, Memory, Slabs};
use crate::ledger::{Found, Liveness, Owner, Seat, as_new_as};

impl<W: Word, M: Memory<W>> Slabs<'_, W, M> {
    /// Frees the slabs in which no slot is in use, and returns how many. Slabs that other live members have pinned
    /// stay; the member's own cursors are given up.
    pub fn trim(&self, seat: &Seat, cursors: &Cursors, liveness: &impl Liveness) -> usize {
        cursors.0.iter().for_each(|place| place.set(None));
        self.unpin_all(seat.number);
        let pinned = self.pinned(seat, liveness);
        let slabs = self.ledger.blocks().into_iter();
        let slabs = slabs.filter(|found| pinned.binary_search(&found.index).is_err());
        let closed: Vec<Found> = slabs.filter_map(|found| self.close(seat, found)).collect();
        self.unpin(seat.number, VISIT);
        self.free_closed(seat, closed, liveness)
    }

    /// Frees the closed slabs that nobody has pinned, and returns how many.
    pub(super) fn free_closed(
        &self,
        seat: &Seat,
        closed: Vec<Found>,
        liveness: &impl Liveness,
    ) -> usize {
        // Read once more: the pins are read after the tags, even if another member has closed a slab.
        let is_closed = |found: &Found| self.ledger.tag_when_pinned(found.index) == Some(found.tag);
        let closed: Vec<Found> = closed.into_iter().filter(is_closed).collect();
        if closed.is_empty() {
            return 0;
        }
        let pinned = self.pinned(seat, liveness);
        let closed = closed.into_iter().filter(|found| {
            pinned.binary_search(&found.index).is_err()
                && self.ledger.swap_tag(found.index, found.tag, seat.owner.after(found.tag))
                && self.ledger.free(seat, found.index).is_ok()
        });
        closed.count()
    }

    /// Closes a slab if all of its slots are free, and returns it with its tag. The same for a slab that is closed
    /// already.
    fn close(&self, seat: &Seat, found: Found) -> Option<Found> {
        if Owner::of(found.tag) == Owner::CLOSED {
            return Some(found);
        }
        Owner::of(found.tag).class()?;
        let slab = self.pin(seat, VISIT, found.index)?;
        let words = self.words_of(slab)?;
        // Relaxed: only so that slabs in use are left alone.
        let free = |word: &W| Owner::of(word.load(Ordering::Relaxed)) == Owner::NOBODY;
        if !words.iter().all(free) {
            return None;
        }
        let claimed = words.iter().position(|word| {
            // Relaxed: the swap acquires what depends on it.
            let tag = word.load(Ordering::Relaxed);
            Owner::of(tag) != Owner::NOBODY
                || Self::swap_to(word, tag, seat.owner.closing(tag)).is_err()
        });
        // Newer than any slot's tag: so the tags of slots that are cut there next are new ones, too.
        // Relaxed: they are the member's own.
        let slots = words.iter().map(|word| word.load(Ordering::Relaxed));
        let tag = Owner::CLOSED.after(as_new_as(found.tag, slots));
        if claimed.is_none() && self.ledger.swap_tag(found.index, found.tag, tag) {
            return Some(Found { index: found.index, tag });
        }
        let all = claimed.unwrap_or(words.len());
        (0..all).for_each(|slot| _ = self.give(seat, slab, slot));
        self.hint(slab);
        None
    }
}
