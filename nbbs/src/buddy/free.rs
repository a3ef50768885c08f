//! Freeing a block: find it, clear it with one compare-and-swap, tell the words above.

use super::hints::Hints;
use super::{Buddy, swap, word};
use crate::error::FreeError;
use crate::geometry::{level_of, slot_order, slots_log2, word_order};
use crate::lane::default_lane;
use crate::sync::{Ordering, Word};

impl<W: Word> Buddy<'_, W> {
    /// Frees the block that begins at unit `index` and returns its order.
    ///
    /// Cost: a load for each level on the way down to the block, one read-modify-write, and a look at the
    /// words above: few if the lane was there last, one for each level otherwise. Callable from interrupt and signal handlers.
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
            let order = self.order_of(index)?;
            if self.clear(lane, index, order) {
                return Ok(order);
            }
        }
    }

    /// Frees the block of `order` at unit `index`, without a search from the top.
    ///
    /// Cost: one read-modify-write, and a look at the words above: few if the lane was there last, one for
    /// each level otherwise. Callable from interrupt and signal handlers.
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
        if order > self.geometry.max_order {
            return Err(FreeError::OrderTooLarge { order, max: self.geometry.max_order });
        }
        if index >= self.geometry.units {
            return Err(FreeError::OutOfRange { index, units: self.geometry.units });
        }
        if index & ((1 << order) - 1) != 0 {
            return Err(FreeError::Misaligned { index, order });
        }
        if self.clear(lane, index, order) {
            return Ok(());
        }
        Err(self.why_not(index, order))
    }

    /// The order of the block that begins at unit `index`.
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
        if index >= self.geometry.units {
            return Err(FreeError::OutOfRange { index, units: self.geometry.units });
        }
        let mut level = self.geometry.top;
        loop {
            let codes = word::codes(level, self.read(level, index >> word_order(level)));
            let slot = slot_of(level, index);
            match word::code(codes, slot) {
                word::SPLIT if level > 0 => level -= 1,
                word::HEAD if index & ((1 << slot_order(level)) - 1) == 0 => {
                    let order = word::block_order(codes, slot);
                    return order.map_or(Err(FreeError::NotABlock { index }), |order| {
                        Ok(order + slot_order(level))
                    });
                }
                word::FREE => return Err(FreeError::NotAllocated { index }),
                word::HOLE => return Err(FreeError::Reserved { index }),
                _ => return Err(FreeError::NotABlock { index }),
            }
        }
    }

    /// Clears the block of `order` at `index` and tells the words above. `false`: it is not there.
    #[inline(always)]
    pub(super) fn clear(&self, lane: usize, index: u64, order: u32) -> bool {
        // One copy of the code for each shape of a block, as in `alloc_on`.
        let level = level_of(order);
        match (level, order - slot_order(level)) {
            (0, 0) => self.clear_shape::<true, 0>(lane, 0, index),
            (0, 1) => self.clear_shape::<true, 1>(lane, 0, index),
            (0, 2) => self.clear_shape::<true, 2>(lane, 0, index),
            (0, 3) => self.clear_shape::<true, 3>(lane, 0, index),
            (0, _) => self.clear_shape::<true, 4>(lane, 0, index),
            (level, 0) => self.clear_shape::<false, 0>(lane, level, index),
            (level, 1) => self.clear_shape::<false, 1>(lane, level, index),
            (level, 2) => self.clear_shape::<false, 2>(lane, level, index),
            (level, _) => self.clear_shape::<false, 3>(lane, level, index),
        }
    }

    /// Clears a block of `2^SLOTS` slots of a word of `level`: the common case, in which the word holds
    /// what it seems to and the words above know all there is to know. As in `alloc_shape`, the rest is
    /// left to a last call.
    #[inline(never)]
    fn clear_shape<const LEAF: bool, const SLOTS: u32>(
        &self,
        lane: usize,
        level: usize,
        index: u64,
    ) -> bool {
        let level = if LEAF { 0 } else { level };
        let idx = index >> word_order(level);
        let place = self.geometry.place(level, idx);
        let Some(hints) = self.hints(lane) else { return false };
        let Some(word) = self.words.get(place) else { return false };
        let old = hints.guess(place, word);
        let order = SLOTS + slot_order(level);
        let Some((new, left)) = without_block(level, index, old, SLOTS) else {
            return self.clear_slowly(lane, index, order);
        };
        if let Err(found) = swap(word, old, new) {
            hints.remember(place, found);
            return self.clear_slowly(lane, index, order);
        }
        hints.remember(place, new);
        W::store_load_fence();
        let offer = if left != 0 {
            coarse_offer(level, index, left, SLOTS)
        } else if hints.cursor(order) == Some(idx) {
            word::UNSETTLED
        } else {
            self.tell_above(lane, order, idx, new);
            return true;
        };
        if !self.above_allow(hints, level, idx, offer) {
            self.tell_above(lane, order, idx, new);
        }
        true
    }

    /// Clears a block without regard to what the lane remembers of its word.
    #[inline(never)]
    fn clear_slowly(&self, lane: usize, index: u64, order: u32) -> bool {
        let cleared = self.clear_word(lane, index, order);
        if let Some(new) = cleared {
            self.tell_above(lane, order, index >> word_order(level_of(order)), new);
        }
        cleared.is_some()
    }

    /// Clears a block in its word and returns what the word is now. Tells nobody.
    pub(super) fn clear_word(&self, lane: usize, index: u64, order: u32) -> Option<u64> {
        let (level, idx) = (level_of(order), index >> word_order(level_of(order)));
        let slots = order - slot_order(level);
        let cleared = self.update(lane, level, idx, |old| without_block(level, index, old, slots));
        W::store_load_fence();
        cleared.map(|(new, _)| new)
    }

    /// Whether every word above word `idx` of `level` is unmarked and allows for `offer`.
    #[inline(always)]
    fn above_allow(&self, hints: Hints<'_, W>, level: usize, idx: u64, offer: u64) -> bool {
        if level == self.geometry.top {
            return true;
        }
        let place = self.geometry.place(level + 1, idx >> 4);
        // SeqCst: the reads of that pair. They see the mark of an inspection that missed the free.
        let allows = |place: usize| {
            self.words
                .get(place)
                .is_some_and(|above| word::allows(above.load(Ordering::SeqCst), offer))
        };
        let mut above = idx >> 4;
        allows(place)
            && (self.knows_path(hints, place, offer)
                || self.geometry.bases_from(level + 2).iter().all(|base| {
                    above >>= 4;
                    allows(base + above as usize)
                }))
    }

    /// After a free left `new` in a word: merges it if it is empty and not the lane's own, which stays
    /// split for the lane's next allocation to fill; else raises the bounds above to what it offers.
    #[inline(never)]
    fn tell_above(&self, lane: usize, order: u32, idx: u64, new: u64) {
        let level = level_of(order);
        if word::codes(level, new) == 0 && self.cursor(lane, order) == idx {
            self.publish(level, idx, word::UNSETTLED);
        } else {
            self.merge_or_publish(level, idx, new);
        }
    }

    /// Why a free of `order` at `index` was refused.
    #[cold]
    fn why_not(&self, index: u64, order: u32) -> FreeError {
        match self.order_of(index) {
            Ok(actual) if actual != order => FreeError::WrongOrder { index, order, actual },
            // Freed when it was looked at, allocated again since.
            Ok(_) => FreeError::NotAllocated { index },
            Err(error) => error,
        }
    }
}

/// A word of `level` without the block of `2^slots` slots at unit `index`, and its codes.
/// `None`: there is no such block.
#[inline(always)]
fn without_block(level: usize, index: u64, old: u64, slots: u32) -> Option<(u64, u64)> {
    let slot = slot_of(level, index);
    let codes = word::codes(level, old);
    let left = codes & !(word::area(slots) << (2 * slot));
    word::is_block(codes, slot, slots).then(|| (word::with_codes(level, old, left), left))
}

/// At least what the words above must allow for after `2^slots` slots at unit `index` came free in a word
/// that is still in use: the block itself if its buddy is in use, else the most that such a word offers.
#[inline(always)]
fn coarse_offer(level: usize, index: u64, left: u64, slots: u32) -> u64 {
    let buddy = slot_of(level, index) ^ 1 << slots;
    if left & word::area(slots) << (2 * buddy) != 0 {
        u64::from(slots + slot_order(level)) + 1
    } else {
        u64::from(word_order(level))
    }
}

/// The slot of unit `index` in its word of `level`.
#[inline(always)]
const fn slot_of(level: usize, index: u64) -> u32 {
    (index >> slot_order(level)) as u32 & ((1 << slots_log2(level)) - 1)
}
