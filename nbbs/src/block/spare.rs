//! Spares. A *spare* is a free block whose buddy is in use, which one of the lane's frees left. The lane notes its
//! word, not its slot.
//!
//! A program that frees at random and asks for many sizes seldom finds room at the lane's cursor. A spare of the order
//! asked for is found without a search, and nothing larger is broken up for it. A larger spare is not taken: where
//! blocks of the right order lie elsewhere, that would break up one after the other.
//!
//! A free notes its block if it had to look further up than the word above, which it need not do where it frees block
//! after block. It also notes a block that is at least as large as a leaf word if the lane did not change the block's
//! word last. Nothing is noted by batches, by frees whose first compare-and-swap fails, and by a lane that has not
//! allocated that order yet.

use super::{Blocks, level_and_log2};
use crate::lane::{NOWHERE, Path};
use crate::sync::Word;
use crate::word;

impl<W: Word> Blocks<'_, W> {
    /// Notes the word of the free block to which the units freed at `index` now belong. `offer` is that block's order,
    /// plus 1.
    #[inline(always)]
    pub(super) fn note_spare<const LEAF: bool>(self, index: u64, offer: u64) {
        if offer == word::UNSETTLED {
            return;
        }
        let order = offer as u32 - 1;
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let notes = self.lane.notes();
        if let Some(spares) = notes.spares::<LEAF>(order)
            && let Some(cursor) = notes.cursor(order)
        {
            spares.note(W::SHAPE.locate(level, index).0, cursor);
        }
    }

    /// Allocates a spare, or, if the lane knows none that is still one, beside the word at the cursor. A lane that
    /// begins nowhere searches.
    #[inline(never)]
    pub(super) fn alloc_spare<const LEAF: bool>(self, cursor: u64, order: u32) -> Option<u64> {
        if cursor == NOWHERE {
            return self.search(self.lane.cursor(order), order);
        }
        if let Some((idx, index)) = self.claim_spare::<LEAF>(cursor, order) {
            let (level, _) = level_and_log2::<LEAF, W>(order);
            // The path of the claims remains that above the cursor.
            if self.lane.climb(Path::Frees, level, idx) {
                return Some(index);
            }
            self.undo(index, order);
        }
        self.alloc_beside::<LEAF>(cursor, order)
    }

    /// Claims the first of the lane's spares that is still one. Returns its word and its index.
    #[inline(always)]
    fn claim_spare<const LEAF: bool>(self, cursor: u64, order: u32) -> Option<(u64, u64)> {
        let spares = self.lane.notes().spares::<LEAF>(order)?;
        // Counted, as other threads on this lane may note more.
        for _ in 0..spares.most() {
            let idx = spares.take(cursor)?;
            if let Some(index) = self.claim_lone::<LEAF>(idx, order) {
                return Some((idx, index));
            }
        }
        None
    }

    /// Claims a free block of `order` in word `idx` whose buddy is in use. Returns `None` if there is none any more, or
    /// somebody else changes the word meanwhile.
    #[inline(always)]
    fn claim_lone<const LEAF: bool>(self, idx: u64, order: u32) -> Option<u64> {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        let place = self.geometry().place(level, idx);
        let word = self.tree().at(place)?;
        let notes = self.lane.notes();
        let old = notes.guess(place, word);
        let free = self.tree().free_slots(level, idx, word::codes(level, old));
        let slot = word::lone_fit(free, log2)?;
        match word.claim(level, old, slot, log2) {
            Ok(new) => notes.note(place, new),
            Err(found) => {
                notes.note(place, found);
                return None;
            }
        }
        Some(W::SHAPE.first_unit(level, idx, slot))
    }
}
