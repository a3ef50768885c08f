//! Claiming a block in a given word, and undoing a claim.

use super::Blocks;
use crate::lane::Path;
use crate::sync::Word;
use crate::word;

impl<W: Word> Blocks<'_, W> {
    /// Claims a block of `order` in one word and climbs. Returns `None` if nothing fits, or somebody holds the area.
    pub(super) fn claim(self, level: usize, idx: u64, order: u32) -> Option<u64> {
        let log2 = order - W::SHAPE.slot_order(level);
        let whole_slots = self.geometry().whole_slots(level, idx);
        let claimed = self.tree().fill(level, idx, |codes| {
            let slot = fit(level, whole_slots, codes, log2)?;
            Some((codes | word::block(log2) << (2 * slot), slot))
        });
        let slot = self.lane.noted(level, idx, claimed)?.1;
        let index = W::SHAPE.first_unit(level, idx, slot);
        if self.lane.climb(Path::Claims, level, idx) {
            return Some(index);
        }
        self.undo(index, order);
        None
    }

    /// Clears a claim that met a larger block, and merges what the climb split. The lane does not begin there again.
    #[cold]
    pub(super) fn undo(self, index: u64, order: u32) {
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        self.lane.leave(order, idx);
        if let Some(new) = self.clear_word(index, order) {
            // Before the merge: a caller that dies there has already said that the claim is gone.
            self.tree().count_undone();
            self.tree().merge_or_publish(level, idx, new);
        } else {
            // Somebody has wrongly freed it, perhaps ahead of the climb: what that split lies below a block now.
            self.tree().merge(level, idx);
        }
    }
}

/// Finds where to claim `2^log2` slots in a word of `level` that holds `old` and has `whole_slots` slots. A word
/// outside the level, which a cursor may name, has none.
#[inline(always)]
pub(super) fn fit(level: usize, whole_slots: u32, old: u64, log2: u32) -> Option<u32> {
    let inside = word::first_slots(whole_slots);
    word::fit(word::free_slots(word::codes(level, old)) & inside, log2)
}
