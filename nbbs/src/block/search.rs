//! Finding a word in which a block can be claimed.
//!
//! The search begins at the lowest word above the lane's cursor that is in use as such, and goes down
//! wherever a bound promises a block, up where nothing is left. Once the words beside the cursor are full it
//! begins again at the top, and takes the way to the lane's home first, then what follows it in each word: what
//! lies next to a lane's home fills up, what lies far from it empties and becomes whole. As long as whole
//! areas are free it goes at first only where a larger block is promised: an area that yields one block and no more costs
//! a search for each. Once none is, every area is used to the last block, so that the larger ones last.
//! The top word's answer ends it: one load decides that nothing is left.

use super::Blocks;
use crate::sync::Word;
use crate::word;

/// How many orders more than needed an area must offer for a search to go there first, as long as memory is not tight.
const ROOM: u64 = 1;

impl<W: Word> Blocks<'_, W> {
    /// Claims a block of `order` anywhere, beginning near word `from` of its level. `None`: the top word
    /// offers none.
    ///
    /// Every round either claims, lowers a bound, splits a slot over a word in use, or was overtaken by
    /// another operation's change.
    #[cold]
    pub(super) fn search(self, from: u64, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        self.search_by(from, order, |idx| self.claim(level, idx, order))
    }

    /// [`search`](Self::search), where `claim` says what is claimed in a word that promises a block, if anything is.
    pub(super) fn search_by<T>(
        self,
        mut from: u64,
        order: u32,
        mut claim: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        let (level, top) = (W::SHAPE.level_of(order), self.geometry().top());
        let need = u64::from(order) + 1;
        let (mut at, mut idx) = self.lowest_in_use(level, from);
        // What an area must offer for the search to enter it.
        let mut room = need;
        loop {
            let ask = if at > level + 1 { room } else { need };
            if at > level {
                let near = near::<W>(self.lane.number, level, from, at, idx);
                if let Some(slot) = self.choose(at, idx, ask, near) {
                    (at, idx) = (at - 1, W::SHAPE.child(idx, slot));
                    continue;
                }
                self.tighten_if_misled(at, idx, ask);
            } else {
                if let Some(claimed) = claim(idx) {
                    self.lane.notes().set_cursor(order, idx);
                    return Some(claimed);
                }
                self.tree().settle(level, idx);
            }
            if self.offers(at, idx, ask) {
                // More came free, or the claim met a larger block above: begin again from the top.
                (at, idx) = (top, 0);
            } else if at == top && ask == need {
                return None;
            } else if at == top {
                room = need;
            } else {
                self.split_over(at, idx);
                if at == level + 1 {
                    // The words beside it are full, too: first fit, from home.
                    from = self.lane.home(level);
                    room = if self.is_spacious(level) { need + ROOM } else { need };
                    (at, idx) = (top, 0);
                } else {
                    (at, idx) = (at + 1, W::SHAPE.parent(idx).0);
                }
            }
        }
    }

    /// Whether an area may be free as a whole, that is, a word above one of `level`: memory is not tight, and need not be
    /// used to the last unit where a search passes.
    fn is_spacious(self, level: usize) -> bool {
        let top = self.geometry().top();
        let area = W::SHAPE.word_order(level + 1);
        top > level && self.offers(top, 0, u64::from(area) + 1)
    }

    fn offers(self, level: usize, idx: u64, need: u64) -> bool {
        self.tree().offer(level, idx, self.tree().read(level, idx)) >= need
    }

    /// The lowest word above word `from` of `level` that no slot above hides; at the top, `from` itself.
    fn lowest_in_use(self, level: usize, from: u64) -> (usize, u64) {
        let mut at = self.geometry().top();
        while at > level + 1 {
            let (idx, slot) = W::SHAPE.parent(W::SHAPE.ancestor(from, at - level - 1));
            if word::code(self.tree().read(at, idx), slot) != word::SPLIT {
                return (at, idx);
            }
            at -= 1;
        }
        (at, W::SHAPE.ancestor(from, at - level))
    }

    /// The slot of an inner word to go down into for a block of order `need` - 1: a split one sooner
    /// than a free one, the first that offers it from slot `near` on.
    fn choose(self, level: usize, idx: u64, need: u64, near: u32) -> Option<u32> {
        let word = self.tree().read(level, idx);
        let codes = word::codes(level, word);
        let split =
            if word::bound(word) < need { 0 } else { self.tree().split_slots(level, idx, codes) };
        let suits = |&slot: &u32| self.offers(level - 1, W::SHAPE.child(idx, slot), need);
        word::from_slot(split, near)
            .find(suits)
            .or_else(|| self.choose_free(level, idx, codes, need, near))
    }

    /// A free slot of an inner word: the partial one if it suffices, else `near`, else one whose buddy is in use.
    fn choose_free(self, level: usize, idx: u64, codes: u64, need: u64, near: u32) -> Option<u32> {
        let free =
            word::free_slots(codes) & word::first_slots(self.geometry().whole_slots(level, idx));
        let partial = self.geometry().partial_slot(level, idx).filter(|&(slot, order)| {
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
    fn split_over(self, level: usize, idx: u64) {
        let (above, slot) = W::SHAPE.parent(idx);
        let old = self.tree().read(level + 1, above);
        let in_use = word::codes(level, self.tree().read(level, idx)) != 0;
        // Unsettled: the word may have emptied since it was read, and this caller may die before it merges.
        if in_use && self.tree().split_free(level + 1, above, old, slot) {
            self.tree().merge(level, idx);
        }
    }

    /// Tightens an inner word whose bound promises what nobody found.
    fn tighten_if_misled(self, level: usize, idx: u64, need: u64) {
        if word::bound(self.tree().read(level, idx)) >= need {
            self.tree().tighten(level, idx);
        }
    }
}

/// The slot at which to begin in word `idx` of level `at`, in a search for a word of `level`: on the way to word
/// `from`; in a word that is not on that way, where neighbouring lanes begin on different cache lines.
fn near<W: Word>(lane: usize, level: usize, from: u64, at: usize, idx: u64) -> u32 {
    match W::SHAPE.parent(W::SHAPE.ancestor(from, at - level - 1)) {
        (on_the_way, slot) if on_the_way == idx => slot,
        _ => (lane as u32).reverse_bits() >> (32 - W::SHAPE.slots_log2(at)),
    }
}
