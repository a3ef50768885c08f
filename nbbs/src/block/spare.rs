//! Spares: free blocks that frees of the lane's left alone, with a buddy in use, and that the lane has noted.
//!
//! A program that frees at random and asks for many sizes seldom finds room at the lane's cursor. A block that was left
//! alone a moment ago and has the order asked for is found without a search, and nothing larger is broken up for it. A
//! larger spare is not taken: where blocks of the right order lie elsewhere, that would break up one after the other.

use super::Blocks;
use crate::lane::{Path, Spares};
use crate::sync::Word;
use crate::word;

impl<W: Word> Blocks<'_, W> {
    /// Notes the free block that a free at `index` is now part of, by what it offers.
    #[inline(always)]
    pub(super) fn note_spare(self, index: u64, offer: u64) {
        if offer == word::UNSETTLED {
            return;
        }
        let order = offer as u32 - 1;
        if let Some(spares) = self.lane.notes().spares(order) {
            spares.note(index >> order << order);
        }
    }

    /// Allocates a spare, or, if the lane knows none that is still one, beside the word at the cursor.
    #[inline(never)]
    pub(super) fn alloc_spare<const LEAF: bool>(self, cursor: u64, order: u32) -> Option<u64> {
        if let Some(spares) = self.lane.notes().spares(order) {
            // Counted, as other threads on this lane may note more.
            for _ in 0..Spares::<W>::MOST {
                let Some(index) = spares.take() else { break };
                if self.claim_spare::<LEAF>(index, order) {
                    return Some(index);
                }
            }
        }
        self.alloc_beside::<LEAF>(cursor, order)
    }

    /// Claims the block of `order` at `index` and climbs. Returns `false` if it is no spare any more, or somebody holds
    /// the area.
    #[inline(always)]
    fn claim_spare<const LEAF: bool>(self, index: u64, order: u32) -> bool {
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let slots = order - W::SHAPE.slot_order(level);
        let (idx, slot) = W::SHAPE.locate(level, index);
        let place = self.geometry().place(level, idx);
        let Some(word) = self.tree().at(place) else { return false };
        let notes = self.lane.notes();
        let old = notes.guess(place, word);
        let is_inside = slot + (1 << slots) <= self.geometry().whole_slots(level, idx);
        let with_buddy = slot & !(1 << slots);
        if !is_inside || word::is_free(word::codes(level, old), with_buddy, slots + 1) {
            return false;
        }
        match word.claim(level, old, slot, slots) {
            Ok(new) => notes.note(place, new),
            Err(found) => {
                notes.note(place, found);
                return false;
            }
        }
        // The path of the claims remains that above the cursor.
        if self.lane.climb(Path::Frees, level, idx) {
            return true;
        }
        self.undo(index, order);
        false
    }
}
