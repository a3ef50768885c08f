//! Allocating: one compare-and-swap in the word at the lane's cursor.

use super::Buddy;
use crate::error::AllocError;
use crate::lane::default_lane;
use crate::sync::Word;
use crate::word;

impl<W: Word> Buddy<'_, W> {
    /// Allocates a block of `2^order` units, aligned to its size, and returns its first unit.
    ///
    /// The calling thread's own lane serves it (lane 0 without the `std` feature).
    ///
    /// Cost: one read-modify-write and a handful of loads, in the steady state. A search lowers each bound that misled it,
    /// once. Runs that [`alloc_at`](Self::alloc_at) placed leave bounds too high, so the first search after many of them
    /// can be linear in the arena: at most 6 accesses for each word of the tree, and fewer than those claims took
    /// together. The next refusal takes at most 32.
    /// Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`], or [`AllocError::Exhausted`]: at one instant during the call, every
    /// block of the order was in use, or in the hands of an allocation or a free that had not returned.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(4)?;
    /// assert_eq!(block % 16, 0);
    /// assert!(buddy.alloc(7).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        self.alloc_on(default_lane(), order)
    }

    /// [`Buddy::alloc`] from the lane of the caller's choice, usually its CPU number.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = 5;
    /// let block = buddy.alloc_on(cpu, 0)?;
    /// buddy.free_on(cpu, block)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc_on(&self, lane: usize, order: u32) -> Result<u64, AllocError> {
        if order > self.geometry().max_order() {
            return Err(AllocError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        let index = if order < W::SHAPE.word_order(0) {
            self.alloc_again::<true>(lane, order)
        } else {
            self.alloc_again::<false>(lane, order)
        };
        index.ok_or(AllocError::Exhausted { order })
    }

    /// Allocates the block that the lane freed last, or the buddy of what it last claimed at its cursor, if that
    /// has this order and the way up is known: the common case, whose memory may still be in the cache.
    /// Anything else is left to a last call, so that the common case saves no registers. `LEAF`: the block is
    /// one of a leaf word.
    #[inline]
    fn alloc_again<const LEAF: bool>(&self, lane: usize, order: u32) -> Option<u64> {
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let slots = order - W::SHAPE.slot_order(level);
        let hints = self.hints(lane);
        let Some((place, slot, old)) = hints.next_fit(order) else {
            return self.alloc_at_cursor::<LEAF>(lane, order);
        };
        let free = word::is_free(word::codes(level, old), slot, slots);
        let Some(word) = self.tree.at(place).filter(|_| free) else {
            return self.alloc_at_cursor::<LEAF>(lane, order);
        };
        match word.claim(level, old, slot, slots) {
            Ok(new) => hints.note(place, new),
            Err(found) => {
                hints.note(place, found);
                return self.alloc_at_cursor::<LEAF>(lane, order);
            }
        }
        let idx = self.geometry().idx_at(level, place);
        hints.set_cursor(order, idx);
        let index = W::SHAPE.first_unit(level, idx, slot);
        if self.knows_way_up(hints, level, idx) {
            return Some(index);
        }
        self.keep_or_search(lane, index, order)
    }

    /// Allocates in the word at the lane's cursor, or elsewhere if that has no room or another lane claims
    /// there too.
    #[inline(never)]
    fn alloc_at_cursor<const LEAF: bool>(&self, lane: usize, order: u32) -> Option<u64> {
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let slots = order - W::SHAPE.slot_order(level);
        let hints = self.hints(lane);
        let at_cursor = hints.cursor(order).and_then(|cursor| {
            let place = self.geometry().place(level, cursor);
            Some((cursor, place, self.tree.at(place)?))
        });
        let Some((cursor, place, word)) = at_cursor else {
            return self.alloc_from(lane, self.geometry().home(lane, level), order);
        };
        let old = hints.guess(place, word);
        let whole_slots = self.geometry().whole_slots(level, cursor);
        let Some(slot) = fit(level, whole_slots, old, slots) else {
            return self.search(lane, self.cursor(lane, order), order);
        };
        let new = match word.claim(level, old, slot, slots) {
            Ok(new) => new,
            Err(found) => {
                hints.note(place, found);
                return if word::codes(level, found) & !word::codes(level, old) != 0 {
                    self.part(lane, order)
                } else {
                    self.alloc_from(lane, cursor, order)
                };
            }
        };
        let buddy = Some(slot ^ 1 << slots).filter(|buddy| buddy + (1 << slots) <= whole_slots);
        hints.note_next(place, new, order, buddy);
        let index = W::SHAPE.first_unit(level, cursor, slot);
        if self.knows_way_up(hints, level, cursor) {
            return Some(index);
        }
        self.keep_or_search(lane, index, order)
    }

    /// Allocates in word `from` of the order's level, or as near to it as a search finds room.
    #[cold]
    fn alloc_from(&self, lane: usize, from: u64, order: u32) -> Option<u64> {
        let claimed = self.claim(lane, W::SHAPE.level_of(order), from, order);
        if claimed.is_some() {
            self.hints(lane).set_cursor(order, from);
        }
        claimed.or_else(|| self.search(lane, from, order))
    }

    /// Leaves the word at the cursor to another lane that claims there too, for one far from it.
    #[cold]
    fn part(&self, lane: usize, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        let words = self.geometry().words_of(level);
        let (cursor, home) = (self.cursor(lane, order), self.geometry().home(lane, level));
        let far = if W::SHAPE.parent(home).0 == W::SHAPE.parent(cursor).0 {
            (cursor + words / 2) % words
        } else {
            home
        };
        self.alloc_from(lane, far, order)
    }

    /// Climbs from a claim, and searches on if it met a larger block.
    #[inline(never)]
    fn keep_or_search(&self, lane: usize, index: u64, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        if self.climb(lane, level, idx) {
            return Some(index);
        }
        self.undo(lane, index, order);
        self.search(lane, idx, order)
    }

    /// Claims a block of `order` in one word and climbs. `None`: nothing fits, or the area is somebody's.
    pub(super) fn claim(&self, lane: usize, level: usize, idx: u64, order: u32) -> Option<u64> {
        let slots = order - W::SHAPE.slot_order(level);
        let whole_slots = self.geometry().whole_slots(level, idx);
        let claimed = self.tree.fill(level, idx, |codes| {
            let slot = fit(level, whole_slots, codes, slots)?;
            Some((codes | word::block(slots) << (2 * slot), slot))
        });
        let slot = self.noted(lane, level, idx, claimed)?.1;
        let index = W::SHAPE.first_unit(level, idx, slot);
        if self.climb(lane, level, idx) {
            return Some(index);
        }
        self.undo(lane, index, order);
        None
    }
}

/// Where in a word of `level` that holds `old`, and has `whole_slots` slots, to claim `2^slots` of them. A word
/// that lies outside the level, as a cursor may have it, has none.
#[inline(always)]
fn fit(level: usize, whole_slots: u32, old: u64, slots: u32) -> Option<u32> {
    let inside = word::first_slots(whole_slots);
    word::fit(word::free_slots(word::codes(level, old)) & inside, slots)
}
