//! Finding a free slot elsewhere than at the cursor: where others have freed one, in a new slab, or anywhere.

use std::cell::Cell;

use nbbs::sync::{Ordering, Word};

use super::{Cursor, HINTS_OF_CLASS, Memory, Slab, Slabs};
use crate::ledger::{Owner, Seat};

impl<W: Word, M: Memory<W>> Slabs<'_, W, M> {
    /// Allocates a slot of a class wherever there is one, and moves the member's cursor there.
    #[cold]
    pub(super) fn find(
        &self,
        seat: &Seat,
        place: &Cell<Option<Cursor>>,
        class: usize,
    ) -> Option<u64> {
        // Its pin is used for other slabs from now on.
        place.set(None);
        let found = self
            .find_by_hints(seat, class)
            .or_else(|| self.make(seat, class))
            .or_else(|| self.find_by_walk(seat, class));
        if found.is_none() {
            self.unpin(seat.number, class);
        }
        place.set(found.map(|(slab, slot)| Cursor { index: slab.index, slot: slot + 1 }));
        found.map(|(slab, slot)| self.start(slab, slot))
    }

    /// Records that a slab has a free slot, for members that look for one. Cost: a load, and a store if it was not
    /// recorded before.
    #[inline(always)]
    pub(super) fn hint(&self, slab: Slab) {
        let number = (slab.index >> self.shape.order) as usize % HINTS_OF_CLASS;
        let Some(word) = self.hints_of(slab.class).and_then(|hints| hints.get(number)) else {
            return;
        };
        // Relaxed: its readers examine the slab.
        if word.load(Ordering::Relaxed) != slab.index + 1 {
            word.store(slab.index + 1, Ordering::Relaxed);
        }
    }

    fn find_by_hints(&self, seat: &Seat, class: usize) -> Option<(Slab, usize)> {
        self.hints_of(class)?.iter().find_map(|word| {
            // Relaxed: it is only a hint, which may be anything.
            let hint = word.load(Ordering::Relaxed);
            let found = self.claim_in(seat, class, hint.checked_sub(1)?);
            if found.is_none() {
                // Relaxed: as above. A member that frees in it records it again.
                let _ = word.compare_exchange(hint, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
            found
        })
    }

    /// Pins what may be a slab, and allocates a slot there.
    fn claim_in(&self, seat: &Seat, class: usize, index: u64) -> Option<(Slab, usize)> {
        let slab = self.pin(seat, class, index)?;
        let slot = (slab.class == class).then(|| self.claim(seat, slab, 0)).flatten();
        if slot.is_none() {
            self.unpin(seat.number, class);
        }
        Some((slab, slot?))
    }

    /// Makes a slab whose first slot is the member's from the beginning, so that nobody takes the slab apart before it
    /// is pinned. A member that dies in it leaves a block, or a slot.
    fn make(&self, seat: &Seat, class: usize) -> Option<(Slab, usize)> {
        let index = self.ledger.alloc(seat, self.shape.order)?.ok()?;
        let slab = Slab { index, class };
        let tag = self.ledger.tag_of(index)?;
        for (slot, word) in self.words_of(slab)?.iter().enumerate() {
            let owner = if slot == 0 { seat.owner } else { Owner::NOBODY };
            // Relaxed: the tag is swapped afterwards.
            word.store(owner.after_in_slot(tag), Ordering::Relaxed);
        }
        if !self.ledger.swap_tag(index, tag, Owner::slab(class).after(tag)) {
            return None;
        }
        Some((self.pin(seat, class, index)?, 0))
    }

    /// Looks at all existing slabs.
    fn find_by_walk(&self, seat: &Seat, class: usize) -> Option<(Slab, usize)> {
        let slabs = self.ledger.blocks().into_iter();
        let mut of_class = slabs.filter(|found| Owner::of(found.tag).class() == Some(class));
        of_class.find_map(|found| self.claim_in(seat, class, found.index))
    }

    fn hints_of(&self, class: usize) -> Option<&[W]> {
        let first = class.checked_mul(HINTS_OF_CLASS)?;
        self.hints.get(first..first.checked_add(HINTS_OF_CLASS)?)
    }
}
