//! Holding a run while it changes, so that no other operation can change it.
//!
//! A run within one word changes by one compare-and-swap. A run across words is held first: one compare-and-swap, which
//! only one of several operations on the run can win, hides its head in a leaf word. All others, including frees, find
//! no run there and are refused. Then the run changes piece by piece, and gets its head back. A thread that dies during
//! the change costs the run, and nothing else.
//!
//! The last unit of a hidden head shows the code of a block. If somebody wrongly frees that unit, or releases the
//! others, there is no head left to give back, and what is left of the run becomes free.

use super::slots::Slots;
use super::{Run, Runs};
use crate::error::{FreeError, ResizeError};
use crate::sync::Word;

/// A run across words whose head is hidden.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Its first unit.
    pub start: u64,
    /// The unit after its last.
    pub end: u64,
    /// The hidden slots, which reach to the end of the leaf word.
    pub first: Slots,
}

impl Held {
    /// Returns the unit from which on the run consists of rests.
    pub fn rests(&self) -> u64 {
        self.start + u64::from(self.first.count)
    }

    /// Returns the part from `start` on, a unit of its leaf word.
    pub fn from(&self, start: u64) -> Self {
        let skipped = (start - self.start) as u32;
        let Slots { slot, count, .. } = self.first;
        Self {
            start,
            first: Slots { slot: slot + skipped, count: count - skipped, ..self.first },
            ..*self
        }
    }
}

impl<W: Word> Runs<'_, W> {
    /// Takes hold of a run. For a closed run in a leaf word it also takes the rest of the word.
    pub(super) fn hold(self, run: &Run) -> Result<Held, ResizeError> {
        let first = Slots::to_end_of_leaf(W::SHAPE, run.start);
        let mut held = Held { start: run.start, end: run.end, first };
        if !run.is_open && run.head.level == 0 {
            return self.hold_word(run, first).map(|()| held);
        }
        if run.is_open {
            changed(run.start, self.recode(first, first.open(), first.hidden()))?;
        } else {
            self.refine(run.head, run.start, 0, first.hidden())?;
        }
        held.end = self.end_of_rests(held.rests());
        if held.end == run.end {
            return Ok(held);
        }
        // Somebody else has resized it. Or it has gone, and its first unit, the last of a word, is a reservation now,
        // with the code of the head that was read.
        if run.is_open && held.end == run.start + 1 {
            self.rehead(&held, first.open(), held.end)?;
        } else {
            self.give_back(&held, held.end)?;
        }
        Err(freed(run.start))
    }

    /// Takes hold of a closed run in a leaf word, and of the free units behind it in the word.
    fn hold_word(self, run: &Run, first: Slots) -> Result<(), ResizeError> {
        if self.recode(first, run.slots::<W>().closed(), first.hidden()) {
            return Ok(());
        }
        let rests = run.start + u64::from(first.count);
        Err(ResizeError::InUse { unit: self.first_in_use(run.end, rests).unwrap_or(run.end) })
    }

    /// Gives a held run its head back. The run has the units up to `end`; if that is beyond its leaf word, the rests
    /// are there already.
    pub(super) fn give_back(self, held: &Held, end: u64) -> Result<(), ResizeError> {
        self.rehead(held, self.head_codes(held, end), end)
    }

    /// Returns the codes with which a held run begins in its leaf word, if it is to end at `end`.
    pub(super) fn head_codes(self, held: &Held, end: u64) -> u64 {
        let first = held.first;
        let count = end.min(held.rests()) - held.start;
        // A whole word is never closed: it would look like a block of the level above.
        if end > held.rests() || count == W::SHAPE.leaf_units() {
            first.open()
        } else {
            first.with_count(count as u32).closed()
        }
    }

    /// Ends a hold: writes `codes` over the hidden ones. The part of the run behind them ends at `end`.
    ///
    /// If somebody has wrongly released or freed a part of the head, there is no run any more: what is left of it
    /// becomes free.
    pub(super) fn rehead(self, held: &Held, codes: u64, end: u64) -> Result<(), ResizeError> {
        let first = held.first;
        let done = self.recode(first, first.hidden(), codes);
        if !done {
            self.clear_rests(held.rests(), end);
            self.clear_own(first, first.hidden());
        }
        changed(held.start, done)
    }
}

/// Returns the error that somebody else has freed the run at `index`, unless it was changed.
pub(super) fn changed(index: u64, done: bool) -> Result<(), ResizeError> {
    if done { Ok(()) } else { Err(freed(index)) }
}

/// Returns the error that somebody else has freed the run at `index`.
pub(super) fn freed(index: u64) -> ResizeError {
    ResizeError::Free(FreeError::NotAllocated { index })
}
