//! What a lane remembers between operations. All of it saves loads, and none of it is trusted unchecked.
//!
//! ```text
//! words 0, 1  cursors of the largest orders         word 4      the path of claims: the place of an inner
//! word 2      the word that the lane changed last:              word, the least bound above it
//!             its place, the order and slot of a    word 5      the epoch of that path, sealed with word 4
//!             block that may fit                    words 6, 7  the same for the path of frees
//! word 3      what the lane left in it              words 8+    cursor of each order from 0 on, plus 1
//!                                                   words 16+   spares: two words for each order from 0 to 4,
//!                                                               one for each from 5 to 10
//! ```
//!
//! The cursors of small orders have a cache line of their own, which is written when one moves. Other lanes look at
//! these cursors when they empty a word, and the first line is written by every operation.
//!
//! **The word changed last.** Reading a word that was compare-and-swapped a moment ago waits for the cache. Guessing
//! what it holds does not, and a wrong guess only makes a compare-and-swap fail; what that found is noted instead. The
//! block that may fit next is noted too: after an allocation the buddy of what it claimed, or the block behind that;
//! after a free the block just freed, whose memory is still in the cache. It is found in advance, so no allocation
//! waits for the search.
//!
//! **The path.** A claim and a free look at every word above a block, though almost always nothing has changed there
//! since the lane last looked. Only an inspection can turn a split slot free or lower a bound, and an inspection of a
//! word at level 2 or above increments the *epoch* after its mark and before its reads. Suppose a lane saw the whole
//! path in order, and had read the epoch *before* it looked. An operation that now reads the same epoch knows that each
//! inspection of a word on the path either has failed, or has yet to read the words below, including the caller's claim
//! or clear. A slot is in order if it is split, in a word without a mark; for a free, the bound must also be at least
//! what is noted. So a claim may use either note: often it takes what the lane freed last.
//!
//! Threads that share a lane write a note's two words one after the other, so a reader may get one word of each of two
//! notes. For the word changed last, any combination is harmless: the block is checked against what the word is
//! believed to hold, and the compare-and-swap checks that. For the path, the second word is the epoch plus a multiple
//! of the first, so that one word each of two notes gives no epoch that exists.
//!
//! A path publishes what its writer saw: an operation that trusts it skips words whose last change may have ordered an
//! earlier holder's accesses before the claim. So its second word is written with `Release` and read with `Acquire`.

use super::spares::Spares;
use super::{NOWHERE, Path};
use crate::layout::geometry::LINE;
use crate::sync::{ACQUIRE_BY_FENCE, Ordering, Word};
use crate::tree::{At, LaneWords};

/// The number of cursors: one for each small order, and one for all larger ones.
const CURSOR_ORDERS: usize = 10;
/// The position of a level in a cursor, behind the bits of a word's number.
const LEVEL_SHIFT: u32 = 48;
/// The position of the word changed last.
const CHANGED: usize = 2;
/// The position of the claims' path.
const CLAIMS: usize = 4;
/// The position of the frees' path.
const FREES: usize = 6;
/// The position of the spares of order 0.
const SPARES: usize = 2 * LINE;
/// The number of orders that can be those of blocks in leaf words.
const LEAF_ORDERS: usize = 5;
/// The position of the spares of order [`LEAF_ORDERS`]; those of larger orders follow. In a smaller shape some orders
/// below it are not of leaf words: they have the words directly in front, to which the pairs of the others do not
/// reach.
const LARGE_SPARES: usize = SPARES + 2 * LEAF_ORDERS;

/// The words of one lane. Accesses are `Relaxed` where they publish nothing.
pub(crate) struct Notes<'a, W>(&'a LaneWords<W>);

copy!(Notes<'_, W>);

impl<'a, W: Word> Notes<'a, W> {
    #[inline(always)]
    pub fn new(words: &'a LaneWords<W>) -> Self {
        Self(words)
    }

    /// Returns the word in which the lane last claimed a block of `order`; of the orders that share a cursor, only if
    /// that was on the same level.
    #[inline(always)]
    pub fn cursor(self, order: u32) -> Option<u64> {
        let level = level_bits::<W>(order);
        let number = self.0[cursor_at(order)].load(Ordering::Relaxed).wrapping_sub(level);
        let is_its = level == 0 || number >> LEVEL_SHIFT == 0 || number == NOWHERE + 1;
        number.checked_sub(1).filter(|_| is_its)
    }

    /// Stores the cursor only if it is new: other lanes may have the line.
    #[inline(always)]
    pub fn set_cursor(self, order: u32, idx: u64) {
        // Wraps only where a number from another arena's words is stored.
        let (cursor, level) = (&self.0[cursor_at(order)], level_bits::<W>(order));
        let stored = level.wrapping_add(idx).wrapping_add(1);
        if cursor.load(Ordering::Relaxed) != stored {
            cursor.store(stored, Ordering::Relaxed);
        }
    }

    /// Returns what `word` at `place` holds: from the lane's own note, if the lane changed that word last.
    #[inline(always)]
    pub fn guess(self, place: usize, word: At<'_, W>) -> u64 {
        self.guess_last(place, word).0
    }

    /// Returns what `word` at `place` holds, as [`guess`](Self::guess) does, and whether the lane changed that word
    /// last.
    #[inline(always)]
    pub fn guess_last(self, place: usize, word: At<'_, W>) -> (u64, bool) {
        let is_last = self.changed().is_of(place);
        (if is_last { self.left() } else { word.load() }, is_last)
    }

    /// Returns the block of `order` that was noted with the word changed last, and what that word was left to hold: the
    /// block that the lane freed last, or the buddy of what it last claimed at its cursor or beside it, or, in a leaf
    /// word, the block behind what it last claimed so. `LEAF`: the block is one of a leaf word.
    #[inline(always)]
    pub fn next_fit<const LEAF: bool>(self, order: u32) -> Option<(Fit, u64)> {
        let changed = self.changed();
        let slot = changed.fit(W::SHAPE.slots(usize::from(!LEAF)), order)?;
        Some((Fit { changed, slot }, self.left()))
    }

    /// Notes that the word of `fit`, where that block was claimed, holds `left`, and what may fit after it: the block
    /// behind, if a claim in a leaf word noted it, and otherwise none.
    #[inline(always)]
    pub fn note_behind(self, fit: Fit, left: u64) {
        self.note_changed(fit.changed.behind(), left);
    }

    /// Notes that the word at `place` holds `left`.
    #[inline(always)]
    pub fn note(self, place: usize, left: u64) {
        self.note_changed(Changed::of(place), left);
    }

    /// [Notes](Self::note) a word in which a block of `order` was freed at `slot`.
    #[inline(always)]
    pub fn note_freed(self, place: usize, left: u64, order: u32, slot: u32) {
        self.note_changed(Changed::of(place).with_fit(order, slot, Changed::TO_NONE), left);
    }

    /// [Notes](Self::note) a word in which a block of `order` was claimed, and that its buddy at `slot` may fit next.
    /// `LEAF`: it is a leaf word, and the block behind the buddy may fit after that.
    #[inline(always)]
    pub fn note_claimed<const LEAF: bool>(self, place: usize, left: u64, order: u32, slot: u32) {
        let step = if LEAF { 1 << order } else { Changed::TO_NONE };
        self.note_changed(Changed::of(place).with_fit(order, slot, step), left);
    }

    #[inline(always)]
    fn note_changed(self, changed: Changed, left: u64) {
        self.0[CHANGED].store(changed.0, Ordering::Relaxed);
        self.0[CHANGED + 1].store(left, Ordering::Relaxed);
    }

    /// Returns the spares of `order`. Of the largest orders none are noted. `LEAF`: the blocks are those of leaf words,
    /// of which more are noted.
    #[inline(always)]
    pub fn spares<const LEAF: bool>(self, order: u32) -> Option<Spares<'a, W>> {
        let order = order as usize;
        let spares = if LEAF {
            let of_leaves = self.0[SPARES..LARGE_SPARES].as_chunks::<2>().0;
            of_leaves.get(order).map(|words| &words[..])
        } else {
            self.0[LARGE_SPARES - LEAF_ORDERS..].get(order..=order)
        };
        spares.map(Spares::new)
    }

    /// Forgets the block that may fit.
    pub fn forget_fit(self) {
        let place = self.changed().place();
        self.0[CHANGED].store(Changed::of(place).0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn changed(self) -> Changed {
        Changed(self.0[CHANGED].load(Ordering::Relaxed))
    }

    /// Returns what the word changed last was left to hold.
    #[inline(always)]
    pub fn left(self) -> u64 {
        self.0[CHANGED + 1].load(Ordering::Relaxed)
    }

    /// Returns the least bound that the lane last saw on the path above the inner word at `place`, and the epoch of
    /// that look. A fence must follow before it is trusted.
    #[inline(always)]
    pub fn seen_path(self, path: Path, place: usize) -> Option<(u64, u64)> {
        let at = path_at(path);
        let seen = Seen(self.0[at].load(Ordering::Relaxed));
        // Acquire, by the fence if need be: pairs with the Release in `set_path`, and so with everything that the
        // note's writer acquired on the path.
        let sealed = self.0[at + 1].load(ACQUIRE_BY_FENCE);
        seen.bound(place).map(|bound| (bound, seen.unsealed(sealed)))
    }

    /// Notes that the path above the inner word at `place` was in order after `epoch` was read, and the least bound
    /// there.
    pub fn set_path(self, path: Path, place: usize, epoch: u64, bound: u64) {
        let at = path_at(path);
        let seen = Seen::new(place, bound);
        self.0[at].store(seen.0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `seen_path`.
        self.0[at + 1].store(seen.sealed(epoch), Ordering::Release);
    }
}

/// A block that may fit: it was noted with the word changed last.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    changed: Changed,
    /// The slot at which it begins.
    pub slot: u32,
}

impl Fit {
    /// Returns the place of its word.
    #[inline(always)]
    pub fn place(self) -> usize {
        self.changed.place()
    }
}

/// The word changed last, and a block that may fit there: its place; 6 bits with the slots from this block to the one
/// that may fit next; and 12 bits with an order and a slot plus 1.
#[derive(Clone, Copy)]
struct Changed(u64);

impl Changed {
    const PLACE_SHIFT: u32 = 18;
    const STEP_SHIFT: u32 = 12;
    const ORDER_SHIFT: u32 = 6;
    /// The step from any slot to none: a slot plus 1 is at most 32 before it. After it, it is at most 64, which is 0 of
    /// the next order.
    const TO_NONE: u32 = 32;

    /// Returns the note of a word in which no block may fit.
    #[inline(always)]
    const fn of(place: usize) -> Self {
        Self((place as u64) << Self::PLACE_SHIFT)
    }

    #[inline(always)]
    const fn with_fit(self, order: u32, slot: u32, step: u32) -> Self {
        Self(self.0 | (Self::fit_at(order, slot) + (step << Self::STEP_SHIFT)) as u64)
    }

    #[inline(always)]
    const fn fit_at(order: u32, slot: u32) -> u32 {
        (order << Self::ORDER_SHIFT) + slot + 1
    }

    /// Returns the note of the block that may fit after this one: a step behind.
    #[inline(always)]
    const fn behind(self) -> Self {
        Self(self.0 + (self.0 >> Self::STEP_SHIFT & 63))
    }

    #[inline(always)]
    const fn place(self) -> usize {
        (self.0 >> Self::PLACE_SHIFT) as usize
    }

    #[inline(always)]
    const fn is_of(self, place: usize) -> bool {
        self.0 >> Self::PLACE_SHIFT == place as u64
    }

    /// Returns the slot at which a block of `order` may fit, in a word of `of` slots. One subtraction tests both order
    /// and slot.
    #[inline(always)]
    fn fit(self, of: u32, order: u32) -> Option<u32> {
        let fit = self.0 as u32 & ((1 << Self::STEP_SHIFT) - 1);
        let slot = fit.wrapping_sub(Self::fit_at(order, 0));
        (slot < of).then_some(slot)
    }
}

/// A path as it was seen: the place of the inner word below it, and the least bound above in 6 bits.
#[derive(Clone, Copy)]
struct Seen(u64);

impl Seen {
    const BOUND_BITS: u32 = 6;
    /// The seal of a path's two words: 2^64 divided by the golden ratio, whose multiples are far apart.
    const SEAL: u64 = 0x9e37_79b9_7f4a_7c15;

    #[inline(always)]
    const fn new(place: usize, bound: u64) -> Self {
        Self((place as u64) << Self::BOUND_BITS | bound)
    }

    /// Returns the least bound, if this is the path above the word at `place`.
    #[inline(always)]
    fn bound(self, place: usize) -> Option<u64> {
        let bound = self.0.wrapping_sub(Self::new(place, 0).0);
        (bound < 1 << Self::BOUND_BITS).then_some(bound)
    }

    /// Returns the epoch of a path, from its second word.
    #[inline(always)]
    const fn unsealed(self, sealed: u64) -> u64 {
        sealed.wrapping_sub(self.0.wrapping_mul(Self::SEAL))
    }

    /// Returns the second word of a path: its epoch, sealed with the first word.
    #[inline(always)]
    const fn sealed(self, epoch: u64) -> u64 {
        epoch.wrapping_add(self.0.wrapping_mul(Self::SEAL))
    }
}

#[inline(always)]
const fn path_at(path: Path) -> usize {
    match path {
        Path::Claims => CLAIMS,
        Path::Frees => FREES,
    }
}

/// Returns what is added to a cursor that several orders share: the level of its word.
#[inline(always)]
const fn level_bits<W: Word>(order: u32) -> u64 {
    if (order as usize) < CURSOR_ORDERS - 1 {
        return 0;
    }
    (W::SHAPE.level_of(order) as u64) << LEVEL_SHIFT
}

/// The position of the cursor for `order`. Those of the orders below 8 take the second cache line, the others what the
/// notes leave of the first.
#[inline(always)]
const fn cursor_at(order: u32) -> usize {
    let order = if (order as usize) < CURSOR_ORDERS { order as usize } else { CURSOR_ORDERS - 1 };
    (order + LINE) % SPARES
}

#[cfg(test)]
mod tests {
    use super::{CHANGED, CURSOR_ORDERS, Changed, SPARES, Seen, cursor_at};
    use crate::layout::geometry::{LINE, MAX_ORDERS};

    const PLACES: [usize; 5] = [0, 1, 63, 4096, 1 << 30];
    const ORDERS: std::ops::Range<u32> = 0..MAX_ORDERS as u32;

    #[test]
    fn orders_have_cursors_of_their_own_and_large_ones_share_one() {
        let mut places: std::vec::Vec<_> = (0..CURSOR_ORDERS as u32).map(cursor_at).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq((0..CHANGED).chain(LINE..SPARES)));
        for order in CURSOR_ORDERS..MAX_ORDERS {
            assert_eq!(cursor_at(order as u32), cursor_at(CURSOR_ORDERS as u32 - 1));
        }
    }

    #[test]
    fn a_noted_block_is_found_under_its_order_and_no_other() {
        for (place, order) in
            PLACES.into_iter().flat_map(|place| ORDERS.map(move |order| (place, order)))
        {
            assert_eq!(Changed::of(place).fit(32, order), None);
            for (slot, step) in (0..32).flat_map(|slot| [(slot, 1), (slot, Changed::TO_NONE)]) {
                let changed = Changed::of(place).with_fit(order, slot, step);
                assert_eq!(changed.place(), place);
                assert!(changed.is_of(place) && !changed.is_of(place + 1));
                for other in ORDERS {
                    let fit = (other == order).then_some(slot);
                    assert_eq!(changed.fit(32, other), fit, "{place} {order} {slot}: {other}");
                }
            }
        }
    }

    #[test]
    fn behind_the_last_block_of_a_word_and_behind_a_freed_one_there_is_none() {
        for (place, leaf) in
            PLACES.into_iter().flat_map(|place| (1..=5).map(move |leaf| (place, leaf)))
        {
            let none = |changed: Changed| {
                assert!(changed.is_of(place));
                ORDERS.into_iter().all(|order| changed.fit(1 << leaf, order).is_none())
            };
            for order in 0..leaf {
                let mut changed = Changed::of(place).with_fit(order, 0, 1 << order);
                for slot in (0..1 << leaf).step_by(1 << order) {
                    assert_eq!(changed.fit(1 << leaf, order), Some(slot));
                    changed = changed.behind();
                    let freed = Changed::of(place).with_fit(order, slot, Changed::TO_NONE);
                    assert!(none(freed.behind()), "{place} {order} {leaf} {slot}");
                }
                assert!(none(changed), "{place} {order} {leaf}");
            }
        }
    }

    #[test]
    fn a_path_has_its_bound_at_its_place() {
        for place in PLACES {
            for bound in 0..64 {
                let seen = Seen::new(place, bound);
                assert_eq!(seen.bound(place), Some(bound));
                assert_eq!(seen.bound(place + 1), None);
                assert!(place == 0 || seen.bound(place - 1).is_none());
            }
        }
    }

    #[test]
    fn words_of_two_paths_give_no_epoch_that_is_near() {
        let paths = PLACES.map(|place| Seen::new(place, 7));
        for one in paths {
            for other in paths.iter().filter(|other| other.0 != one.0) {
                let epoch = one.sealed(1000).wrapping_sub(other.sealed(0));
                assert!(epoch > 1 << 32, "{epoch}");
            }
        }
    }
}
