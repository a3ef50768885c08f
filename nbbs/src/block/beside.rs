//! Allocation in the words beside the one at the lane's cursor. A search would begin there, too, but it is made for
//! every level and takes three times as many instructions.

use super::Blocks;
use crate::sync::Word;
use crate::word;

impl<W: Word> Blocks<'_, W> {
    /// Allocates in the first word that is in use and has room, after word `cursor` and below the same word above. If
    /// there is none, a search continues from there.
    #[inline(never)]
    pub(super) fn alloc_beside<const LEAF: bool>(self, cursor: u64, order: u32) -> Option<u64> {
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let slots = order - W::SHAPE.slot_order(level);
        let (area, near) = W::SHAPE.parent(cursor);
        if level == self.geometry().top() || !self.geometry().is_whole(level + 1, area) {
            return self.search(self.lane.cursor(order), order);
        }
        let need = u64::from(order) + 1;
        let above = self.tree().read(level + 1, area);
        let codes = word::codes(level + 1, above);
        if codes == 0 {
            // The area has been merged, and another may be in use.
            return self.search(cursor, order);
        }
        // All but the one at the cursor, which has no room.
        let others = word::split_slots(codes) & !(1 << (2 * near));
        let split = if word::bound(above) < need { 0 } else { others };
        let below = self.tree().below(level + 1, area);
        let inside = word::first_slots(W::SHAPE.slots(level));
        for slot in word::from_slot(split, near) {
            let old = below.read(slot);
            let free = word::free_slots(word::codes(level, old)) & inside;
            let Some(at) = word::fit(free, slots) else { continue };
            let idx = W::SHAPE.child(area, slot);
            let Some(word) = self.tree().at(below.place(slot)) else { break };
            let Ok(new) = word.claim(level, old, at, slots) else { break };
            let notes = self.lane.notes();
            notes.note_next(below.place(slot), new, order, Some(at ^ 1 << slots));
            notes.set_cursor(order, idx);
            return self.keep(level, idx, at, order);
        }
        match self.choose_free(level + 1, area, codes, need, near) {
            Some(slot) => self.alloc_from(W::SHAPE.child(area, slot), order),
            None => {
                // So that the search does not look at these words again.
                self.tighten_if_misled(level + 1, area, need);
                self.search(cursor, order)
            }
        }
    }
}
