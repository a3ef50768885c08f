//! The path above a word: what a claim and a free look at above it, and need not look at again.

use super::OnLane;
use crate::sync::Word;
use crate::word;

/// Whose path it is. Claims and frees keep theirs apart, as a lane that frees at scattered places would otherwise
/// forget the path above its cursor.
#[derive(Clone, Copy)]
pub(crate) enum Path {
    Claims,
    Frees,
}

/// What a lane knows of the slots above a leaf word.
#[derive(Clone, Copy)]
pub(crate) enum PathAbove {
    /// Every one is split.
    Split,
    /// The one directly above is, and the lane would have to look at the others.
    Unknown,
    /// The one directly above is not, or its word is marked.
    Ends,
}

impl<W: Word> OnLane<'_, W> {
    /// Returns whether the words above a claim in word `idx` of `level` are known to be in order: the one directly
    /// above because it was looked at, the others because the lane saw them so and nothing has been undone since.
    #[inline(always)]
    pub fn knows_path(self, level: usize, idx: u64) -> bool {
        // Between the claim and the look at the word above.
        W::store_load_fence();
        level == self.geometry().top()
            || self.passed(level, idx).is_some_and(|(_, place)| self.knows_split_path(place))
    }

    /// Returns what the lane knows of the slots above leaf word `idx`.
    #[inline(always)]
    pub fn path_above(self, idx: u64) -> PathAbove {
        if self.geometry().top() == 0 {
            return PathAbove::Split;
        }
        match self.passed(0, idx) {
            Some((_, place)) if self.knows_split_path(place) => PathAbove::Split,
            Some(_) => PathAbove::Unknown,
            None => PathAbove::Ends,
        }
    }

    /// Looks whether every slot above leaf word `idx` is split, and notes it. If `true`, each was so during the call.
    /// The word is not the arena's only one, and must be inside it: what is noted is the path of another word otherwise.
    pub fn surveys_path(self, idx: u64) -> bool {
        self.passed(0, idx).is_some_and(|(above, _)| self.survey(Path::Frees, 1, above).is_some())
    }

    /// Returns the word directly above word `idx` of `level` and its place, if it is unmarked and the slot split.
    #[inline(always)]
    fn passed(self, level: usize, idx: u64) -> Option<(u64, usize)> {
        let (above, slot) = W::SHAPE.parent(idx);
        let place = self.geometry().place(level + 1, above);
        // After a claim: pairs with the mark, which this sees if the inspection missed the claim. Before a free: any
        // value since the caller's allocation will do, as a block at least as large as a leaf word would keep a slot
        // above from being split.
        let word = self.tree().at(place)?.load_before_fence();
        word::passes(word, slot).then_some((above, place))
    }

    /// Returns whether one of the notes says that every slot above the inner word at `place` is split.
    #[inline(always)]
    fn knows_split_path(self, place: usize) -> bool {
        // The block that the lane freed last lies on the path of its frees.
        self.known_bound(Path::Claims, place).is_some()
            || self.known_bound(Path::Frees, place).is_some()
    }

    /// Climbs from a claim in word `idx` of `level`, and notes what it saw as `path`. Returns `false` if a block or run
    /// holds an area above; the claim must then be undone.
    #[inline]
    pub fn climb(self, path: Path, level: usize, idx: u64) -> bool {
        // Between the claim and the look at the word above.
        W::store_load_fence();
        if level == self.geometry().top() {
            return true;
        }
        let (above, _) = W::SHAPE.parent(idx);
        let seen = || self.survey(path, level + 1, above);
        self.tree().passes(level, idx) && seen().is_some() || self.tree().climb(level, idx)
    }

    /// Returns the least bound above the inner word at `place`, if every word there was in order when the lane last
    /// looked, and no inspection of any of them has finished its mark since.
    #[inline(always)]
    pub fn known_bound(self, path: Path, place: usize) -> Option<u64> {
        let (bound, seen) = self.notes().seen_path(path, place)?;
        // The epoch is read after the caller's claim or free and its look at the word directly above. That look and the
        // note come before whatever the caller does next.
        W::store_load_fence();
        (seen == self.tree().epoch()).then_some(bound)
    }

    /// Looks at every word above inner word `idx` of `level`, and notes what it saw. Returns `None` if a word is marked
    /// or a slot not split; otherwise the least bound.
    #[inline(always)]
    pub fn survey(self, path: Path, level: usize, idx: u64) -> Option<u64> {
        // Before the look at the path, so that a mark which the look misses ends the epoch later.
        let epoch = self.tree().epoch();
        W::store_load_fence();
        let bound = self.tree().look_up(level, idx)?;
        self.notes().set_path(path, self.geometry().place(level, idx), epoch, bound);
        Some(bound)
    }
}
