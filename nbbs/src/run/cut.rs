//! Cutting a run that the caller holds: smaller slots where they are needed, then a head within it.
//!
//! The words below a slot in use are zero except for claims about to be undone. To give a run smaller slots, it is
//! written into those words first, from the lowest, each without a free slot; then one compare-and-swap splits the slot
//! above. A claim about to be undone may be in the way. Nobody waits for it: what was written is taken back, from the
//! highest word down. Its slots become free, and an inspection merges those that are split.

use super::Runs;
use super::hold::{Held, changed, freed};
use super::slots::left_of;
use crate::error::ResizeError;
use crate::sync::Word;
use crate::tree::Spot;
use crate::word::{self, span};

impl<W: Word> Runs<'_, W> {
    /// Prepares a held run for a second run `start..end` within it, behind its first leaf word. It remains one run for
    /// now.
    pub(super) fn prepare(self, start: u64, end: u64) -> Result<(), ResizeError> {
        self.begin_slot(start)?;
        if self.can_close(&self.tree().spot(start), end) {
            return Ok(());
        }
        self.refine(self.tree().spot(start), start, 0, rests::<W>(0))
    }

    /// Gives the [prepared](Self::prepare) second run `start..end` its head.
    pub(super) fn begin(self, held: &Held, start: u64, end: u64) -> Result<(), ResizeError> {
        let spot = self.tree().spot(start);
        let head = if self.can_close(&spot, end) { word::HEAD } else { word::RESERVED };
        let begun = self.tree().rewrite(spot.level, spot.idx, |codes| {
            let is_rest = word::code(codes, spot.slot) == word::REST;
            is_rest.then_some((codes ^ (word::REST ^ head) << (2 * spot.slot), ()))
        });
        let begun = self.lane().noted(spot.level, spot.idx, begun);
        changed(held.start, begun.is_some())
    }

    /// Returns whether the rests from `spot` on reach to `end` within their word, and are not all of the word.
    fn can_close(self, spot: &Spot, end: u64) -> bool {
        let order = W::SHAPE.slot_order(spot.level);
        let reach =
            spot.unit::<W>() + (u64::from(span::rests_from(spot.codes, spot.slot)) << order);
        let is_whole =
            spot.slot == 0 && end - spot.unit::<W>() == 1 << W::SHAPE.word_order(spot.level);
        end <= reach && !is_whole
    }

    /// Ensures that a slot begins at `unit`, within a run that is held.
    pub(super) fn begin_slot(self, unit: u64) -> Result<(), ResizeError> {
        let begins = |&level: &usize| W::SHAPE.begins_slot(level, unit);
        let highest = (0..=self.geometry().top()).rev().find(begins).unwrap_or(0);
        self.refine(self.tree().spot(unit), unit, highest, rests::<W>(highest))
    }

    /// Replaces the slot of a run at `spot`, in which `unit` lies, by smaller slots, down to those of level `lowest`,
    /// where the word gets `codes`. Does nothing if the slot is of that level, or of a lower one.
    pub(super) fn refine(
        self,
        spot: Spot,
        unit: u64,
        lowest: usize,
        codes: u64,
    ) -> Result<(), ResizeError> {
        let hidden = |level| {
            let (idx, slot) = W::SHAPE.locate(level, unit);
            let split = word::SPLIT << (2 * slot);
            let kept = if level == lowest { 0 } else { word::both_bits(split) };
            let codes = if level == lowest { codes } else { rests::<W>(level) & !kept | split };
            Hidden { level, idx, codes, kept }
        };
        for level in lowest..spot.level {
            let word = hidden(level);
            if !self.tree().hide(level, word.idx, word.codes) {
                self.take_back((lowest..level).map(hidden));
                return Err(ResizeError::Contended { unit });
            }
        }
        if spot.level <= lowest || self.tree().uncover(spot.level, spot.idx, spot.slot, spot.code())
        {
            return Ok(());
        }
        // Only if the run is not the caller's: somebody else has freed it.
        self.take_back((lowest..spot.level).map(hidden));
        Err(freed(unit))
    }

    /// Frees the slots of words that were [hidden](Self::refine), or what somebody's wrong release or free has left of
    /// them, and merges them.
    fn take_back(self, words: impl DoubleEndedIterator<Item = Hidden> + Clone) {
        // From the highest: a split slot beside rests must not be merged. Its claimer could not clear it again, as a
        // head with rests behind it is a run.
        for Hidden { level, idx, codes, kept } in words.clone().rev() {
            let change = |found: u64| {
                let is_whole = (found ^ codes) & !kept == 0;
                let left = if is_whole { !kept } else { left_of(codes, found) };
                (left != 0).then_some((found & !left, ()))
            };
            self.tree().rewrite(level, idx, change);
        }
        // Needed even if a thread that undid a claim in the meantime took the words for claimed, and left the slots
        // above split.
        words.for_each(|word| self.tree().merge(word.level, word.idx));
    }
}

/// What is written into a word below a slot of a run.
struct Hidden {
    level: usize,
    idx: u64,
    codes: u64,
    /// Both bits of the slot that is split over the next word below; 0 in the lowest word. Taking the words back leaves
    /// this slot as it is: others may have claimed below it, and only an inspection may find that nothing is there.
    kept: u64,
}

/// A word of `level` full of rests.
fn rests<W: Word>(level: usize) -> u64 {
    span::rests(0, W::SHAPE.slots(level))
}
