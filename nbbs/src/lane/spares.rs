//! The spares of one order, which a lane remembers for when there is no room at its cursor.

use crate::sync::{Ordering, Word};

/// The last few *spares* of one order: free blocks with a buddy in use, which frees of the lane's left. Each takes 16
/// bits, four to a word, the last in the lowest: the low bits of the number of the word that the block lies in, plus 1.
/// The high bits are those of the cursor: words with others are not noted, nor is the last of each 2^16.
///
/// The block may have been claimed or merged since, so whoever takes a spare looks at its word. Threads that share a
/// lane may lose spares, or find one twice.
pub(crate) struct Spares<'a, W>(&'a [W]);

/// The bits of one spare.
const BITS: u32 = 16;
const LOW: u64 = (1 << BITS) - 1;

impl<'a, W: Word> Spares<'a, W> {
    #[inline(always)]
    pub const fn new(words: &'a [W]) -> Self {
        Self(words)
    }

    /// Returns how many spares are noted at most.
    #[inline(always)]
    pub const fn most(&self) -> usize {
        self.0.len() * (u64::BITS / BITS) as usize
    }

    /// Notes a block in word `idx`, and forgets the oldest that was noted.
    #[inline(always)]
    pub fn note(&self, idx: u64, cursor: u64) {
        let mut spare = (idx + 1) & LOW;
        if spare == 0 || (idx ^ cursor) > LOW {
            return;
        }
        for word in self.0 {
            // Relaxed, as the other accesses here: a spare publishes nothing.
            let noted = word.load(Ordering::Relaxed);
            word.store(noted << BITS | spare, Ordering::Relaxed);
            spare = noted >> (u64::BITS - BITS);
        }
    }

    /// Takes the block noted last, and returns its word: a wrong one if the cursor's high bits have changed since.
    #[inline(always)]
    pub fn take(&self, cursor: u64) -> Option<u64> {
        let low = (self.0[0].load(Ordering::Relaxed) & LOW).checked_sub(1)?;
        let mut last = 0;
        for word in self.0.iter().rev() {
            let noted = word.load(Ordering::Relaxed);
            word.store(noted >> BITS | last << (u64::BITS - BITS), Ordering::Relaxed);
            last = noted & LOW;
        }
        Some(cursor & !LOW | low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn the_last_are_taken_the_last_first() {
        for count in [1, 2] {
            let words: std::vec::Vec<_> = (0..count).map(|_| AtomicU64::new(0)).collect();
            let spares = Spares::new(&words);
            assert_eq!(spares.most(), 4 * count);
            assert_eq!(spares.take(0), None);
            (0..9).for_each(|idx| spares.note(7 * idx, 65_535));
            let left: std::vec::Vec<_> = core::iter::from_fn(|| spares.take(65_535)).collect();
            let noted: std::vec::Vec<_> = (0..9).rev().map(|idx| 7 * idx).collect();
            assert_eq!(left, noted[..4 * count]);
        }
    }

    #[test]
    fn the_high_bits_are_those_of_the_cursor() {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let spares = Spares::new(&words);
        let (cursor, first, last) = (3 << 16 | 5, 3 << 16, 4 << 16 | LOW);
        for idx in [first, first + LOW - 1, 1 << 39, first - 1, first + LOW, first + LOW + 1, last]
        {
            spares.note(idx, cursor);
        }
        let taken = [spares.take(cursor), spares.take(cursor), spares.take(cursor)];
        assert_eq!(taken, [Some(first + LOW - 1), Some(first), None]);
    }
}
