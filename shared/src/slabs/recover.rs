//! Recovery of slots, after that of blocks: each is one compare-and-swap from the tag of a member that is gone to the
//! recoverer's.

use nbbs::sync::{Ordering, Word};

use super::class::size;
use super::pins::VISIT;
use super::{Memory, Slab, Slabs};
use crate::ledger::{Dead, Fate, Liveness, Owner, Recovery, Seat, Whose, is_closing};

/// A slot that was made the recoverer's, and its new tag.
struct Left {
    slab: Slab,
    slot: usize,
    tag: u64,
}

impl<W: Word, M: Memory<W>> Slabs<'_, W, M> {
    /// Recovers what the dead held. `decide` says what becomes of each block or slot, which is the caller's when
    /// `decide` is called; it gets its position in bytes from the beginning of the arena, and its bytes.
    pub fn recover(
        &self,
        seat: &Seat,
        liveness: &impl Liveness,
        mut decide: impl FnMut(u64, u64) -> Fate,
    ) -> Recovery {
        // Before the walk, which recovers what belongs to none of today's members.
        let deaths = self.ledger.deaths(seat, liveness);
        let bytes = |units: u64| units << self.shape.unit_log2;
        let decide_block = |index, units| decide(bytes(index), bytes(units));
        let (mut recovery, told) = self.ledger.recover(seat, liveness, &deaths, decide_block);
        for Left { slab, slot, tag } in self.left(seat, &deaths.dead, &mut recovery) {
            // Relaxed: the member has acquired it. If it has changed, the member to which the slot was sent has taken
            // it.
            let is_left = |word: &W| word.load(Ordering::Relaxed) == tag;
            if self.with_pinned(seat, slab, slot, is_left) != Some(true) {
                continue;
            }
            match decide(self.start(slab, slot), size(slab.class) as u64) {
                Fate::Keep => recovery.kept += 1,
                Fate::Free => {
                    let free = |word: &W| Self::swap(word, tag, Owner::NOBODY).is_ok();
                    if self.with_pinned(seat, slab, slot, free) == Some(true) {
                        recovery.freed += 1;
                        self.hint(slab);
                    }
                }
            }
        }
        let closed = self.ledger.blocks().into_iter();
        let closed = closed.filter(|found| Owner::of(found.tag) == Owner::CLOSED).collect();
        self.free_closed(seat, closed, liveness);
        if let Some(deaths) = told {
            self.ledger.bury_all(deaths);
        }
        recovery
    }

    /// Makes the slots of all members that are gone the member's.
    fn left(&self, seat: &Seat, dead: &[Dead], recovery: &mut Recovery) -> Vec<Left> {
        let mut left = Vec::new();
        for found in self.ledger.blocks() {
            let Some(class) = Owner::of(found.tag).class() else { continue };
            if Owner::of(found.tag) == Owner::CLOSED {
                continue;
            }
            if self.shape.slots(class).is_none() {
                recovery.damaged += 1;
                continue;
            }
            let Some(slab) = self.pin(seat, VISIT, found.index) else { continue };
            for (slot, word) in self.words_of(slab).unwrap_or_default().iter().enumerate() {
                // Acquire: anybody who sees a member's name sees that it is alive.
                let tag = word.load(Ordering::Acquire);
                match self.ledger.whose(tag, dead) {
                    Whose::Gone if is_closing(tag) => self.reopen(slab, word, tag),
                    Whose::Gone if Self::swap(word, tag, seat.owner).is_ok() => {
                        left.push(Left { slab, slot, tag: seat.owner.after_in_slot(tag) });
                    }
                    Whose::Nowhere => recovery.damaged += 1,
                    _ => {}
                }
            }
        }
        self.unpin(seat.number, VISIT);
        left
    }

    /// Frees a slot that a trimmer, gone since, had taken to close its slab, unless the slab was closed. The caller has
    /// pinned the slab and seen the trimmer's tag, so it also sees whether the trimmer closed the slab after the pin.
    fn reopen(&self, slab: Slab, word: &W, tag: u64) {
        if self.is_open(slab) && Self::swap(word, tag, Owner::NOBODY).is_ok() {
            self.hint(slab);
        }
    }
}
