//! Allocation in the words beside the one at the lane's cursor. A search would begin there, too, but it is made for
//! every level and takes three times as many instructions.

use super::{Blocks, level_and_log2};
use crate::sync::Word;
use crate::word;

/// What there is beside the word at the cursor, below the same word above.
pub(super) enum Beside {
    /// A word in use that has room.
    Room(Room),
    /// A free slot, above this word.
    Free(u64),
    /// Nothing that this look can tell: a search may know more.
    Unknown,
}

/// A word that has room for a block.
pub(super) struct Room {
    /// The word's number in its level.
    pub idx: u64,
    place: usize,
    /// What it held, and the slot that was free then.
    old: u64,
    slot: u32,
}

impl<W: Word> Blocks<'_, W> {
    /// Allocates beside the word at the cursor, or [where the first room is](Self::takes_first_fit). If there is no
    /// room beside it, a search continues from there.
    #[inline(never)]
    pub(super) fn alloc_beside<const LEAF: bool>(self, cursor: u64, order: u32) -> Option<u64> {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        if !LEAF && self.takes_first_fit(level) {
            return self.search(self.lane.home(level), order);
        }
        let found = self.look_beside::<LEAF>(cursor, order);
        if let Beside::Free(idx) = found {
            return self.alloc_from(idx, order);
        }
        if let Beside::Room(Room { idx, place, old, slot }) = found
            && let Some(word) = self.tree().at(place)
            && let Ok(new) = word.claim(level, old, slot, log2)
        {
            let notes = self.lane.notes();
            notes.note_claimed::<LEAF>(place, new, order, slot ^ 1 << log2);
            notes.set_cursor(order, idx);
            return self.keep(level, idx, slot, order);
        }
        self.search(self.lane.cursor(order), order)
    }

    /// Looks for the first word that is in use and has room, after word `cursor` and below the same word above, and
    /// then for a free slot there.
    #[inline(always)]
    pub(super) fn look_beside<const LEAF: bool>(self, cursor: u64, order: u32) -> Beside {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        let (area, near) = W::SHAPE.parent(cursor);
        // The top word never is whole, so directly below it only a search finds room.
        if !self.geometry().is_whole(level + 1, area) {
            return Beside::Unknown;
        }
        let need = u64::from(order) + 1;
        let above = self.tree().read(level + 1, area);
        let codes = word::codes(level + 1, above);
        if codes == 0 {
            // The area has been merged, and another may be in use.
            return Beside::Unknown;
        }
        // All but the one at the cursor, which has no room.
        let others = word::split_slots(codes) & !(1 << (2 * near));
        let split = if word::bound(above) < need { 0 } else { others };
        let below = self.tree().below(level + 1, area);
        let inside = word::first_slots(W::SHAPE.slots(level));
        for beside in word::from_slot(split, near) {
            let old = below.read(beside);
            let free = word::free_slots(word::codes(level, old)) & inside;
            if let Some(slot) = word::fit(free, log2) {
                let (idx, place) = (W::SHAPE.child(area, beside), below.place(beside));
                return Beside::Room(Room { idx, place, old, slot });
            }
        }
        if let Some(free) = self.choose_free(level + 1, area, codes, need, near) {
            return Beside::Free(W::SHAPE.child(area, free));
        }
        // So that the search does not look at these words again.
        self.tighten_if_misled(level + 1, area, need);
        Beside::Unknown
    }
}
