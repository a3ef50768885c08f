//! The audit: checks every invariant of the metadata.

use super::Look;
use crate::error::{Broken, Invariant};
use crate::sync::Word;
use crate::word::{self, span};

/// What an audit counted while it found the arena in order: see [`Buddy::audit`](crate::Buddy::audit).
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let audit = buddy.audit()?;
/// assert_eq!((audit.words, audit.stale_marks), (3, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Words read.
    pub words: u64,
    /// Slots that are split over an empty word: merges left for the allocation that needs them.
    pub waiting_merges: u64,
    /// Words with the mark of an inspection that never ended; the next operation that passes clears it.
    pub stale_marks: u64,
}

impl<W: Word> Look<'_, W> {
    /// Checks every invariant, and reports the first that is broken.
    pub fn audit(self) -> Result<Audit, Broken> {
        let mut audit = Audit { words: 0, waiting_merges: 0, stale_marks: 0 };
        for level in (0..=self.0.geometry.top()).rev() {
            for idx in 0..self.0.geometry.words_of(level) {
                let word = self.0.read(level, idx);
                audit.words += 1;
                self.audit_codes(level, idx, word::codes(level, word))?;
                if level > 0 {
                    audit.stale_marks += u64::from(word & word::MARK != 0);
                    self.audit_dormant(level, idx, word)?;
                }
            }
        }
        self.audit_bounds(self.0.geometry.top(), 0, &mut audit)?;
        Ok(audit)
    }

    /// Checks [`Invariant::WellFormed`] and [`Invariant::InsideArena`].
    fn audit_codes(self, level: usize, idx: u64, codes: u64) -> Result<(), Broken> {
        let whole = self.0.geometry.whole_slots(level, idx);
        let slots = self.0.geometry.slots(level, idx);
        let mut slot = 0;
        while slot < W::SHAPE.slots(level) {
            let inside = slot < slots;
            let count = 1 + span::rests_from(codes, slot + 1);
            let ends_inside = slot + count <= whole;
            let malformed = Err(broken::<W>(Invariant::WellFormed, level, idx, slot));
            slot += match word::code(codes, slot) {
                word::FREE => 1,
                _ if !inside => return Err(broken::<W>(Invariant::InsideArena, level, idx, slot)),
                word::SPLIT if level > 0 || count == 1 => 1,
                // An open head, which fills its word.
                word::RESERVED if slot + count == W::SHAPE.slots(0) => count,
                // A whole word is a block of the level above.
                word::HEAD if ends_inside && count < W::SHAPE.slots(level) => count,
                word::REST if ends_inside && self.goes_on(level, idx, slot) => count,
                _ => return malformed,
            };
        }
        Ok(())
    }

    /// Returns whether rests may begin in `slot`: what lies before is an open run, or a hidden one.
    fn goes_on(self, level: usize, idx: u64, slot: u32) -> bool {
        let Some(before) = W::SHAPE.first_unit(level, idx, slot).checked_sub(1) else {
            return false;
        };
        let spot = self.0.spot(before);
        let first = span::rests_to(spot.codes, spot.slot);
        match (spot.code(), first.checked_sub(1)) {
            (word::REST, None) => true,
            // `01`: an open head in a leaf word, or a split slot, in which the run before these rests lies.
            (word::REST, Some(before)) => word::code(spot.codes, before) == word::SPLIT,
            (code, _) => spot.level == 0 && matches!(code, word::RESERVED | word::HEAD),
        }
    }

    /// Checks [`Invariant::Dormant`].
    fn audit_dormant(self, level: usize, idx: u64, word: u64) -> Result<(), Broken> {
        for slot in 0..self.0.geometry.slots(level, idx) {
            let below = W::SHAPE.child(idx, slot);
            let codes = word::codes(level - 1, self.0.read(level - 1, below));
            if word::code(word, slot) != word::SPLIT && codes != 0 {
                let stray = codes.trailing_zeros() / 2;
                return Err(broken::<W>(Invariant::Dormant, level - 1, below, stray));
            }
        }
        Ok(())
    }

    /// Checks [`Invariant::Bound`] for a word and all below it. Returns what the word truly offers: a bound may promise
    /// more than there is, even more than the bound above it, but never less.
    fn audit_bounds(self, level: usize, idx: u64, audit: &mut Audit) -> Result<u64, Broken> {
        let word = self.0.read(level, idx);
        let codes = word::codes(level, word);
        // Without a bound, a word offers only what it holds itself.
        let mut offer = self.0.offer(level, idx, if level == 0 { word } else { codes });
        if level == 0 {
            return Ok(offer);
        }
        for slot in word::from_slot(self.0.split_slots(level, idx, codes), 0) {
            let below = W::SHAPE.child(idx, slot);
            let found = if word::codes(level - 1, self.0.read(level - 1, below)) == 0 {
                audit.waiting_merges += 1;
                word::UNSETTLED
            } else {
                self.audit_bounds(level - 1, below, audit)?
            };
            if word::bound(word) < found {
                return Err(broken::<W>(Invariant::Bound, level, idx, slot));
            }
            offer = offer.max(found);
        }
        Ok(offer)
    }
}

fn broken<W: Word>(invariant: Invariant, level: usize, word: u64, slot: u32) -> Broken {
    let unit = W::SHAPE.first_unit(level, word, slot);
    Broken { invariant, level, word, slot, unit }
}
