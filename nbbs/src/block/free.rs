//! Freeing a block: find it, clear it with one compare-and-swap, update the words above.

use super::{Blocks, level_and_log2};
use crate::error::FreeError;
use crate::lane::{Path, PathAbove};
use crate::sync::Word;
use crate::word;

impl<W: Word> Blocks<'_, W> {
    /// Checks that `index` is one of the arena's units.
    #[inline(always)]
    pub fn check_index(self, index: u64) -> Result<(), FreeError> {
        let units = self.geometry().units();
        if index < units { Ok(()) } else { Err(FreeError::outside(index, units)) }
    }

    /// Frees the block at `index` and returns its order. Nothing has changed if there is none.
    #[inline(always)]
    pub fn free(self, index: u64) -> Result<u32, FreeError> {
        self.check_index(index)?;
        match self.lane.path_above(W::SHAPE.locate(0, index).0) {
            PathAbove::Split => {
                if let Some(order) = self.order_in_leaf(index)
                    && self.clear_quickly::<true, false>(index, order)
                {
                    return Ok(order);
                }
            }
            PathAbove::Unknown => return self.free_elsewhere(index),
            PathAbove::Ends => {}
        }
        self.free_found(index)
    }

    /// Frees the block at `index` where the lane does not know what is above, and looks.
    #[inline(never)]
    fn free_elsewhere(self, index: u64) -> Result<u32, FreeError> {
        if self.lane.surveys_path(W::SHAPE.locate(0, index).0)
            && let Some(order) = self.order_in_leaf(index)
            && self.clear_quickly::<true, true>(index, order)
        {
            return Ok(order);
        }
        self.free_found(index)
    }

    /// Frees the block at `index`, whose order is found from the top.
    #[inline(always)]
    fn free_found(self, index: u64) -> Result<u32, FreeError> {
        loop {
            let order = self.order_at(index)?;
            if self.clear(index, order) {
                return Ok(order);
            }
        }
    }

    /// Returns the order of the block that begins at unit `index`, if it is in a leaf word, for a caller that has seen
    /// every slot above split: a larger block would keep one of them from being split for as long as it is held. What
    /// the lane learns of the slots above shortens the look that follows the clear, but does not replace it: the word
    /// directly above and the epoch are read again then.
    #[inline(always)]
    fn order_in_leaf(self, index: u64) -> Option<u32> {
        let (idx, slot) = W::SHAPE.locate(0, index);
        let place = self.geometry().place(0, idx);
        // From the lane's note, right or wrong: the clear finds out.
        let codes = self.lane.notes().guess(place, self.tree().at(place)?);
        if word::code(codes, slot) != word::HEAD || self.tree().is_hidden(0, idx, slot) {
            return None;
        }
        word::block_order(codes, slot).filter(|&order| order < W::SHAPE.word_order(0))
    }

    /// Frees the block of `order` at `index`. Nothing has changed if it is not there.
    #[inline(always)]
    pub fn free_sized(self, index: u64, order: u32) -> Result<(), FreeError> {
        if order > self.geometry().max_order() {
            return Err(FreeError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        self.check_index(index)?;
        if index & ((1 << order) - 1) != 0 {
            return Err(FreeError::Misaligned { index, order });
        }
        if self.clear(index, order) { Ok(()) } else { Err(self.refusal(index, order)) }
    }

    /// Finds why there was no block of `order` at `index` to be freed.
    #[cold]
    fn refusal(self, index: u64, order: u32) -> FreeError {
        match self.order_at(index) {
            Ok(actual) if actual != order => FreeError::WrongOrder { index, order, actual },
            // It was free when it was looked at, and has been allocated again since.
            Ok(_) => FreeError::NotAllocated { index },
            Err(error) => error,
        }
    }

    /// Returns the order of the block that begins at unit `index`, unless it is a run.
    #[inline(always)]
    pub fn order_at(self, index: u64) -> Result<u32, FreeError> {
        self.check_index(index)?;
        let mut level = self.geometry().top();
        loop {
            let (idx, slot) = W::SHAPE.locate(level, index);
            let codes = word::codes(level, self.tree().read(level, idx));
            match word::code(codes, slot) {
                word::SPLIT if level > 0 => level -= 1,
                word::HEAD if self.tree().is_hidden(level, idx, slot) => {
                    return Err(FreeError::Reserved { index });
                }
                word::HEAD if W::SHAPE.begins_slot(level, index) => {
                    // If it were as large as its word, it would be in the word above.
                    return word::block_order(codes, slot)
                        .filter(|&log2| log2 < W::SHAPE.slots_log2(level))
                        .map(|log2| log2 + W::SHAPE.slot_order(level))
                        .ok_or(FreeError::NotABlock { index });
                }
                word::FREE => return Err(FreeError::NotAllocated { index }),
                word::RESERVED => return Err(FreeError::Reserved { index }),
                _ => return Err(FreeError::NotABlock { index }),
            }
        }
    }

    /// Clears the block of `order` at `index` and updates the words above. Returns `false` if it is not there.
    #[inline(always)]
    fn clear(self, index: u64, order: u32) -> bool {
        if order < W::SHAPE.word_order(0) {
            self.clear_quickly::<true, false>(index, order)
        } else {
            self.clear_quickly::<false, false>(index, order)
        }
    }

    /// Clears a block in the common case: the word holds what it seems to hold and the words above need no change. As
    /// in an allocation, the rest is left to a tail call. `LEAF`: the block is one of a leaf word. `SURVEYED`: the lane
    /// had not freed there, and has just looked at the words above.
    #[inline]
    fn clear_quickly<const LEAF: bool, const SURVEYED: bool>(self, index: u64, order: u32) -> bool {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        let (idx, slot) = W::SHAPE.locate(level, index);
        let place = self.geometry().place(level, idx);
        let notes = self.lane.notes();
        let Some(word) = self.tree().at(place) else { return false };
        let (old, is_last) = notes.guess_last(place, word);
        let (new, left) = match word.clear(level, old, slot, log2) {
            Some(Ok(cleared)) => cleared,
            Some(Err(found)) => {
                notes.note(place, found);
                return self.clear_slowly(index, order);
            }
            None => return self.clear_slowly(index, order),
        };
        notes.note_freed(place, new, order, slot);
        // Between the clear and the look at the bound above, or at the epoch.
        W::store_load_fence();
        if level == self.geometry().top() {
            return true;
        }
        if left == 0 && notes.cursor(order) != Some(idx) {
            return self.merge_emptied(level, idx, order);
        }
        let (above, _) = W::SHAPE.parent(idx);
        let place = self.geometry().place(level + 1, above);
        // Pairs with the mark, which this sees if the inspection missed the free.
        let above = self.tree().at(place);
        let bound = above.and_then(|above| word::unmarked_bound(above.load_before_fence()));
        let bound = bound.unwrap_or(0);
        let known = bound.min(self.lane.known_bound(Path::Frees, place).unwrap_or(0));
        let leaves_spare = SURVEYED || !LEAF && !is_last;
        // In a word still in use no free block is as large as the word. So nothing need be counted where all may be.
        let most = u64::from(W::SHAPE.word_order(level));
        if left != 0 && !leaves_spare && known >= most {
            return true;
        }
        let offer = offer_of::<W>(level, left, slot);
        if known < offer {
            return self.tell_above::<LEAF>(index, order, offer, bound);
        }
        if leaves_spare {
            self.note_spare::<LEAF>(index, offer);
        }
        true
    }

    /// Notes the spare that a free of `order` at `index` left, and raises the bounds above to what it offers, where they
    /// do not allow for it yet. `bound` is that of the word directly above, or 0. Always returns `true`, so that it can
    /// be the caller's tail call.
    #[inline(never)]
    fn tell_above<const LEAF: bool>(self, index: u64, order: u32, offer: u64, bound: u64) -> bool {
        self.note_spare::<LEAF>(index, offer);
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        if bound < offer {
            self.tree().publish(level, W::SHAPE.locate(level, index).0, offer);
            return true;
        }
        let (above, _) = W::SHAPE.locate(level + 1, index);
        if self.lane.survey(Path::Frees, level + 1, above).is_none_or(|bound| bound < offer) {
            self.tree().publish(level + 1, above, offer);
        }
        true
    }

    /// Merges a word that frees of blocks of `order` have emptied, unless a lane is at work there: then the word stays
    /// split, for that lane's next allocation to fill. If the word is not this lane's, this lane forgets the block
    /// noted in it. Always returns `true`, like [`tell_above`](Self::tell_above).
    #[inline(never)]
    fn merge_emptied(self, level: usize, idx: u64, order: u32) -> bool {
        let notes = self.lane.notes();
        let is_own = notes.cursor(order) == Some(idx);
        if !is_own {
            notes.forget_fit();
        }
        if is_own || self.lane.is_another_at_work(level, idx, order) {
            self.tree().publish(level, idx, word::UNSETTLED);
        } else {
            self.tree().merge_or_leave(level, idx);
        }
        true
    }

    /// Clears a block, ignoring what the lane remembers of its word.
    #[inline(never)]
    fn clear_slowly(self, index: u64, order: u32) -> bool {
        let cleared = self.clear_word(index, order);
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        cleared.is_some_and(|left| self.tell_freed(level, idx, order, left))
    }

    /// Updates the words above for what frees of blocks of `order` left in word `idx` of `level`. Always returns
    /// `true`, like [`tell_above`](Self::tell_above).
    pub(super) fn tell_freed(self, level: usize, idx: u64, order: u32, left: u64) -> bool {
        if word::codes(level, left) == 0 {
            return self.merge_emptied(level, idx, order);
        }
        self.tree().publish_left(level, idx, left);
        true
    }

    /// Clears a block in its word and returns what the word holds now. Does not update the words above.
    pub(super) fn clear_word(self, index: u64, order: u32) -> Option<u64> {
        let (level, log2) = level_and_log2::<false, W>(order);
        let (idx, slot) = W::SHAPE.locate(level, index);
        // The word is treated as codes alone, as in a leaf word: this transition does not concern the rest of an inner
        // word.
        let change = |codes| word::without_block(0, codes, slot, log2);
        let cleared = self.tree().rewrite(level, idx, change);
        self.lane.noted(level, idx, cleared).map(|(new, _)| new)
    }
}

/// Returns what the words above must allow for after `slot` came free in a word that now has the codes `left`: the order,
/// plus 1, of the block that it is part of now; a merge, if nothing in the word is in use.
#[inline(always)]
fn offer_of<W: Word>(level: usize, left: u64, slot: u32) -> u64 {
    if left == 0 {
        return word::UNSETTLED;
    }
    let log2 = word::grown(left, slot, W::SHAPE.slots_log2(level));
    u64::from(log2 + W::SHAPE.slot_order(level) + 1)
}
