//! Finding out whether a block is free, without claiming it.

use super::claim::fit;
use super::{Blocks, level_and_log2};
use crate::sync::Word;

impl<W: Word> Blocks<'_, W> {
    /// Returns whether a block of `order` is free. Lowers the bounds that wrongly promise one, as a search does. Looks
    /// at no more than twice as many words of the order's level as there are, and then returns `true`; while nobody
    /// else allocates or frees it looks at each once.
    #[cold]
    pub fn has_free(self, order: u32) -> bool {
        if self.check_order(order).is_err() {
            return false;
        }
        let (level, log2) = level_and_log2::<false, W>(order);
        let mut looks = 2 * self.geometry().words_of(level);
        let look = |idx| {
            looks = looks.saturating_sub(1);
            let whole_slots = self.geometry().whole_slots(level, idx);
            let found = fit(level, whole_slots, self.tree().read(level, idx), log2);
            (found.is_some() || looks == 0).then_some(())
        };
        self.look_by(self.lane.home(level), order, look).is_some()
    }
}
