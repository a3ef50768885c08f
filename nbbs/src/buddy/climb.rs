//! The climb from a claim to the top, by loads alone where nothing has changed, and its undoing.

use super::hints::{Hints, Path};
use super::{Buddy, swap, word};
use crate::geometry::{level_of, locate, parent, slot_order};
use crate::sync::{Ordering, Word};

impl<W: Word> Buddy<'_, W> {
    /// Whether every slot above word `idx` of `level` is split, by a look at the word above and by what
    /// the lane knows of the others. `false`: perhaps not.
    #[inline(always)]
    pub(super) fn knows_way_up(&self, hints: Hints<'_, W>, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry.top {
            return true;
        }
        let (above, slot) = parent(idx);
        let place = self.geometry.place(level + 1, above);
        // SeqCst: pairs with the mark of `inspect`, which this sees if the inspection missed the claim.
        let passes = |above: &W| word::passes(above.load(Ordering::SeqCst), slot);
        self.words.get(place).is_some_and(passes) && self.knows_path(hints, Path::Claims, place, 0)
    }

    /// Sees to it that every slot above word `idx` of `level` is split and that no inspection that may
    /// have missed the claim can end well. `false`: the area belongs to a larger block.
    pub(super) fn climb(&self, lane: usize, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry.top {
            return true;
        }
        let (above, slot) = parent(idx);
        // Pairs with the mark of `inspect`, as in `knows_way_up`.
        let in_order = word::passes(self.read(level + 1, above), slot);
        let path = || self.survey(self.hints(lane), Path::Claims, level + 1, above);
        in_order && path().is_some() || self.climb_all(level, idx)
    }

    #[cold]
    fn climb_all(&self, level: usize, idx: u64) -> bool {
        let mut below = idx;
        (level + 1..=self.geometry.top).all(|level| {
            let (idx, slot) = parent(below);
            below = idx;
            self.open(level, idx, slot)
        })
    }

    /// Makes `slot` of an inner word split, and the word unmarked. `false`: it is part of a block.
    fn open(&self, level: usize, idx: u64, slot: u32) -> bool {
        // Pairs with the mark of `inspect`, as in `climb`.
        let mut old = self.read(level, idx);
        loop {
            let codes = word::codes(level, old);
            let bound = match word::code(codes, slot) {
                word::HEAD | word::REST => return false,
                // What the claim left of the slot: its largest half, at most.
                word::FREE => word::bound(old).max(u64::from(slot_order(level))),
                _ if old & word::MARK == 0 => return true,
                _ => word::bound(old),
            };
            let new = word::inner(old, codes | word::SPLIT << (2 * slot), bound, 0);
            // SeqCst: the change of version that makes a concurrent `inspect` fail to commit.
            match swap(self.word(level, idx), old, new) {
                Ok(_) => {
                    W::store_load_fence();
                    return true;
                }
                Err(found) => old = found,
            }
        }
    }

    /// Gives back a claim that met a larger block on its climb, and the slots that it split on the way.
    #[cold]
    pub(super) fn undo(&self, lane: usize, index: u64, order: u32) {
        // The claim is this caller's own, so it is there to be cleared.
        if let Some(new) = self.clear_word(lane, index, order) {
            let level = level_of(order);
            self.merge_or_publish(level, locate(level, index).0, new);
        }
    }
}
