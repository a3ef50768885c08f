//! The free blocks of one order that a lane remembers for when there is no room at its cursor.

use crate::sync::{Ordering, Word};

/// The *spares* of one order: the last two free blocks that frees of the lane's left alone, that is, with a buddy in
/// use, and noted. A free notes its block where the lane has not freed just before. They are packed into one word, the
/// last in the low half: the index of each, plus 1. Blocks from unit 2^32 - 1 on are not noted.
///
/// A spare may have been claimed or merged since, so whoever takes one looks at its word. Threads that share a lane may
/// lose spares, or find one twice.
pub(crate) struct Spares<'a, W>(&'a W);

impl<'a, W: Word> Spares<'a, W> {
    /// How many spares of an order are noted.
    pub const MOST: usize = 2;

    #[inline(always)]
    pub const fn new(word: &'a W) -> Self {
        Self(word)
    }

    /// Notes the block at unit `index`, and forgets the one before the last.
    #[inline(always)]
    pub fn note(&self, index: u64) {
        // Relaxed, as the other accesses here: a spare publishes nothing.
        if let Ok(index) = u32::try_from(index + 1) {
            let older = self.0.load(Ordering::Relaxed) << u32::BITS;
            self.0.store(older | u64::from(index), Ordering::Relaxed);
        }
    }

    /// Takes the block noted last, and returns its index.
    #[inline(always)]
    pub fn take(&self) -> Option<u64> {
        let noted = self.0.load(Ordering::Relaxed);
        let index = u64::from(noted as u32).checked_sub(1)?;
        self.0.store(noted >> u32::BITS, Ordering::Relaxed);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn the_last_two_are_taken_the_last_first() {
        let word = AtomicU64::new(0);
        let spares = Spares::new(&word);
        assert_eq!(spares.take(), None);
        [7, 0, u64::from(u32::MAX) - 1].into_iter().for_each(|index| spares.note(index));
        assert_eq!(
            [spares.take(), spares.take(), spares.take()],
            [Some((1 << 32) - 2), Some(0), None]
        );
    }

    #[test]
    fn a_spare_too_far_is_not_noted() {
        let word = AtomicU64::new(0);
        let spares = Spares::new(&word);
        [3, 9, u64::from(u32::MAX), 1 << 39].into_iter().for_each(|index| spares.note(index));
        assert_eq!([spares.take(), spares.take(), spares.take()], [Some(9), Some(3), None]);
    }
}
