//! Writing a part of a run in smaller slots, so that it can be cut there. The run stays what it is.
//!
//! The words below a slot in use are zero but for claims that are about to be undone. The run is written
//! into them first, from the lowest, hidden by the slot above; then that slot is split, by one
//! compare-and-swap. A claim on its way to being undone may be in the way; nobody waits for it.

use super::run::Run;
use super::{Buddy, span, word};
use crate::geometry::{locate, slot_order, slots_log2};
use crate::sync::Word;

/// What is to be written in smaller slots.
#[derive(Clone, Copy)]
struct Refinement {
    /// The slots are those of a word of this level.
    level: usize,
    /// A head that becomes an open one, in a leaf word.
    head: Option<u64>,
    /// A unit at which a slot is to begin.
    cut: Option<u64>,
    /// Whether that is to be the slot of a leaf word, whatever the unit.
    deep: bool,
}

impl Refinement {
    fn cuts(&self, level: usize, cut: u64) -> bool {
        self.deep || cut & ((1 << slot_order(level)) - 1) != 0
    }

    /// The slots of word `idx` of `level` that are split, or have the open head, by their low bits.
    fn marks(&self, level: usize, idx: u64) -> u64 {
        let mark = |unit: u64| {
            let (at, slot) = locate(level, unit);
            if at == idx { 1 << (2 * slot) } else { 0 }
        };
        let cut = self.cut.filter(|&cut| level > 0 && self.cuts(level, cut));
        self.head.map_or(0, mark) | cut.map_or(0, mark)
    }

    /// The words below that are to be written, from the lowest.
    fn words(self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let at = |level: usize, unit: Option<u64>| unit.map(|unit| (level, locate(level, unit).0));
        (0..self.level).flat_map(move |level| {
            let head = at(level, self.head);
            let cut = at(level, self.cut.filter(|&cut| self.cuts(level + 1, cut)));
            [head, cut.filter(|_| cut != head)].into_iter().flatten()
        })
    }
}

impl<W: Word> Buddy<'_, W> {
    /// Gives a run an open head in a leaf word. `Err`: a unit where somebody's claim is in the way.
    pub(super) fn open_head(&self, lane: usize, run: &Run) -> Result<(), u64> {
        self.refine(lane, run.start, Some(run.start), None, false)
    }

    /// Sees to it that a slot begins at `cut` within a run; with `deep`, the slot of a leaf word.
    pub(super) fn refine_at(
        &self,
        lane: usize,
        run: &Run,
        cut: u64,
        deep: bool,
    ) -> Result<(), u64> {
        let spot = self.spot(cut);
        if spot.unit() == cut && (spot.level == 0 || !deep) {
            return Ok(());
        }
        let head = (!run.is_open).then_some(run.start);
        self.refine(lane, cut, head, Some(cut), deep)
    }

    /// Refines the slots of the word that describes `unit`.
    fn refine(
        &self,
        lane: usize,
        unit: u64,
        head: Option<u64>,
        cut: Option<u64>,
        deep: bool,
    ) -> Result<(), u64> {
        let spot = self.spot(unit);
        let refinement = Refinement { level: spot.level, head, cut, deep };
        for (written, (level, idx)) in refinement.words().enumerate() {
            let marks = refinement.marks(level, idx);
            if !self.hide(lane, level, idx, marks) {
                let written = || refinement.words().take(written);
                written().for_each(|(level, idx)| self.unhide(lane, level, idx));
                W::store_load_fence();
                // Who undid a claim meanwhile took the words for claimed, and left the slots above them split.
                written().for_each(|(level, idx)| self.merge(level, idx));
                return Err(unit);
            }
        }
        W::store_load_fence();
        let marks = refinement.marks(spot.level, spot.idx);
        let area = marks | marks << 1;
        let split = self.update(lane, spot.level, spot.idx, |old| {
            let codes = word::codes(spot.level, old);
            (codes & area == spot.codes & area)
                .then(|| (word::with_codes(spot.level, old, codes & !area | marks), ()))
        });
        // Only if the run is not the caller's: somebody else has changed it.
        split.map(|_| ()).ok_or(unit)
    }

    /// Fills a word below a slot in use with rests, and code `01` in the slots `marks`. `false`: a claim is in
    /// the way.
    fn hide(&self, lane: usize, level: usize, idx: u64, marks: u64) -> bool {
        let all = span::rests(0, 1 << slots_log2(level));
        let codes = all & !(marks << 1) | marks;
        // A claim on its way to being undone may have split one of the same slots.
        let same = if level > 0 { marks } else { 0 };
        let hidden = self.update(lane, level, idx, |old| {
            (word::codes(level, old) & !same == 0)
                .then(|| (word::with_codes(level, old, codes), ()))
        });
        hidden.is_some()
    }

    fn unhide(&self, lane: usize, level: usize, idx: u64) {
        self.update(lane, level, idx, |old| Some((word::with_codes(level, old, 0), ())));
    }
}
