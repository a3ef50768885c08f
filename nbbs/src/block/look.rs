//! Finding out whether a block is free, without claiming it.

use super::Blocks;
use super::claim::fit;
use crate::sync::Word;

impl<W: Word> Blocks<'_, W> {
    /// Returns whether a block of `order` is free. Lowers the bounds that wrongly promise one, as a search does.
    #[cold]
    pub fn has_free(self, order: u32) -> bool {
        if self.check_order(order).is_err() {
            return false;
        }
        let level = W::SHAPE.level_of(order);
        let slots = order - W::SHAPE.slot_order(level);
        let look = |idx| {
            let whole_slots = self.geometry().whole_slots(level, idx);
            fit(level, whole_slots, self.tree().read(level, idx), slots)
        };
        self.look_by(self.lane.home(level), order, look).is_some()
    }
}
