//! Keeping the upper levels true: merging empty words, raising and lowering bounds.
//!
//! One mechanism does all of it. An *inspection* marks a word, reads the words below, and commits what it learned only
//! if the word has not changed since the mark. An operation that makes an inspection untrue, by a claim or a free
//! below, looks at the word afterwards, sees the mark, and changes the word. A mark belongs to nobody: a second
//! inspection works under the mark of the first, so that one of them commits.

use super::Tree;
use crate::sync::Word;
use crate::word;

/// How often a free tries a merge before it leaves the merge to whichever allocation needs the block.
const ATTEMPTS: u32 = 3;

impl<W: Word> Tree<'_, W> {
    /// Raises the bound of every word above word `idx` of `level` to `offer`.
    pub fn publish(&self, level: usize, idx: u64, offer: u64) {
        let mut above = idx;
        for at in level + 1..=self.geometry.top() {
            (above, _) = W::SHAPE.parent(above);
            self.raise(at, above, offer);
        }
    }

    /// Raises the bound of every word above word `idx` of `level` to what that offers with `left` in it.
    pub fn publish_left(&self, level: usize, idx: u64, left: u64) {
        self.publish(level, idx, self.offer(level, idx, left));
    }

    /// Frees the slots above an empty word, as far up as words are empty, and raises the bounds above the first that is
    /// not. Retries only when somebody else changed a word on the way.
    #[cold]
    pub fn merge(&self, level: usize, idx: u64) {
        self.merge_within(u32::MAX, level, idx);
    }

    /// [Merges](Self::merge) after a free. If others change the word above again and again, sets the bounds to say that
    /// a merge is waiting, and leaves the merge to whichever allocation needs the block. Not for what an undone claim
    /// leaves: that may lie below a block, where nobody looks for it.
    #[cold]
    pub fn merge_or_leave(&self, level: usize, idx: u64) {
        self.merge_within(ATTEMPTS, level, idx);
    }

    fn merge_within(&self, most: u32, mut level: usize, mut idx: u64) {
        let mut attempts = 0;
        while level < self.geometry.top() {
            let word = self.read(level, idx);
            if word::codes(level, word) != 0 {
                return self.publish_left(level, idx, word);
            }
            let (above, slot) = W::SHAPE.parent(idx);
            let mut word_above = self.read(level + 1, above);
            if word_above & word::MARK != 0 && word::code(word_above, slot) == word::FREE {
                // The mark may be of a `split_over` that saw what the caller has cleared since. It is cleared only
                // once: a later one is of a caller that sees the word empty, perhaps of a merge, which would have to
                // begin again each time.
                word_above = self.raise(level + 1, above, 0);
            }
            match word::code(word_above, slot) {
                word::SPLIT if attempts == most => {
                    return self.publish(level, idx, word::UNSETTLED);
                }
                word::SPLIT => {
                    attempts += 1;
                    self.inspect(level + 1, above, 1 << (2 * slot));
                }
                word::FREE => {
                    // Between the commit that freed the slot and the look further up: "Orderings" in DESIGN.md, `commit`.
                    W::store_load_fence();
                    (level, idx, attempts) = (level + 1, above, 0);
                }
                _ => return,
            }
        }
    }

    /// Called after `new` was left in a word of `level`. [Merges](Self::merge) the word if it is empty, otherwise
    /// raises the bounds above to what it offers.
    pub fn merge_or_publish(&self, level: usize, idx: u64, new: u64) {
        if word::codes(level, new) == 0 {
            self.merge(level, idx);
        } else {
            self.publish_left(level, idx, new);
        }
    }

    /// Inspects the words below those split slots of an inner word that are in `slots`. A slot becomes free if the word
    /// below it is empty. If `slots` is every slot, the bound becomes what the words below offer. Returns the codes
    /// that it replaced and the new ones, or `None` if somebody else changed the word and nothing was committed.
    fn inspect(&self, level: usize, idx: u64, slots: u64) -> Option<(u64, u64)> {
        let marked = self.mark(level, idx)?;
        let old = word::codes(level, marked.value);
        let (codes, bound) = self.look_below(level, idx, marked.value, slots);
        marked.commit(codes, bound).then_some((old, codes))
    }

    /// Splits the free slot above word `idx` of `level`, if the word is in use: its claims are still climbing, or their
    /// owners died. Does nothing if somebody else changes the word above meanwhile.
    ///
    /// An inspection does it, so that the slot is not split over a word that has emptied, which nobody would merge if
    /// this caller died. Whoever empties the word looks at the slot afterwards, and clears the mark or sees it split.
    pub fn split_over(&self, level: usize, idx: u64) {
        let (above, slot) = W::SHAPE.parent(idx);
        let to_be_split = |word| {
            word::code(word, slot) == word::FREE && word::codes(level, self.read(level, idx)) != 0
        };
        // Most often there is nothing to be split, and no need for a mark.
        if !to_be_split(self.read(level + 1, above)) {
            return;
        }
        let Some(marked) = self.mark(level + 1, above) else { return };
        let old = marked.value;
        let splits = to_be_split(old);
        // What the claims left of the slot: at most its largest half. The bounds above allow for all of it.
        let left = u64::from(W::SHAPE.slot_order(level + 1));
        let (split, least) = if splits { (word::SPLIT << (2 * slot), left) } else { (0, 0) };
        marked.commit(word::codes(level + 1, old) | split, word::bound(old).max(least));
    }

    /// Returns the codes and the bound that an inspection of `slots` would give an inner word.
    fn look_below(&self, level: usize, idx: u64, word: u64, slots: u64) -> (u64, u64) {
        // Level 1 is tested here, so that the loop over leaf words does not test each of them, as in `Blocks::choose`.
        if level == 1 {
            self.look_at(1, idx, word, slots)
        } else {
            self.look_at(level, idx, word, slots)
        }
    }

    #[inline]
    fn look_at(&self, level: usize, idx: u64, word: u64, slots: u64) -> (u64, u64) {
        let mut codes = word::codes(level, word);
        let split = self.split_slots(level, idx, codes);
        let mut bound = if split & !slots == 0 { 0 } else { word::bound(word) };
        let below = self.below(level, idx);
        for slot in word::from_slot(split & slots, 0) {
            let found = below.read(slot);
            if word::codes(level - 1, found) == 0 {
                codes &= !(word::SPLIT << (2 * slot));
            } else if below.offers(slot, found, bound + 1) {
                bound = below.offer(slot, found);
            }
        }
        (codes, bound)
    }

    /// Merges the empty words directly below an inner word and lowers its bound to what is there. Returns `false` if
    /// somebody else changed the word and nothing was committed.
    ///
    /// Cost: up to 16 loads and two read-modify-writes, three from level 2 on; then a merge if the word has emptied.
    pub fn tighten(&self, level: usize, idx: u64) -> bool {
        let Some((old, new)) = self.inspect(level, idx, u64::MAX) else { return false };
        if old != new {
            self.merge(level, idx);
        }
        true
    }

    /// [Tightens](Self::tighten) a word, if that changes anything.
    fn tighten_if_loose(&self, level: usize, idx: u64) -> bool {
        let word = self.read(level, idx);
        let seen = self.look_below(level, idx, word, u64::MAX);
        seen == (word::codes(level, word), word::bound(word)) || self.tighten(level, idx)
    }

    /// [Tightens](Self::tighten) a word, after settling every word below that may hold a waiting merge. Returns `false`
    /// if somebody else changed one of these words meanwhile, so that merges may still wait.
    #[cold]
    pub fn settle(&self, level: usize, idx: u64) -> bool {
        let word = self.read(level, idx);
        if level == 0 || word::bound(word) != word::UNSETTLED {
            return true;
        }
        let mut is_settled = true;
        for slot in word::from_slot(self.split_slots(level, idx, word::codes(level, word)), 0) {
            is_settled &= self.settle(level - 1, W::SHAPE.child(idx, slot));
        }
        self.tighten_if_loose(level, idx) && is_settled
    }

    /// Returns the codes of a word that holds `word`, with waiting merges counted as made: what is free below it is
    /// free in them.
    pub fn merged_codes(&self, level: usize, idx: u64, word: u64) -> u64 {
        let mut codes = word::codes(level, word);
        if level > 0 && word::bound(word) == word::UNSETTLED {
            for slot in word::from_slot(self.split_slots(level, idx, codes), 0) {
                let (level, idx) = (level - 1, W::SHAPE.child(idx, slot));
                if self.merged_codes(level, idx, self.read(level, idx)) == 0 {
                    codes &= !(word::SPLIT << (2 * slot));
                }
            }
        }
        codes
    }

    /// Tightens a word below which units were reserved, and the words above as far as that lowers them.
    pub fn tighten_upwards(&self, mut level: usize, mut idx: u64) {
        while level <= self.geometry.top() {
            let before = word::bound(self.read(level, idx));
            self.tighten_if_loose(level, idx);
            if word::bound(self.read(level, idx)) >= before {
                return;
            }
            (level, idx) = (level + 1, W::SHAPE.parent(idx).0);
        }
    }
}
