//! Repair after a death: finishing what a dead thread or process left in the words above.
//!
//! All of it consists of transitions that other operations make as well: a search splits a slot over a claim, a free
//! merges and raises bounds. So it may run beside everything else, several times at once, and may itself die anywhere.

use crate::sync::Word;
use crate::tree::Tree;
use crate::word;

/// An arena, for operations that repair it.
pub(crate) struct Mend<'b, W>(pub &'b Tree<'b, W>);

copy!(Mend<'_, W>);

impl<W: Word> Mend<'_, W> {
    /// Splits every free slot over a word that is in use, merges what is empty, and raises every bound to what is
    /// below.
    pub fn all(self) {
        self.below(self.0.geometry.top(), 0);
    }

    /// Puts the words below a word in order, from the leaves up, as a claim may have died before it split any slot
    /// above.
    fn below(self, level: usize, idx: u64) {
        if level == 0 {
            return;
        }
        for slot in 0..self.0.geometry.slots(level, idx) {
            let below = W::SHAPE.child(idx, slot);
            if matches!(word::code(self.0.read(level, idx), slot), word::HEAD | word::REST) {
                continue;
            }
            self.below(level - 1, below);
            if self.is_split(level - 1, below) {
                self.0.merge(level - 1, below);
            }
        }
    }

    /// Returns whether the slot above word `idx` of `level` is split, and stays so as long as what was in use there
    /// before this call is. If it is free over a word in use, it is split here.
    fn is_split(self, level: usize, idx: u64) -> bool {
        let (above, slot) = W::SHAPE.parent(idx);
        let in_use = || word::codes(level, self.0.read(level, idx)) != 0;
        if in_use() {
            // Once only: a later mark is of one that sees what is in use. Two mendings that cleared each other's marks
            // again could do so for ever.
            self.stop_late_commits(level, idx, 0);
        }
        loop {
            match word::code(self.0.read(level + 1, above), slot) {
                word::SPLIT => return true,
                word::FREE if in_use() => self.0.split_over(level, idx),
                _ => return false,
            }
        }
    }

    /// Returns whether every slot above word `idx` of `level`, in which the caller has seen a claim, is split and stays
    /// so as long as the claim is there. The answer may be `false` while others inspect the words above.
    pub fn has_path(self, level: usize, idx: u64) -> bool {
        self.stop_late_commits(level, idx, word::UNSETTLED);
        let mut below = idx;
        (level..self.0.geometry.top()).all(|level| {
            // From the lowest up: each slot that passes keeps the next from being merged.
            let passes = self.0.passes(level, below);
            // Before the look at the next word, as wherever slots are passed.
            W::store_load_fence();
            below = W::SHAPE.parent(below).0;
            passes
        })
    }

    /// Keeps inspections from committing that missed a claim which the caller has seen in word `idx` of `level`: they
    /// have marked a word above, and this leaves no mark. Raises the bounds there to `offer`.
    fn stop_late_commits(self, level: usize, idx: u64, offer: u64) {
        // Between the look at the claim and those at the marks.
        W::store_load_fence();
        self.0.publish(level, idx, offer);
    }
}
