//! Finding a word in which a block can be claimed.
//!
//! The search begins at the lowest word above the lane's cursor that is in use as such, and goes down
//! wherever a bound promises a block, up where nothing is left. It prefers a split slot to a free one,
//! and among split slots the one that offers the least that suffices: areas in use fill up, whole areas
//! stay whole. The top word's answer ends it: one load decides that nothing is left.

use super::{Buddy, swap, word};
use crate::geometry::{level_of, slots_log2};
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Claims a block of `order` anywhere. `None`: the top word offers none.
    ///
    /// Every round either claims, lowers a bound, splits a slot over a word in use, or was overtaken by
    /// another operation's change.
    #[cold]
    pub(super) fn search(&self, lane: usize, level: usize, cursor: u64, order: u32) -> Option<u64> {
        let need = u64::from(order) + 1;
        let top = self.geometry.top;
        let (mut at, mut idx) = self.lowest_in_use(level, cursor);
        if at == level && level < top {
            // The word at the cursor itself has just been tried.
            (at, idx) = (level + 1, cursor >> 4);
        }
        loop {
            if at > level {
                let near = (cursor >> (4 * (at - level - 1))) as u32 & 15;
                if let Some(slot) = self.choose(at, idx, need, near) {
                    (at, idx) = (at - 1, idx << 4 | u64::from(slot));
                    continue;
                }
                self.tighten(at, idx);
            } else {
                if let Some(index) = self.take(lane, level, idx, order) {
                    self.move_cursor(lane, order, cursor, idx);
                    return Some(index);
                }
                if level > 0 {
                    self.settle(level, idx);
                }
            }
            if self.offers(at, idx, need) {
                // More came free, or the claim met a larger block above: begin again from the top.
                (at, idx) = (top, 0);
            } else if at == top {
                return None;
            } else {
                self.split_over(at, idx);
                (at, idx) = (at + 1, idx >> 4);
            }
        }
    }

    fn offers(&self, level: usize, idx: u64, need: u64) -> bool {
        self.offer(level, idx, self.read(level, idx)) >= need
    }

    /// The lowest word on the way from the top to word `cursor` of `level` that no slot above hides.
    fn lowest_in_use(&self, level: usize, cursor: u64) -> (usize, u64) {
        let mut at = self.geometry.top;
        while at > level {
            let below = cursor >> (4 * (at - level - 1));
            if word::code(self.read(at, below >> 4), (below & 15) as u32) != word::SPLIT {
                return (at, below >> 4);
            }
            at -= 1;
        }
        (level, cursor)
    }

    /// The slot of an inner word to go down into for an offer of `need`, preferably near slot `near`.
    pub(super) fn choose(&self, level: usize, idx: u64, need: u64, near: u32) -> Option<u32> {
        let word = self.read(level, idx);
        let codes = word::codes(level, word);
        let split = self.split_slots(level, idx, codes);
        let mut best = None;
        if level == 1 && word::bound(word) >= need {
            // Leaf words are many and change often: the first that has room will do.
            let has_room =
                |&slot: &u32| self.leaf_has_room(idx << 4 | u64::from(slot), need as u32 - 1);
            best = word::from_slot(split, near).find(has_room).map(|slot| (need, slot));
        } else if word::bound(word) >= need {
            for slot in word::from_slot(split, near) {
                let below = idx << slots_log2(level) | u64::from(slot);
                let offer = self.offer(level - 1, below, self.read(level - 1, below));
                if offer == need {
                    return Some(slot);
                }
                if offer > need && best.is_none_or(|(least, _)| offer < least) {
                    best = Some((offer, slot));
                }
            }
        }
        best.map(|(_, slot)| slot).or_else(|| self.choose_free(level, idx, codes, need, near))
    }

    fn leaf_has_room(&self, leaf: u64, order: u32) -> bool {
        let inside = word::first_slots(self.geometry.whole_slots(0, leaf));
        word::runs(word::free_slots(self.read(0, leaf)) & inside, order) != 0
    }

    /// A free slot of an inner word: the partial one if it suffices, else one whose buddy is in use.
    fn choose_free(&self, level: usize, idx: u64, codes: u64, need: u64, near: u32) -> Option<u32> {
        let free =
            word::free_slots(codes) & word::first_slots(self.geometry.whole_slots(level, idx));
        let partial = self.geometry.partial_slot(level, idx).filter(|&(slot, order)| {
            word::code(codes, slot) == word::FREE && u64::from(order) + 1 >= need
        });
        if let Some((slot, _)) = partial {
            return Some(slot);
        }
        if free >> (2 * near) & 1 == 1 {
            return Some(near);
        }
        word::fit(free, 0)
    }

    /// Splits the slot above a word that is in use but has no room: its claims are still climbing, or
    /// their owners died, and the search must not take the slot for an empty one again.
    fn split_over(&self, level: usize, idx: u64) {
        let slot = (idx & 15) as u32;
        let old = self.read(level + 1, idx >> 4);
        let word = self.read(level, idx);
        if word::code(old, slot) != word::FREE || word::codes(level, word) == 0 {
            return;
        }
        let codes = word::codes(level + 1, old) | word::SPLIT << (2 * slot);
        // Unsettled: the word may have emptied since it was read, and this caller may die before it merges.
        let new = word::inner(old, codes, word::UNSETTLED, 0);
        // SeqCst: a change of version like any other.
        let split = swap(self.word(level + 1, idx >> 4), old, new);
        if split.is_ok() {
            W::store_load_fence();
            self.merge(level, idx);
        }
    }

    /// Moves a lane's cursor, and leaves true bounds behind where it was.
    fn move_cursor(&self, lane: usize, order: u32, from: u64, to: u64) {
        self.set_cursor(lane, order, to);
        if from >> 4 != to >> 4 {
            self.tighten_upwards(level_of(order) + 1, from >> 4);
        }
    }
}
