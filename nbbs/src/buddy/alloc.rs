//! Claiming a block: one compare-and-swap in the block's word, then a climb that only reads.

use super::hints::Hints;
use super::{Buddy, swap, word};
use crate::error::AllocError;
use crate::geometry::{level_of, slot_order, slots_log2, word_order};
use crate::lane::default_lane;
use crate::sync::{Ordering, Word};

impl<W: Word> Buddy<'_, W> {
    /// Allocates a block of `2^order` units, aligned to its size, and returns its first unit.
    ///
    /// The calling thread's own lane serves it (lane 0 without the `std` feature).
    ///
    /// Cost: one read-modify-write and a handful of loads, in the steady state.
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
        if order > self.geometry.max_order {
            return Err(AllocError::OrderTooLarge { order, max: self.geometry.max_order });
        }
        // One copy of the code for each shape of a block: most of it folds away.
        let level = level_of(order);
        let index = match (level, order - slot_order(level)) {
            (0, 0) => self.alloc_shape::<true, 0>(lane, 0),
            (0, 1) => self.alloc_shape::<true, 1>(lane, 0),
            (0, 2) => self.alloc_shape::<true, 2>(lane, 0),
            (0, 3) => self.alloc_shape::<true, 3>(lane, 0),
            (0, _) => self.alloc_shape::<true, 4>(lane, 0),
            (level, 0) => self.alloc_shape::<false, 0>(lane, level),
            (level, 1) => self.alloc_shape::<false, 1>(lane, level),
            (level, 2) => self.alloc_shape::<false, 2>(lane, level),
            (level, _) => self.alloc_shape::<false, 3>(lane, level),
        };
        index.ok_or(AllocError::Exhausted { order })
    }

    /// Allocates `2^SLOTS` slots of a word of `level`: the common case, in which the lane's word has room,
    /// holds what it seems to, and the way up is known. Anything else is left to a last call, so that
    /// the common case saves no registers.
    #[inline(never)]
    fn alloc_shape<const LEAF: bool, const SLOTS: u32>(
        &self,
        lane: usize,
        level: usize,
    ) -> Option<u64> {
        let level = if LEAF { 0 } else { level };
        let order = SLOTS + slot_order(level);
        let hints = self.hints(lane)?;
        let Some(cursor) = hints.cursor(order) else {
            return self.alloc_anywhere(lane, order);
        };
        let place = self.geometry.place(level, cursor);
        let Some(word) = self.words.get(place) else {
            return self.alloc_anywhere(lane, order);
        };
        let old = hints.guess(place, word);
        let Some((new, slot)) = self.with_block(level, cursor, old, SLOTS) else {
            return self.alloc_anywhere(lane, order);
        };
        if let Err(found) = swap(word, old, new) {
            hints.remember(place, found);
            let claimed = word::codes(level, found) & !word::codes(level, old) != 0;
            return if claimed { self.part(lane, order) } else { self.alloc_anywhere(lane, order) };
        }
        hints.remember(place, new);
        let index = (cursor << slots_log2(level) | u64::from(slot)) << slot_order(level);
        if self.knows_way_up(hints, level, cursor) {
            return Some(index);
        }
        self.keep_or_search(lane, index, order)
    }

    /// Allocates without regard to what the lane remembers of the word at its cursor.
    #[inline(never)]
    fn alloc_anywhere(&self, lane: usize, order: u32) -> Option<u64> {
        let level = level_of(order);
        let cursor = self.cursor(lane, order);
        let index = self.take(lane, level, cursor, order);
        if index.is_some() {
            self.set_cursor(lane, order, cursor);
            return index;
        }
        self.search(lane, level, cursor, order)
    }

    /// Leaves the word at the cursor to another lane that claims there too, for one nearby if there is one
    /// with room, on another cache line if possible.
    #[cold]
    fn part(&self, lane: usize, order: u32) -> Option<u64> {
        let level = level_of(order);
        let cursor = self.cursor(lane, order);
        if level < self.geometry.top {
            let slot = (cursor & 15) as u32;
            let chosen = self.choose(level + 1, cursor >> 4, u64::from(order) + 1, slot ^ 8);
            if let Some(other) = chosen.filter(|&other| other != slot) {
                let idx = cursor & !15 | u64::from(other);
                let index = self.take(lane, level, idx, order);
                if index.is_some() {
                    self.set_cursor(lane, order, idx);
                    return index;
                }
            }
        }
        self.alloc_anywhere(lane, order)
    }

    /// Climbs from a claim, and searches on if it met a larger block.
    #[inline(never)]
    fn keep_or_search(&self, lane: usize, index: u64, order: u32) -> Option<u64> {
        let level = level_of(order);
        let idx = index >> word_order(level);
        if self.climb(lane, level, idx) {
            return Some(index);
        }
        self.undo(lane, index, order);
        self.search(lane, level, idx, order)
    }

    /// Claims a block of `order` in one word and climbs. `None`: nothing fits, or the area is somebody's.
    pub(super) fn take(&self, lane: usize, level: usize, idx: u64, order: u32) -> Option<u64> {
        let slots = order - slot_order(level);
        let (_, slot) =
            self.update(lane, level, idx, |old| self.with_block(level, idx, old, slots))?;
        let index = (idx << slots_log2(level) | u64::from(slot)) << slot_order(level);
        if self.climb(lane, level, idx) {
            return Some(index);
        }
        self.undo(lane, index, order);
        None
    }

    /// Word `idx` of `level` with a further block of `2^slots` slots, and the slot at which it begins. A word
    /// that lies outside the level, as a cursor may have it, has no slots.
    #[inline(always)]
    fn with_block(&self, level: usize, idx: u64, old: u64, slots: u32) -> Option<(u64, u32)> {
        let inside = word::first_slots(self.geometry.whole_slots(level, idx));
        let codes = word::codes(level, old);
        let slot = word::fit(word::free_slots(codes) & inside, slots)?;
        Some((word::with_codes(level, old, codes | word::block(slots) << (2 * slot)), slot))
    }

    /// Whether every slot above word `idx` of `level` is split, by a look at the word above and by what
    /// the lane knows of the others. `false`: perhaps not.
    #[inline(always)]
    fn knows_way_up(&self, hints: Hints<'_, W>, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry.top {
            return true;
        }
        let place = self.geometry.place(level + 1, idx >> 4);
        // SeqCst: the read of that pair. It sees the mark of an inspection that missed the claim.
        self.words
            .get(place)
            .is_some_and(|above| word::passes(above.load(Ordering::SeqCst), (idx & 15) as u32))
            && self.knows_path(hints, place, 0)
    }

    /// Sees to it that every slot above word `idx` of `level` is split and that no inspection that may
    /// have missed the claim can end well. `false`: the area belongs to a larger block.
    pub(super) fn climb(&self, lane: usize, level: usize, idx: u64) -> bool {
        W::store_load_fence();
        if level == self.geometry.top {
            return true;
        }
        // The read of that pair, as in `knows_way_up`.
        let in_order = word::passes(self.read(level + 1, idx >> 4), (idx & 15) as u32);
        in_order && self.survey(lane, level + 1, idx >> 4).is_some() || self.climb_all(level, idx)
    }

    #[cold]
    fn climb_all(&self, level: usize, idx: u64) -> bool {
        let mut below = idx;
        (level + 1..=self.geometry.top).all(|level| {
            let slot = (below & 15) as u32;
            below >>= 4;
            self.open(level, below, slot)
        })
    }

    /// Makes `slot` of an inner word split, and the word unmarked. `false`: it is part of a block.
    fn open(&self, level: usize, idx: u64, slot: u32) -> bool {
        // The read of that pair, as in `climb`.
        let mut old = self.read(level, idx);
        loop {
            let codes = word::codes(level, old);
            let bound = match word::code(codes, slot) {
                word::HEAD | word::REST => return false,
                // What the claim left of the slot: its largest half, at most.
                word::FREE => word::bound(old).max(u64::from(slot_order(level))),
                _ if old & word::MARK == 0 => return true,
                _ => word::bound(old),
            };
            let new = word::inner(old, codes | word::SPLIT << (2 * slot), bound, 0);
            // SeqCst: the change of version that makes a concurrent `inspect` fail to commit.
            match swap(self.word(level, idx), old, new) {
                Ok(_) => return true,
                Err(found) => old = found,
            }
        }
    }

    /// Gives back a claim that met a larger block on its climb, and the slots that it split on the way.
    #[cold]
    fn undo(&self, lane: usize, index: u64, order: u32) {
        // The claim is this caller's own, so it is there to be cleared.
        if let Some(new) = self.clear_word(lane, index, order) {
            self.merge_or_publish(level_of(order), index >> word_order(level_of(order)), new);
        }
    }
}
