//! The climb from a claim, by what the lane knows of the words above, and its undoing.

use super::Buddy;
use super::hints::{Hints, Path};
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Whether the words above a claim in word `idx` of `level` are known to be in order: the one directly above by a
    /// look, the others because the lane saw them so and nothing has been undone since.
    #[inline(always)]
    pub(super) fn knows_way_up(&self, hints: Hints<'_, W>, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry().top() {
            return true;
        }
        let (above, _) = W::SHAPE.parent(idx);
        let place = self.geometry().place(level + 1, above);
        self.tree.passes(level, idx) && self.knows_path(hints, Path::Claims, place, 0)
    }

    /// Climbs from a claim in word `idx` of `level`. `false`: a block or run holds an area above; the claim must be
    /// undone.
    pub(super) fn climb(&self, lane: usize, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry().top() {
            return true;
        }
        let (above, _) = W::SHAPE.parent(idx);
        let path = || self.survey(self.hints(lane), Path::Claims, level + 1, above);
        self.tree.passes(level, idx) && path().is_some() || self.tree.climb(level, idx)
    }

    /// Clears a claim that met a larger block, and merges what the climb split.
    #[cold]
    pub(super) fn undo(&self, lane: usize, index: u64, order: u32) {
        // The claim is this caller's own, so it is there to be cleared.
        if let Some(new) = self.clear_word(lane, index, order) {
            let level = W::SHAPE.level_of(order);
            self.tree.merge_or_publish(level, W::SHAPE.locate(level, index).0, new);
        }
    }
}
