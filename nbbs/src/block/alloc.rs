//! Allocation: one compare-and-swap in the word that the lane changed last, or at its cursor.

use super::claim::fit;
use super::{Blocks, level_and_log2};
use crate::error::AllocError;
use crate::lane::Path;
use crate::sync::Word;
use crate::word::{self, span};

impl<W: Word> Blocks<'_, W> {
    /// Allocates a block of `2^order` units.
    #[inline(always)]
    pub fn alloc(self, order: u32) -> Result<u64, AllocError> {
        self.check_order(order)?;
        self.alloc_any(order).ok_or(AllocError::Exhausted { units: 1 << order })
    }

    /// Allocates a block of an order that has been checked. The index comes back in registers, where an error would go
    /// through memory.
    #[inline]
    fn alloc_any(self, order: u32) -> Option<u64> {
        if order < W::SHAPE.word_order(0) {
            self.alloc_in::<true>(order)
        } else {
            self.alloc_in::<false>(order)
        }
    }

    /// Checks that a block of `order` fits into the arena.
    #[inline(always)]
    pub(super) fn check_order(self, order: u32) -> Result<(), AllocError> {
        let max = self.geometry().max_order();
        if order > max { Err(AllocError::OrderTooLarge { order, max }) } else { Ok(()) }
    }

    /// Allocates a block. Everything but the common case is in functions of its own. `LEAF`: the block is one of a leaf
    /// word.
    #[inline(always)]
    fn alloc_in<const LEAF: bool>(self, order: u32) -> Option<u64> {
        let (level, _) = level_and_log2::<LEAF, W>(order);
        match self.claim_again::<LEAF>(order) {
            Some((idx, index)) if self.lane.knows_path(level, idx) => Some(index),
            Some((_, index)) => self.keep_or_search(index, order),
            None => self.alloc_at_cursor::<LEAF>(order),
        }
    }

    /// Claims the block that was noted as the [next that may fit](crate::lane::Notes::next_fit), if it has this order and
    /// seems free. This is the common case, and the memory may still be in the cache. Returns its word and its index.
    #[inline(always)]
    fn claim_again<const LEAF: bool>(self, order: u32) -> Option<(u64, u64)> {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        let notes = self.lane.notes();
        let (fit, old) = notes.next_fit::<LEAF>(order)?;
        let (place, slot) = (fit.place(), fit.slot);
        let free = word::is_free(word::codes(level, old), slot, log2);
        let word = if LEAF { self.tree().whole_leaf_at(place) } else { self.tree().at(place) };
        match word.filter(|_| free)?.claim(level, old, slot, log2) {
            Ok(new) => notes.note_behind(fit, new),
            Err(found) => {
                self.meet_others(place, found, order);
                return None;
            }
        }
        let idx = self.geometry().idx_at(level, place);
        notes.set_cursor(order, idx);
        Some((idx, W::SHAPE.first_unit(level, idx, slot)))
    }

    /// Notes that the word at `place`, in which the noted block could not be claimed, holds `found`. If others have only
    /// freed there, and have more to free, the cursor leaves the leaf word to them: it moves
    /// [across](crate::lane::OnLane::across) the area until they have followed it.
    #[cold]
    fn meet_others(self, place: usize, found: u64, order: u32) {
        let level = W::SHAPE.level_of(order);
        let notes = self.lane.notes();
        // Loaded again: if others on this lane freed there, they have noted it, and will allocate there, too.
        let (was, is) = (word::codes(level, notes.left()), word::codes(level, found));
        notes.note(place, found);
        let others_only_freed = was != is && word::only_fills(level, is, was);
        // More than two blocks in 32 units. To go and come back moves as many cache lines as to meet in the word twice.
        let more_to_free = span::heads(is).count_ones() > W::SHAPE.slots(0) / 16;
        let idx = self.geometry().idx_at(level, place);
        if others_only_freed
            && more_to_free
            && notes.cursor(order) == Some(idx)
            && let Some(across) = self.lane.across(level, idx)
        {
            notes.set_cursor(order, across);
        }
    }

    /// Allocates in the word at the lane's cursor, or elsewhere if that word has no room or another lane claims there
    /// too.
    #[inline(never)]
    fn alloc_at_cursor<const LEAF: bool>(self, order: u32) -> Option<u64> {
        let (level, log2) = level_and_log2::<LEAF, W>(order);
        let notes = self.lane.notes();
        let at_cursor = notes.cursor(order).and_then(|cursor| {
            let place = self.geometry().place(level, cursor);
            Some((cursor, place, self.tree().at(place)?))
        });
        let Some((cursor, place, word)) = at_cursor else {
            return self.alloc_from(self.lane.home(level), order);
        };
        let old = notes.guess(place, word);
        let whole_slots = self.geometry().whole_slots(level, cursor);
        let Some(slot) = fit(level, whole_slots, old, log2) else {
            return self.alloc_spare::<LEAF>(cursor, order);
        };
        let new = match word.claim(level, old, slot, log2) {
            Ok(new) => new,
            Err(found) => {
                notes.note(place, found);
                return if word::codes(level, found) & !word::codes(level, old) != 0 {
                    self.leave_cursor(order)
                } else {
                    self.alloc_from(cursor, order)
                };
            }
        };
        let buddy = slot ^ 1 << log2;
        // In a leaf word of which only a part is inside the arena nothing is claimed again.
        if LEAF || buddy + (1 << log2) <= whole_slots {
            notes.note_claimed::<LEAF>(place, new, order, buddy);
        } else {
            notes.note(place, new);
        }
        self.keep(level, cursor, slot, order)
    }

    /// Allocates in word `from` of the order's level, or as near to it as a search finds room.
    #[cold]
    pub(super) fn alloc_from(self, from: u64, order: u32) -> Option<u64> {
        let claimed = self.claim(W::SHAPE.level_of(order), from, order);
        if claimed.is_some() {
            self.lane.notes().set_cursor(order, from);
        }
        claimed.or_else(|| self.search(from, order))
    }

    /// Leaves the word at the cursor to another lane that claims there too, and allocates far from it.
    #[cold]
    fn leave_cursor(self, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        let words = self.geometry().words_of(level);
        let (cursor, home) = (self.lane.cursor(order), self.lane.home(level));
        let far = if W::SHAPE.parent(home).0 == W::SHAPE.parent(cursor).0 {
            (cursor + words / 2) % words
        } else {
            home
        };
        self.alloc_from(far, order)
    }

    /// Returns the block that was claimed at `slot` of word `idx`, if the path above is known; otherwise climbs.
    #[inline(always)]
    pub(super) fn keep(self, level: usize, idx: u64, slot: u32, order: u32) -> Option<u64> {
        let index = W::SHAPE.first_unit(level, idx, slot);
        if self.lane.knows_path(level, idx) {
            return Some(index);
        }
        self.keep_or_search(index, order)
    }

    /// Climbs from a claim; if it met a larger block, undoes it and searches on.
    #[inline(never)]
    fn keep_or_search(self, index: u64, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        if self.lane.climb(Path::Claims, level, idx) {
            return Some(index);
        }
        self.undo(index, order);
        self.search(idx, order)
    }
}
