//! What a lane remembers between operations. All of it saves loads, none of it is believed unchecked.
//!
//! ```text
//! word 0   place of the word that the lane changed last      word 2   a path: the place of an inner word,
//! word 1   what the lane left in it                                   the least bound above it, and the
//! words 4+ cursor of each order, plus 1                               low bits of the epoch
//!                                                            word 3   the epoch of the path
//! ```
//!
//! **The word changed last.** Reading a word that was compare-and-swapped a moment ago waits for the
//! cache. Guessing what it holds does not, and a wrong guess only makes a compare-and-swap fail.
//!
//! **The path.** A climb looks at every word above a block, though almost always nothing has changed
//! there since the lane's last climb. Only an inspection can turn a split slot free or lower a bound,
//! and an inspection of a word at level 2 or above increments the *epoch* after its mark and before its
//! reads. So whoever finds the epoch that the lane found *before* it last saw the whole path in order
//! knows: each inspection of a word on the path has either failed, or has yet to read the words below,
//! the caller's claim among them.
//!
//! The path's two words are written one after the other, so threads that share a lane may read one of
//! each. The low 22 bits of the epoch stand in both and must agree.

use super::{Buddy, swap, word};
use crate::geometry::{LANE_WORDS, level_of};
use crate::sync::{Ordering, Word};

/// Where a lane's cursors begin among its words.
const CURSORS: usize = 4;
/// Orders with a cursor of their own; larger ones share the last.
const CURSOR_ORDERS: usize = LANE_WORDS - CURSORS;
/// Bits of a path word below the place: the bound.
const BOUND_BITS: u32 = 6;
/// Bits of a path word below the epoch: the bound, and a place of at most 36 bits.
const PATH_BITS: u32 = 42;

/// The words of one lane. Read and written with `Relaxed`: they publish nothing.
pub(super) struct Hints<'a, W>(&'a [W; LANE_WORDS]);

impl<W> Clone for Hints<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Hints<'_, W> {}

impl<W: Word> Hints<'_, W> {
    /// The word in which the lane last claimed a block of `order`.
    #[inline(always)]
    pub(super) fn cursor(self, order: u32) -> Option<u64> {
        self.0[cursor_slot(order)].load(Ordering::Relaxed).checked_sub(1)
    }

    fn set_cursor(self, order: u32, idx: u64) {
        self.0[cursor_slot(order)].store(idx + 1, Ordering::Relaxed);
    }

    /// What `word` at `place` holds: by the lane's own note, if it changed that word last.
    #[inline(always)]
    pub(super) fn guess(self, place: usize, word: &W) -> u64 {
        if self.0[0].load(Ordering::Relaxed) == place as u64 {
            self.0[1].load(Ordering::Relaxed)
        } else {
            // SeqCst: as in `Buddy::read`.
            word.load(Ordering::SeqCst)
        }
    }

    #[inline(always)]
    pub(super) fn remember(self, place: usize, left: u64) {
        self.0[0].store(place as u64, Ordering::Relaxed);
        self.0[1].store(left, Ordering::Relaxed);
    }

    /// Whether the lane saw the path above the inner word at `place` in `epoch`, with bounds of at least
    /// `offer`.
    #[inline(always)]
    fn saw_path(self, place: usize, epoch: u64, offer: u64) -> bool {
        let path = self.0[2].load(Ordering::Relaxed);
        self.0[3].load(Ordering::Relaxed) == epoch
            && path.wrapping_sub(path_word(place, epoch, offer)) < 64 - offer
    }

    fn set_path(self, place: usize, epoch: u64, bound: u64) {
        self.0[2].store(path_word(place, epoch, bound), Ordering::Relaxed);
        self.0[3].store(epoch, Ordering::Relaxed);
    }
}

impl<W: Word> Buddy<'_, W> {
    /// The hints of `lane`; the metadata has some for every lane.
    #[inline(always)]
    pub(super) fn hints(&self, lane: usize) -> Option<Hints<'_, W>> {
        self.lanes.get(lane & (self.lanes.len() - 1)).map(Hints)
    }

    /// The word in which `lane` claims a block of `order` first.
    pub(super) fn cursor(&self, lane: usize, order: u32) -> u64 {
        let level = level_of(order);
        let remembered = self.hints(lane).and_then(|hints| hints.cursor(order));
        remembered
            .filter(|&idx| idx < self.geometry.words_of(level))
            .unwrap_or_else(|| self.geometry.home(lane, level))
    }

    pub(super) fn set_cursor(&self, lane: usize, order: u32, idx: u64) {
        if let Some(hints) = self.hints(lane) {
            hints.set_cursor(order, idx);
        }
    }

    /// Whether every word above the inner word at `place` was in order, with a bound of at least `offer`,
    /// when the lane last looked, and no inspection of any has finished its mark since.
    #[inline(always)]
    pub(super) fn knows_path(&self, hints: Hints<'_, W>, place: usize, offer: u64) -> bool {
        // SeqCst: comes after the caller's claim or free and its look at the word directly above.
        // Pairs with the increment in `pass_epoch`.
        hints.saw_path(place, self.epoch.load(Ordering::SeqCst), offer)
    }

    /// Looks at every word above word `idx` of `level`: `None` if a slot on the path is not split or a
    /// word is marked, otherwise the least bound. Remembers what it saw.
    #[inline(never)]
    pub(super) fn survey(&self, lane: usize, level: usize, idx: u64) -> Option<u64> {
        // SeqCst: before the reads below, so that a mark which they miss increments the epoch later.
        let epoch = self.epoch.load(Ordering::SeqCst);
        let mut below = idx;
        let mut bound = word::UNSETTLED;
        for base in self.geometry.bases_from(level + 1) {
            let slot = (below & 15) as u32;
            below >>= 4;
            // SeqCst: the read of the pair "claim or clear, then read the word above".
            let above = self.words[base + below as usize].load(Ordering::SeqCst);
            if !word::passes(above, slot) {
                return None;
            }
            bound = bound.min(word::bound(above));
        }
        if let Some(hints) = self.hints(lane) {
            hints.set_path(self.geometry.place(level, idx), epoch, bound);
        }
        Some(bound)
    }

    /// Ends the epoch: no path that was seen before may be trusted any longer.
    pub(super) fn pass_epoch(&self) {
        // SeqCst: after the caller's mark, before its reads. Pairs with the load in `knows_path`.
        let mut old = self.epoch.load(Ordering::SeqCst);
        while let Err(found) = swap(self.epoch, old, old.wrapping_add(1)) {
            old = found;
        }
    }
}

#[inline(always)]
const fn path_word(place: usize, epoch: u64, bound: u64) -> u64 {
    epoch << PATH_BITS | (place as u64) << BOUND_BITS | bound
}

#[inline(always)]
const fn cursor_slot(order: u32) -> usize {
    let order = order as usize;
    CURSORS + if order < CURSOR_ORDERS { order } else { CURSOR_ORDERS - 1 }
}
