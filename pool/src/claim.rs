//! Claiming slots of a chunk, and giving them back.

use crate::chunk::{Chunk, SLOTS};
use crate::sync::{Ordering, Word};

impl<T, W: Word> Chunk<T, W> {
    /// Claims up to `most` free slots of a word; returns 0 if none was free.
    ///
    /// # Safety
    /// `word` is less than [`words`](Self::words).
    #[inline]
    pub(crate) unsafe fn claim(&self, word: usize, most: u32) -> u64 {
        // SAFETY: by the contract.
        let claimed = unsafe { self.claimed(word) };
        // SeqCst throughout: acquires what the slots' last holders released in `release`, and is the first
        // half of the pair that `Hint` describes.
        let mut old = claimed.load(Ordering::SeqCst);
        loop {
            if old == u64::MAX {
                return 0;
            }
            if most as usize >= SLOTS {
                old = claimed.swap(u64::MAX, Ordering::SeqCst);
                if old != u64::MAX {
                    // SAFETY: by the contract.
                    unsafe { self.hint().lower(word) };
                }
                return !old;
            }
            let slots = lowest(!old, most);
            let new = old | slots;
            match claimed.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    if new == u64::MAX {
                        // SAFETY: by the contract.
                        unsafe { self.hint().lower(word) };
                    }
                    return slots;
                }
                Err(found) => old = found,
            }
        }
    }

    /// Claims up to `most` free slots of one word, looking from `from` on and then before it.
    pub(crate) fn claim_near(&self, from: usize, most: u32) -> Option<(usize, u64)> {
        let from = if from < self.words() { from } else { 0 };
        self.claim_between(from, self.words(), most).or_else(|| self.claim_between(0, from, most))
    }

    fn claim_between(&self, from: usize, to: usize, most: u32) -> Option<(usize, u64)> {
        let mut from = from;
        while let Some(word) = self.hint().next(from).filter(|&word| word < to) {
            // SAFETY: the chunk has the word, as a hint says so.
            match unsafe { self.claim(word, most) } {
                // SAFETY: as above.
                0 => unsafe { self.hint().lower(word) },
                slots => return Some((word, slots)),
            }
            from = word + 1;
        }
        None
    }

    /// Claims any free slots in the chunk, whether or not a hint says that there are some.
    pub(crate) fn claim_anywhere(&self, most: u32) -> Option<(usize, u64)> {
        (0..self.words()).find_map(|word| {
            // SAFETY: each of them is less than `words()`.
            match unsafe { self.claim(word, most) } {
                0 => None,
                slots => Some((word, slots)),
            }
        })
    }

    /// Gives claimed slots of a word back.
    ///
    /// # Safety
    /// The slots are claimed for the caller, and no object is in them.
    #[inline]
    pub(crate) unsafe fn release(&self, word: usize, slots: u64) {
        // SAFETY: the chunk has the slots, which are claimed, and so their word.
        let claimed = unsafe { self.claimed(word) };
        // SeqCst: releases what was done with the slots to their next claimer, and is the first half of the pair that
        // `Hint` describes.
        let old = claimed.fetch_and(!slots, Ordering::SeqCst);
        debug_assert_eq!(old & slots, slots, "only claimed slots are given back");
        // SAFETY: as above.
        unsafe { self.hint().raise(word) };
    }

    /// Gives one claimed slot back.
    ///
    /// # Safety
    /// Those of [`release`](Self::release).
    #[inline]
    pub(crate) unsafe fn release_slot(&self, slot: usize) {
        // SAFETY: by the contract.
        unsafe { self.release(slot / SLOTS, 1 << (slot % SLOTS)) };
    }

    /// Frees all slots.
    ///
    /// # Safety
    /// All are claimed for the caller, and without an object; the chunk has memory.
    pub(crate) unsafe fn open(&self) {
        for word in 0..self.words() {
            // SAFETY: less than `words()`.
            let claimed = unsafe { self.claimed(word) };
            // SeqCst, as in `release`: a caller that claims a slot here sees the chunk's memory. A plain write: while
            // every bit is set, nobody else changes the word.
            claimed.store(!self.real(word), Ordering::SeqCst);
            // SAFETY: as above.
            unsafe { self.hint().raise(word) };
        }
    }

    /// Claims every slot for the caller, or none if one is in use.
    pub(crate) fn close(&self) -> bool {
        let close = |&word: &usize| {
            // SAFETY: it is called for words below `words()` only.
            let claimed = unsafe { self.claimed(word) };
            let (free, full) = (!self.real(word), u64::MAX);
            // SeqCst, as in `claim`: pairs with the last holders' `release`.
            claimed.compare_exchange(free, full, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let closed = (0..self.words()).take_while(close).count();
        let is_closed = closed == self.words();
        for word in 0..closed {
            if is_closed {
                // SAFETY: less than `words()`.
                unsafe { self.hint().lower(word) };
            } else {
                // SAFETY: its slots were free, and have just been claimed here.
                unsafe { self.release(word, self.real(word)) };
            }
        }
        is_closed
    }
}

/// Returns the lowest `most` of some bits.
fn lowest(bits: u64, most: u32) -> u64 {
    let mut rest = bits;
    (0..most).for_each(|_| rest &= rest.wrapping_sub(1));
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::lowest;

    #[test]
    fn the_lowest_bits_are_chosen() {
        assert_eq!(lowest(0b1011_0100, 1), 0b100);
        assert_eq!(lowest(0b1011_0100, 3), 0b11_0100);
        assert_eq!(lowest(0b1011_0100, 9), 0b1011_0100);
        assert_eq!(lowest(u64::MAX, 63), u64::MAX >> 1);
        assert_eq!(lowest(0, 5), 0);
    }
}
