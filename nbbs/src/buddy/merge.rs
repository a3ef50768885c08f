//! What keeps the upper levels true: merging empty words, raising and lowering bounds.
//!
//! One mechanism does it all. An *inspection* marks a word, reads the words below, and commits what it
//! learned only if the word has not changed since the mark. Whoever makes an inspection untrue, a
//! claim below or a free below, looks at the word afterwards, sees the mark, and changes the word. A mark
//! is anybody's: a second inspection works under the mark of the first, so that one of them commits.

use super::{Buddy, swap, word};
use crate::geometry::{child, parent, slot_order};
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// What a word can offer: the largest order of a free block in it or below it, plus 1; 0 for none;
    /// [`word::UNSETTLED`] if a merge below might make more. Never too little, sometimes too much.
    pub(super) fn offer(&self, level: usize, idx: u64, word: u64) -> u64 {
        let codes = word::codes(level, word);
        let inside = word::first_slots(self.geometry.whole_slots(level, idx));
        let whole = word::largest(word::free_slots(codes) & inside)
            .map_or(0, |slots| u64::from(slots + slot_order(level) + 1));
        if level == 0 {
            return whole;
        }
        let below = if word::split_slots(codes) == 0 { 0 } else { word::bound(word) };
        let part = self.geometry.partial_slot(level, idx).map_or(0, |(slot, order)| {
            if word::code(codes, slot) == word::FREE { u64::from(order + 1) } else { 0 }
        });
        whole.max(below).max(part)
    }

    /// The split slots of an inner word, by their low bits.
    pub(super) fn split_slots(&self, level: usize, idx: u64, codes: u64) -> u64 {
        word::split_slots(codes) & word::first_slots(self.geometry.slots(level, idx))
    }

    /// Raises the bound of every word above word `idx` of `level` to `offer`.
    pub(super) fn publish(&self, level: usize, idx: u64, offer: u64) {
        let mut above = idx;
        for at in level + 1..=self.geometry.top {
            (above, _) = parent(above);
            self.raise(at, above, offer);
        }
    }

    fn raise(&self, level: usize, idx: u64, offer: u64) {
        // Pairs with the mark and the commit of `inspect`: it sees the free, or this sees its mark.
        let mut old = self.read(level, idx);
        while !word::allows(old, offer) {
            let bound = word::bound(old).max(offer);
            let new = word::inner(old, word::codes(level, old), bound, 0);
            // SeqCst: the change of version that makes a concurrent `inspect` fail to commit.
            match swap(self.word(level, idx), old, new) {
                Ok(_) => {
                    W::store_load_fence();
                    return;
                }
                Err(found) => old = found,
            }
        }
    }

    /// Turns the slots above an empty word free, as far up as words are empty, and raises the bounds
    /// above the first that is not. Retries only when somebody else changed a word on the way.
    #[cold]
    pub(super) fn merge(&self, mut level: usize, mut idx: u64) {
        while level < self.geometry.top {
            let word = self.read(level, idx);
            if word::codes(level, word) != 0 {
                return self.publish(level, idx, self.offer(level, idx, word));
            }
            let (above, slot) = parent(idx);
            match word::code(self.read(level + 1, above), slot) {
                word::SPLIT => {
                    self.inspect(level + 1, above, 1 << (2 * slot));
                }
                word::FREE => (level, idx) = (level + 1, above),
                _ => return,
            }
        }
    }

    /// After `new` was left in a word of `level`: [`merge`](Self::merge) if it is empty, otherwise raises
    /// the bounds above to what it offers.
    pub(super) fn merge_or_publish(&self, level: usize, idx: u64, new: u64) {
        if word::codes(level, new) == 0 {
            self.merge(level, idx);
        } else {
            self.publish(level, idx, self.offer(level, idx, new));
        }
    }

    /// Inspects the words below those split slots of an inner word that are in `slots`: turns a slot
    /// free if the word below it is empty, and, if `slots` is every slot, sets the bound to what the
    /// words below offer. Returns the codes that it replaced and the new ones, or `None` if somebody else
    /// changed the word and nothing was committed.
    fn inspect(&self, level: usize, idx: u64, slots: u64) -> Option<(u64, u64)> {
        let word = self.word(level, idx);
        let old = self.read(level, idx);
        let marked = if old & word::MARK == 0 {
            let marked = word::inner(old, word::codes(level, old), word::bound(old), word::MARK);
            // The write of the pair "mark, then read the word below" against claims and clears.
            swap(word, old, marked).ok()?;
            marked
        } else {
            // Another inspection is under way, or has died. A mark of our own would undo it for nothing;
            // reads that come after its mark are as good under that one.
            old
        };
        if level > 1 {
            self.pass_epoch();
        }
        W::store_load_fence();
        let (codes, bound) = self.look_below(level, idx, marked, slots);
        let new = word::inner(marked, codes, bound, 0);
        // Passes on what the reads below acquired, to whoever claims the merged slot.
        swap(word, marked, new).ok()?;
        Some((word::codes(level, old), codes))
    }

    /// The codes and the bound that an inspection of `slots` would give an inner word.
    fn look_below(&self, level: usize, idx: u64, word: u64, slots: u64) -> (u64, u64) {
        let mut codes = word::codes(level, word);
        let split = self.split_slots(level, idx, codes);
        let mut bound = if split & !slots == 0 { 0 } else { word::bound(word) };
        for slot in word::from_slot(split & slots, 0) {
            let below = child(idx, slot);
            let found = self.read(level - 1, below);
            if word::codes(level - 1, found) == 0 {
                codes &= !(word::SPLIT << (2 * slot));
            } else {
                bound = bound.max(self.offer(level - 1, below, found));
            }
        }
        (codes, bound)
    }

    /// Merges what is empty directly below an inner word and lowers its bound to what is there.
    ///
    /// Costs up to 16 loads, and two read-modify-writes if something changes.
    pub(super) fn tighten(&self, level: usize, idx: u64) {
        let word = self.read(level, idx);
        let seen = self.look_below(level, idx, word, u64::MAX);
        if seen == (word::codes(level, word), word::bound(word)) {
            return;
        }
        if self.inspect(level, idx, u64::MAX).is_some_and(|(old, new)| old != new) {
            self.merge(level, idx);
        }
    }

    /// [`tighten`](Self::tighten), after the same for every word below that may hold a waiting merge.
    #[cold]
    pub(super) fn settle(&self, level: usize, idx: u64) {
        let word = self.read(level, idx);
        if level == 0 || word::bound(word) != word::UNSETTLED {
            return;
        }
        for slot in word::from_slot(self.split_slots(level, idx, word::codes(level, word)), 0) {
            self.settle(level - 1, child(idx, slot));
        }
        self.tighten(level, idx);
    }

    /// Tightens a word that a lane leaves, and the words above as far as that lowers them.
    pub(super) fn tighten_upwards(&self, mut level: usize, mut idx: u64) {
        while level <= self.geometry.top {
            let before = word::bound(self.read(level, idx));
            self.tighten(level, idx);
            if word::bound(self.read(level, idx)) >= before {
                return;
            }
            (level, idx) = (level + 1, parent(idx).0);
        }
    }
}
