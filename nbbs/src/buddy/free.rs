//! Freeing a block: find it, clear it with one compare-and-swap, tell the words above.

use super::Buddy;
use super::hints::{Hints, Path};
use crate::error::FreeError;
use crate::lane::default_lane;
use crate::sync::Word;
use crate::tree::At;
use crate::word;

impl<W: Word> Buddy<'_, W> {
    /// Frees the block that begins at unit `index` and returns its order; of a run, that of a block that
    /// would hold it.
    ///
    /// Cost: a load for each level on the way down to the block, one read-modify-write, and a look at the
    /// words above: few if the lane's last free was near, one for each level otherwise. Callable from
    /// interrupt and signal handlers.
    ///
    /// # Errors
    /// [`FreeError::OutOfRange`], [`FreeError::NotAllocated`], [`FreeError::NotABlock`] or
    /// [`FreeError::Reserved`]; nothing has changed. A second free of a block is told apart until its
    /// units are allocated again.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(3)?;
    /// assert_eq!(buddy.free(block + 1), Err(FreeError::NotABlock { index: block + 1 }));
    /// assert_eq!(buddy.free(block), Ok(3));
    /// assert_eq!(buddy.free(block), Err(FreeError::NotAllocated { index: block }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, index: u64) -> Result<u32, FreeError> {
        self.free_on(default_lane(), index)
    }

    /// [`Buddy::free`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::free`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc_on(7, 5)?;
    /// assert_eq!(buddy.free_on(7, block), Ok(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_on(&self, lane: usize, index: u64) -> Result<u32, FreeError> {
        loop {
            let order = match self.block_at(index) {
                Ok(order) => order,
                Err(error) => return self.free_run(lane, index, error),
            };
            if self.clear(lane, index, order) {
                return Ok(order);
            }
        }
    }

    /// Frees the block of `order` at unit `index`, without a search from the top.
    ///
    /// Cost: one read-modify-write, and a look at the words above: few if the lane's last free was near, one
    /// for each level otherwise. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Buddy::free`], [`FreeError::OrderTooLarge`], [`FreeError::Misaligned`] and
    /// [`FreeError::WrongOrder`]; nothing has changed. Where [`Buddy::free`] looks at the whole path,
    /// this trusts the order: a wrong order that happens to name a block which another thread is just
    /// then allocating can take that block back.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(2)?;
    /// let refused = FreeError::WrongOrder { index: block, order: 1, actual: 2 };
    /// assert_eq!(buddy.free_sized(block, 1), Err(refused));
    /// assert_eq!(buddy.free_sized(block, 2), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.free_sized_on(default_lane(), index, order)
    }

    /// [`Buddy::free_sized`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::free_sized`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc_on(1, 0)?;
    /// assert_eq!(buddy.free_sized_on(1, block, 0), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized_on(&self, lane: usize, index: u64, order: u32) -> Result<(), FreeError> {
        if order > self.geometry().max_order() {
            return Err(FreeError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        if index >= self.geometry().units() {
            return Err(FreeError::OutOfRange { index, units: self.geometry().units() });
        }
        if index & ((1 << order) - 1) != 0 {
            return Err(FreeError::Misaligned { index, order });
        }
        if self.clear(lane, index, order) {
            return Ok(());
        }
        self.free_otherwise(lane, index, order)
    }

    /// The order of the block that begins at unit `index`; of a run, that of a block that would hold it.
    ///
    /// Cost: a load for each level from the top down to the block. Callable from interrupt and signal
    /// handlers.
    ///
    /// # Errors
    /// Those of [`Buddy::free`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(5)?;
    /// assert_eq!(buddy.order_of(block), Ok(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn order_of(&self, index: u64) -> Result<u32, FreeError> {
        self.block_at(index).or_else(|error| match error {
            FreeError::OutOfRange { .. } => Err(error),
            _ => self.held(index).map(|run| run.order()),
        })
    }

    /// The order of the block that begins at unit `index`, unless it is a run.
    #[inline(always)]
    pub(crate) fn block_at(&self, index: u64) -> Result<u32, FreeError> {
        if index >= self.geometry().units() {
            return Err(FreeError::OutOfRange { index, units: self.geometry().units() });
        }
        let mut level = self.geometry().top();
        loop {
            let (idx, slot) = W::SHAPE.locate(level, index);
            let codes = word::codes(level, self.tree.read(level, idx));
            match word::code(codes, slot) {
                word::SPLIT if level > 0 => level -= 1,
                word::HEAD if index & ((1 << W::SHAPE.slot_order(level)) - 1) == 0 => {
                    // As large as its word, it would stand in the one above.
                    return word::block_order(codes, slot)
                        .filter(|&slots| slots < W::SHAPE.slots_log2(level))
                        .map(|slots| slots + W::SHAPE.slot_order(level))
                        .ok_or(FreeError::NotABlock { index });
                }
                word::FREE => return Err(FreeError::NotAllocated { index }),
                word::HOLE => return Err(FreeError::Reserved { index }),
                _ => return Err(FreeError::NotABlock { index }),
            }
        }
    }

    /// Clears the block of `order` at `index` and tells the words above. `false`: it is not there.
    #[inline(always)]
    fn clear(&self, lane: usize, index: u64, order: u32) -> bool {
        if order < W::SHAPE.word_order(0) {
            self.clear_near::<true>(lane, index, order)
        } else {
            self.clear_near::<false>(lane, index, order)
        }
    }

    /// Clears a block: the common case, in which the word holds what it seems to and the words above know all
    /// there is to know. As in `alloc_again`, the rest is left to a last call.
    #[inline]
    fn clear_near<const LEAF: bool>(&self, lane: usize, index: u64, order: u32) -> bool {
        let level = if LEAF { 0 } else { W::SHAPE.level_of(order) };
        let slots = order - W::SHAPE.slot_order(level);
        let (idx, slot) = W::SHAPE.locate(level, index);
        let place = self.geometry().place(level, idx);
        let hints = self.hints(lane);
        let Some(word) = self.tree.at(place) else { return false };
        let old = hints.guess(place, word);
        let (new, left) = match word.clear(level, old, slot, slots) {
            Some(Ok(cleared)) => cleared,
            Some(Err(found)) => {
                hints.note(place, found);
                return self.clear_slowly(lane, index, order);
            }
            None => return self.clear_slowly(lane, index, order),
        };
        hints.note_next(place, new, order, Some(slot));
        W::store_load_fence();
        if level == self.geometry().top() {
            return true;
        }
        let offer = if left != 0 {
            offer_of::<W>(level, left, slot, slots)
        } else if hints.cursor(order) == Some(idx) {
            word::UNSETTLED
        } else {
            return self.merge_emptied(level, idx);
        };
        let (above, _) = W::SHAPE.parent(idx);
        let place = self.geometry().place(level + 1, above);
        // Pairs with the mark, which this sees if the inspection missed the free.
        let allows = |above: At<'_, W>| word::allows(above.load(), offer);
        if !self.tree.at(place).is_some_and(allows) {
            return self.tell_above(level, idx, offer);
        }
        self.knows_path(hints, Path::Frees, place, offer)
            || self.look_above(hints, level + 1, above, offer)
    }

    /// Raises the bounds above word `idx` of `level` to `offer`, where they do not allow for it yet. Always
    /// `true`, so that it can be the caller's last call.
    #[inline(never)]
    fn look_above(&self, hints: Hints<'_, W>, level: usize, idx: u64, offer: u64) -> bool {
        let bound = self.survey(hints, Path::Frees, level, idx);
        if bound.is_none_or(|bound| bound < offer) {
            self.tree.publish(level, idx, offer);
        }
        true
    }

    /// Raises the bounds above word `idx` of `level` to `offer`. Always `true`, as [`look_above`](Self::look_above).
    #[inline(never)]
    fn tell_above(&self, level: usize, idx: u64, offer: u64) -> bool {
        self.tree.publish(level, idx, offer);
        true
    }

    /// Merges a word that a free emptied. Always `true`, as [`look_above`](Self::look_above).
    #[inline(never)]
    fn merge_emptied(&self, level: usize, idx: u64) -> bool {
        self.tree.merge_or_leave(level, idx);
        true
    }

    /// Clears a block without regard to what the lane remembers of its word.
    #[inline(never)]
    fn clear_slowly(&self, lane: usize, index: u64, order: u32) -> bool {
        let cleared = self.clear_word(lane, index, order);
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        cleared.is_some_and(|new| {
            if word::codes(level, new) == 0 && self.cursor(lane, order) == idx {
                // The lane's own word stays split, for the lane's next allocation to fill.
                self.tree.publish(level, idx, word::UNSETTLED);
            } else if word::codes(level, new) == 0 {
                self.tree.merge_or_leave(level, idx);
            } else {
                self.tree.merge_or_publish(level, idx, new);
            }
            true
        })
    }

    /// Clears a block in its word and returns what the word is now. Tells nobody.
    pub(super) fn clear_word(&self, lane: usize, index: u64, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        let (idx, slot) = W::SHAPE.locate(level, index);
        let slots = order - W::SHAPE.slot_order(level);
        // A word of codes alone, as in a leaf word: the rest of an inner word is not this transition's.
        let change = |codes| word::without_block(0, codes, slot, slots);
        let cleared = self.tree.rewrite(level, idx, change);
        self.noted(lane, level, idx, cleared).map(|(new, _)| new)
    }

    /// Frees what begins at `index` if it has `2^order` units but is no block in one word, or says why not.
    #[cold]
    fn free_otherwise(&self, lane: usize, index: u64, order: u32) -> Result<(), FreeError> {
        match self.block_at(index) {
            Ok(actual) if actual != order => Err(FreeError::WrongOrder { index, order, actual }),
            // Freed when it was looked at, allocated again since.
            Ok(_) => Err(FreeError::NotAllocated { index }),
            Err(FreeError::NotABlock { .. } | FreeError::Reserved { .. }) => {
                self.free_run_sized(lane, index, 1 << order)
            }
            Err(error) => Err(error),
        }
    }
}

/// What the words above must allow for after `2^slots` slots at `slot` came free in a word that is still in
/// use: the order, plus 1, of the block that they are now part of.
#[inline(always)]
const fn offer_of<W: Word>(level: usize, left: u64, slot: u32, slots: u32) -> u64 {
    (word::grown(left, slot, slots, W::SHAPE.slots_log2(level)) + W::SHAPE.slot_order(level) + 1)
        as u64
}
