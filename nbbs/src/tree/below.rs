//! Reads the words below one inner word, as searches and inspections do, one after the other.

use super::Tree;
use crate::sync::Word;

/// The words below one inner word.
pub(crate) struct Below<'b, W> {
    tree: &'b Tree<'b, W>,
    /// The level of these words.
    level: usize,
    /// The number of the word below slot 0 in its level, and its place.
    first: u64,
    place: usize,
    /// Whether all of them lie wholly inside the arena.
    whole: bool,
}

impl<W: Word> Tree<'_, W> {
    /// Returns the words below word `idx` of inner `level`.
    #[inline]
    pub fn below(&self, level: usize, idx: u64) -> Below<'_, W> {
        let first = W::SHAPE.child(idx, 0);
        let place = self.geometry.place(level - 1, first);
        Below {
            tree: self,
            level: level - 1,
            first,
            place,
            whole: self.geometry.is_whole(level, idx),
        }
    }
}

impl<W: Word> Below<'_, W> {
    /// Reads the word below `slot`.
    #[inline]
    pub fn read(&self, slot: u32) -> u64 {
        self.tree.read_at(self.place(slot))
    }

    /// Returns the place of the word below `slot`.
    #[inline]
    pub fn place(&self, slot: u32) -> usize {
        self.tree.geometry.place_after(self.level, self.place, slot)
    }

    /// [`Tree::offers`], for the word below `slot`, which holds `word`.
    #[inline]
    pub fn offers(&self, slot: u32, word: u64, need: u64) -> bool {
        if self.whole {
            Tree::<W>::offers_if_whole(self.level, word, need)
        } else {
            self.tree.offers(self.level, self.first + u64::from(slot), word, need)
        }
    }

    /// [`Tree::offer`], for the word below `slot`, which holds `word`.
    #[inline]
    pub fn offer(&self, slot: u32, word: u64) -> u64 {
        self.tree.offer(self.level, self.first + u64::from(slot), word)
    }
}
