//! The protocol: the words of an arena, and the only ways in which they change.
//!
//! ```text
//! step      the transitions, by name: each is one compare-and-swap of one word
//! below     reads the words below one word
//! climb     splits the slots above a claim
//! inspect   looks at the words below: merges what is empty, keeps the bounds honest
//! spot      finds the slot that describes a unit
//! ```
//!
//! Nothing here knows lanes or runs. DESIGN.md at the root of the repository explains the protocol and why it is safe.

mod below;
mod climb;
mod inspect;
mod spot;
mod step;

use crate::error::MetadataError;
use crate::layout::geometry::{Geometry, LANE_WORDS};
use crate::sync::{AFTER_FENCE, BETWEEN_FENCES, Ordering, Word};
use crate::word;
pub(crate) use spot::Spot;
pub(crate) use step::At;

/// The words of an arena.
pub(crate) struct Tree<'a, W> {
    words: &'a [W],
    /// All up to the last leaf word that lies wholly inside the arena.
    to_whole_leaves: &'a [W],
    epoch: &'a W,
    pub geometry: Geometry<W>,
}

copy!(Tree<'_, W>);

/// The words in which a lane keeps its notes.
pub(crate) type LaneWords<W> = [W; LANE_WORDS];

impl<'a, W: Word> Tree<'a, W> {
    /// Creates the tree of `units` units over `words`, and returns it with the lanes' words.
    pub const fn new(
        words: &'a [W],
        units: u64,
    ) -> Result<(Self, &'a [LaneWords<W>]), MetadataError> {
        match Geometry::<W>::new(units) {
            Ok(geometry) if words.len() >= geometry.words() => {
                let (lanes, rest) = words.split_at(geometry.epoch());
                let (to_whole_leaves, _) = words.split_at(geometry.whole_leaves_end());
                let tree = Self { words, to_whole_leaves, epoch: &rest[0], geometry };
                Ok((tree, lanes.as_chunks().0))
            }
            Ok(geometry) => {
                Err(MetadataError::TooShort { words: words.len(), needed: geometry.words() })
            }
            Err(error) => Err(error),
        }
    }

    /// Reads word `idx` of `level`.
    #[inline(always)]
    pub fn read(&self, level: usize, idx: u64) -> u64 {
        self.read_at(self.geometry.place(level, idx))
    }

    /// Reads the word that stands at `place` in the metadata.
    #[inline(always)]
    fn read_at(&self, place: usize) -> u64 {
        // The read of a pair "write one word, then read another"; DESIGN.md lists both ends. It acquires what the
        // transitions released.
        self.words[place].load(AFTER_FENCE)
    }

    /// The word that stands at `place` in the metadata.
    #[inline(always)]
    pub fn at(&self, place: usize) -> Option<At<'a, W>> {
        self.words.get(place).map(At::new)
    }

    /// The leaf word that stands at `place` in the metadata, if all its units are inside the arena.
    #[inline(always)]
    pub fn whole_leaf_at(&self, place: usize) -> Option<At<'a, W>> {
        self.to_whole_leaves.get(place).map(At::new)
    }

    fn word(&self, level: usize, idx: u64) -> At<'a, W> {
        At::new(&self.words[self.geometry.place(level, idx)])
    }

    /// Returns the epoch: a number that every inspection above level 1 changes.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        // Relaxed where there are fences: the caller has one before this load, and before a look at the path one after
        // it. Pairs with the increment in `end_epoch`. After a claim or a clear: an inspection that has not incremented
        // the epoch yet reads that claim or clear later. Before a look at the path: a mark that the look misses
        // increments it later. What a noted epoch publishes, the reader of the note has acquired with the note.
        self.epoch.load(BETWEEN_FENCES)
    }

    /// Ends the epoch: no path seen before may be trusted any longer.
    fn end_epoch(&self) {
        // SeqCst: after the caller's mark, before its reads. Pairs with the load in `epoch`.
        let old = self.epoch.load(Ordering::SeqCst);
        let new = old.wrapping_add(1);
        // If it fails, somebody else has ended the epoch after the caller's mark.
        let _ = self.epoch.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns the word that counts undone claims. It is on the epoch's line, as it changes no more often.
    fn undone_word(&self) -> &'a W {
        &self.words[self.geometry.epoch() + 1]
    }

    /// Returns how many claims were undone, modulo 2^64; several counted at the same time may count as one.
    pub fn undone(&self) -> u64 {
        // SeqCst: before and after the caller's look at a claim. Pairs with the accesses in `count_undone`.
        self.undone_word().load(Ordering::SeqCst)
    }

    /// Counts a claim that the caller has undone, so that the number has changed.
    pub fn count_undone(&self) {
        // SeqCst: after the claim was cleared. A caller that then still sees the claim has read the count before this
        // does.
        let word = self.undone_word();
        let seen = word.load(Ordering::SeqCst);
        let next = seen.wrapping_add(1);
        // If it fails, somebody else has counted since, which is just as good.
        let _ = word.compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns what a word can offer: the largest order of a free block in it or below it, plus 1; 0 for none;
    /// [`word::UNSETTLED`] if a merge below might make more. It is never too little, sometimes too much.
    pub fn offer(&self, level: usize, idx: u64, word: u64) -> u64 {
        let codes = word::codes(level, word);
        let whole = word::largest(self.free_slots(level, idx, codes))
            .map_or(0, |log2| u64::from(log2 + W::SHAPE.slot_order(level) + 1));
        if level == 0 {
            return whole;
        }
        let below = if word::split_slots(codes) == 0 { 0 } else { word::bound(word) };
        let partial = self.free_partial_slot(level, idx, codes);
        let part = partial.map_or(0, |(_, order)| u64::from(order + 1));
        whole.max(below).max(part)
    }

    /// Returns whether a word can offer `need`, which is not 0. This is cheaper than finding [how much](Self::offer) it
    /// can offer.
    #[inline(always)]
    pub fn offers(&self, level: usize, idx: u64, word: u64, need: u64) -> bool {
        Self::offers_if_whole(level, word, need)
            && (self.geometry.is_whole(level, idx) || self.offer(level, idx, word) >= need)
    }

    /// [`offers`](Self::offers) for a word that lies wholly inside the arena. For another it may return `true` wrongly.
    #[inline]
    fn offers_if_whole(level: usize, word: u64, need: u64) -> bool {
        let codes = word::codes(level, word);
        if level > 0 && word::bound(word) >= need && word::split_slots(codes) != 0 {
            return true;
        }
        let log2 = (need as u32 - 1).saturating_sub(W::SHAPE.slot_order(level));
        let free = word::free_slots(codes)
            & if level == 0 {
                const { word::first_slots(W::SHAPE.slots(0)) }
            } else {
                const { word::first_slots(W::SHAPE.slots(1)) }
            };
        // Most words have nothing free.
        free != 0 && log2 <= W::SHAPE.slots_log2(level) && word::places(free, log2) != 0
    }

    /// Returns the split slots of an inner word, by their low bits.
    pub fn split_slots(&self, level: usize, idx: u64, codes: u64) -> u64 {
        word::split_slots(codes) & word::first_slots(self.geometry.slots(level, idx))
    }

    /// Returns the free slots of a word that are wholly inside the arena, by their low bits.
    pub fn free_slots(&self, level: usize, idx: u64, codes: u64) -> u64 {
        word::free_slots(codes) & word::first_slots(self.geometry.whole_slots(level, idx))
    }

    /// Returns the slot of an inner word that is only partly inside the arena, if it is free, and the order of the
    /// largest block there.
    pub fn free_partial_slot(&self, level: usize, idx: u64, codes: u64) -> Option<(u32, u32)> {
        let partial = self.geometry.partial_slot(level, idx);
        partial.filter(|&(slot, _)| word::code(codes, slot) == word::FREE)
    }

    /// Writes every word as it is in an empty arena. Nobody else may be using them.
    pub fn clear_all(&self) {
        for word in &self.words[..self.geometry.words()] {
            // Relaxed: whoever shares the arena with other threads orders these stores too.
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Writes every word as it is in an arena in which everything is reserved. Nobody else may be using them.
    pub fn reserve_all(&self) {
        self.clear_all();
        for level in 0..=self.geometry.top() {
            for idx in 0..self.geometry.words_of(level) {
                let all = word::first_slots(self.geometry.slots(level, idx));
                // Code 01: reserved in a leaf word, split in an inner one.
                // Relaxed: as in `clear_all`.
                self.words[self.geometry.place(level, idx)].store(all, Ordering::Relaxed);
            }
        }
    }

    /// Finds the first word that pads a level or lies beyond its last slot and is not zero.
    pub fn first_foreign_word(&self) -> Option<usize> {
        (0..=self.geometry.top()).find_map(|level| {
            let last = self.geometry.words_of(level) - 1;
            let slots = self.geometry.slots(level, last);
            let inside = word::both_bits(word::first_slots(slots));
            let stray = word::codes(level, self.read(level, last)) & !inside != 0;
            let foreign = |&place: &usize| self.read_at(place) != 0;
            let last = self.geometry.place(level, last);
            stray.then_some(last).or_else(|| self.geometry.padding(level).find(foreign))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn a_word_offers_whatever_is_no_more_than_its_offer() {
        for units in [1, 32, 33, 600, 9000, 1 << 18] {
            let words = Geometry::<AtomicU64>::new(units).unwrap().words();
            let words: std::vec::Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
            let (tree, _) = Tree::new(&words, units).unwrap();
            for level in 0..=tree.geometry.top() {
                let last = tree.geometry.words_of(level) - 1;
                let (first, last) = ((level, 0), (level, last));
                (0..20_000).for_each(|number| agree(&tree, number, &[first, last]));
            }
        }
    }

    /// Checks one word, drawn by `number`, with the codes that it may have at each of `places`.
    fn agree(tree: &Tree<'_, AtomicU64>, number: u64, places: &[(usize, u64)]) {
        let mix =
            |by: u64| (number + by).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(by as u32);
        let in_use = [mix(17), mix(29) | mix(41), mix(37) & mix(11), 0][number as usize % 4];
        for &(level, idx) in places {
            let inside = word::both_bits(word::first_slots(tree.geometry.slots(level, idx)));
            let rest = if level == 0 { 0 } else { mix(23) & !word::codes(1, u64::MAX) };
            let word = word::codes(level, in_use) & inside | rest;
            let offer = tree.offer(level, idx, word);
            for need in 1..=word::UNSETTLED + 1 {
                let offers = tree.offers(level, idx, word, need);
                assert_eq!(offers, offer >= need, "{level} {idx} {word:#x}: {need}, {offer}");
            }
        }
    }
}
