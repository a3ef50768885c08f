//! The climb from a claim to the top, by loads alone where nothing has changed.

use super::Tree;
use crate::layout::geometry::LINE;
use crate::sync::{AFTER_FENCE, Word};
use crate::word;

impl<W: Word> Tree<'_, W> {
    /// Looks at the word directly above word `idx` of `level`, after a claim in that word, and returns whether the word
    /// above is unmarked and the slot split.
    #[inline(always)]
    pub fn passes(&self, level: usize, idx: u64) -> bool {
        let (above, slot) = W::SHAPE.parent(idx);
        // Pairs with the mark, which this sees if the inspection missed the claim.
        word::passes(self.read(level + 1, above), slot)
    }

    /// Looks at every word above inner word `idx` of `level`. Returns `None` if a word is marked, or its slot on the
    /// path is not split; otherwise the least bound.
    #[inline(always)]
    pub fn look_up(&self, level: usize, idx: u64) -> Option<u64> {
        let (mut below, mut bound) = (idx, word::UNSETTLED);
        // Judged at the end, as almost every path is in order: the codes on the path, in slot 0, and the marks.
        let (mut wrong, mut marks) = (0, 0);
        for base in self.geometry.bases_above(level) {
            let (idx, slot) = W::SHAPE.parent(below);
            below = idx;
            // After the caller's claim or clear; pairs with the mark.
            let above = self.words.get(base + (idx as usize) * LINE)?.load(AFTER_FENCE);
            // Another's claim may have split the slot, and not have reached its own fence: this one keeps the look at
            // the next word behind this look.
            W::store_load_fence();
            wrong |= above >> (2 * slot) ^ word::SPLIT;
            marks |= above;
            bound = bound.min(word::bound_and_mark(above));
        }
        (word::code(wrong, 0) == 0 && marks & word::MARK == 0).then_some(bound)
    }

    /// Climbs from a claim in word `idx` of `level`: splits every slot above, and leaves no mark. Returns `false` if a
    /// slot is held, or somebody has wrongly freed the claim; the claim must then be undone.
    #[cold]
    pub fn climb(&self, level: usize, idx: u64) -> bool {
        let mut below = idx;
        let is_open = (level + 1..=self.geometry.top()).all(|level| {
            let (idx, slot) = W::SHAPE.parent(below);
            below = idx;
            self.open(level, idx, slot)
        });
        // Between the splits and the look at the claim.
        W::store_load_fence();
        // Who frees the claim ahead of the climb cannot merge what that splits. Pairs with the clear, which this sees,
        // or the look that follows it sees the split.
        is_open && word::codes(level, self.read(level, idx)) != 0
    }
}
