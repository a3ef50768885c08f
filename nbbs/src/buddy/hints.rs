//! What a lane remembers between operations. All of it saves loads, none of it is believed unchecked.
//!
//! ```text
//! word 0   the word that the lane changed last: its place,   word 2   the path of claims: the place of an
//!          the order and slot of a block that may fit                 inner word, the least bound above it
//! word 1   what the lane left in it                          word 3   the epoch of that path, sealed with word 2
//! words 6+ cursor of each order, plus 1                      words 4, 5   the same for the path of frees
//! ```
//!
//! **The word changed last.** Reading a word that was compare-and-swapped a moment ago waits for the
//! cache. Guessing what it holds does not, and a wrong guess only makes a compare-and-swap fail. Which block
//! may fit is noted too: after an allocation the buddy of what it claimed, after a free the block just freed,
//! whose memory is still in the cache. Found out beforehand, it keeps nobody waiting.
//!
//! **The path.** A claim and a free look at every word above a block, though almost always nothing has changed
//! there since the lane last looked. Only an inspection can turn a split slot free or lower a bound,
//! and an inspection of a word at level 2 or above increments the *epoch* after its mark and before its
//! reads. So whoever finds the epoch that the lane found *before* it last saw the whole path in order
//! knows: each inspection of a word on the path has either failed, or has yet to read the words below,
//! the caller's claim or clear among them. In order is for a claim: split, and no mark; for a free: no mark, and
//! bounds of at least what is noted.
//!
//! Threads that share a lane write a note's two words one after the other, so a reader may get one of each.
//! Of the word changed last, any two are harmless: the block is checked against what the word is believed to
//! hold, and that by the compare-and-swap. Of the path, the second word is the epoch plus a multiple of the first, so
//! that of two notes one word each gives no epoch that there is.
//!
//! A path publishes what its writer saw: whoever trusts it skips words whose last change may have ordered an earlier
//! holder's accesses before the claim. So its second word is written with `Release` and read with `Acquire`.

use super::Buddy;
use crate::geometry::LANE_WORDS;
use crate::sync::{Ordering, Word};
use crate::tree::{At, LaneWords};
use crate::word;

/// Whose path: where its note stands among the words of a lane. Claims and frees keep theirs apart, as a lane that
/// frees here and there would otherwise forget its way up from the cursor.
#[derive(Clone, Copy)]
pub(super) enum Path {
    Claims = 2,
    Frees = 4,
}

/// Where a lane's cursors begin among its words.
const CURSORS: usize = 6;
/// Orders with a cursor of their own; larger ones share the last.
const CURSOR_ORDERS: usize = LANE_WORDS - CURSORS;
/// Where a note's place begins: above the order and the slot.
const PLACE_SHIFT: u32 = 12;
/// Bits of a path word below the place: the bound.
const BOUND_BITS: u32 = 6;
/// What seals a path's two words: 2^64 divided by the golden ratio, whose multiples lie far apart.
const SEAL: u64 = 0x9e37_79b9_7f4a_7c15;

/// The words of one lane. Read and written with `Relaxed` where they publish nothing.
pub(super) struct Hints<'a, W>(&'a LaneWords<W>);

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

    pub(super) fn set_cursor(self, order: u32, idx: u64) {
        self.0[cursor_slot(order)].store(idx + 1, Ordering::Relaxed);
    }

    /// What `word` at `place` holds: by the lane's own note, if it changed that word last.
    #[inline(always)]
    pub(super) fn guess(self, place: usize, word: At<'_, W>) -> u64 {
        if self.0[0].load(Ordering::Relaxed) >> PLACE_SHIFT == place as u64 {
            self.0[1].load(Ordering::Relaxed)
        } else {
            word.load()
        }
    }

    /// The block of `order` that was noted with the word changed last: the place of its word, its slot, and what
    /// the word was left to hold.
    #[inline(always)]
    pub(super) fn next_fit(self, order: u32) -> Option<(usize, u32, u64)> {
        let note = self.0[0].load(Ordering::Relaxed);
        let slot = (note as u32 & 0xfff).wrapping_sub((order << 6) + 1);
        let place = (note >> PLACE_SHIFT) as usize;
        (slot < 63).then(|| (place, slot, self.0[1].load(Ordering::Relaxed)))
    }

    /// Notes that the word at `place` holds `left`.
    #[inline(always)]
    pub(super) fn note(self, place: usize, left: u64) {
        self.note_next(place, left, 0, None);
    }

    /// [`note`](Self::note), and that a block of `order` may fit at `slot`.
    #[inline(always)]
    pub(super) fn note_next(self, place: usize, left: u64, order: u32, slot: Option<u32>) {
        let slot = slot.map_or(0, |slot| slot + 1);
        self.0[0].store(note_word(place, order, slot.into()), Ordering::Relaxed);
        self.0[1].store(left, Ordering::Relaxed);
    }

    /// Whether the lane saw the path above the inner word at `place` in `epoch`, with bounds of at least
    /// `offer`.
    #[inline(always)]
    fn saw_path(self, path: Path, place: usize, epoch: u64, offer: u64) -> bool {
        let note = self.0[path as usize].load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `set_path`, and so with all that the note's writer acquired on the path.
        self.0[path as usize + 1].load(Ordering::Acquire) == sealed(note, epoch)
            && note.wrapping_sub(path_word(place, offer)) < 64 - offer
    }

    fn set_path(self, path: Path, place: usize, epoch: u64, bound: u64) {
        let note = path_word(place, bound);
        self.0[path as usize].store(note, Ordering::Relaxed);
        // Release: pairs with the Acquire in `saw_path`.
        self.0[path as usize + 1].store(sealed(note, epoch), Ordering::Release);
    }
}

impl<W: Word> Buddy<'_, W> {
    /// The hints of `lane`.
    #[inline(always)]
    pub(super) fn hints(&self, lane: usize) -> Hints<'_, W> {
        // There is one lane at least, and as many as a power of two.
        Hints(&self.lanes[lane & (self.lanes.len() - 1)])
    }

    /// The word in which `lane` claims a block of `order` first.
    pub(super) fn cursor(&self, lane: usize, order: u32) -> u64 {
        let level = W::SHAPE.level_of(order);
        self.hints(lane)
            .cursor(order)
            .filter(|&idx| idx < self.geometry().words_of(level))
            .unwrap_or_else(|| self.geometry().home(lane, level))
    }

    /// Whether every word above the inner word at `place` was in order, with a bound of at least `offer`,
    /// when the lane last looked, and no inspection of any has finished its mark since.
    #[inline(always)]
    pub(super) fn knows_path(
        &self,
        hints: Hints<'_, W>,
        path: Path,
        place: usize,
        offer: u64,
    ) -> bool {
        // The epoch is read after the caller's claim or free and its look at the word directly above.
        hints.saw_path(path, place, self.tree.epoch(), offer)
    }

    /// Looks at every word above inner word `idx` of `level`: `None` if a word is marked or, on the path of a
    /// claim, a slot not split; otherwise the least bound. Remembers what it saw.
    #[inline(always)]
    pub(super) fn survey(
        &self,
        hints: Hints<'_, W>,
        path: Path,
        level: usize,
        idx: u64,
    ) -> Option<u64> {
        // Before the look at the path, so that a mark which that misses ends the epoch later.
        let epoch = self.tree.epoch();
        let bound = self.tree.look_up(level, idx, |above, slot| match path {
            Path::Claims => word::passes(above, slot),
            Path::Frees => word::allows(above, 0),
        })?;
        hints.set_path(path, self.geometry().place(level, idx), epoch, bound);
        Some(bound)
    }
}

#[inline(always)]
const fn note_word(place: usize, order: u32, slot: u64) -> u64 {
    (place as u64) << PLACE_SHIFT | (order as u64) << 6 | slot
}

#[inline(always)]
const fn path_word(place: usize, bound: u64) -> u64 {
    (place as u64) << BOUND_BITS | bound
}

/// The second word of a path: its epoch, with the first word in it.
#[inline(always)]
const fn sealed(note: u64, epoch: u64) -> u64 {
    epoch.wrapping_add(note.wrapping_mul(SEAL))
}

#[inline(always)]
const fn cursor_slot(order: u32) -> usize {
    let order = order as usize;
    CURSORS + if order < CURSOR_ORDERS { order } else { CURSOR_ORDERS - 1 }
}
