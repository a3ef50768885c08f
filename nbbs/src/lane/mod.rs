//! What a lane remembers of an arena, so that its operations take fewer loads.
//!
//! ```text
//! notes     the words of one lane, and what is packed into them
//! spares    where free blocks of one order lie, as the lane remembers
//! path      the path above a word, as the lane last saw it
//! ```

mod notes;
mod path;
mod spares;

use core::ptr;

use crate::error::MetadataError;
use crate::layout::geometry::{Geometry, LANE_WORDS};
use crate::sync::{Ordering, Word};
use crate::tree::{LaneWords, Tree};
pub(crate) use notes::Notes;
pub(crate) use path::{Path, PathAbove};

/// The cursor of a lane that does not begin anywhere, but searches, for orders of one level. No word has this number.
pub(crate) const NOWHERE: u64 = u64::MAX - 1;

/// An arena: its tree, and the notes of its lanes.
pub(crate) struct Arena<'a, W> {
    pub tree: Tree<'a, W>,
    lanes: &'a [LaneWords<W>],
}

copy!(Arena<'_, W>);

impl<'a, W: Word> Arena<'a, W> {
    /// Creates the arena of `units` units over `words`.
    pub const fn new(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        match Tree::new(words, units) {
            Ok((tree, lanes)) => Ok(Self { tree, lanes }),
            Err(error) => Err(error),
        }
    }

    /// Returns the same arena with fresh lanes in `words`: the largest power of two for which there is room. Without
    /// any words it keeps its own.
    pub fn with_lanes(self, words: &'a [W]) -> Result<Self, MetadataError> {
        if words.is_empty() {
            return Ok(self);
        }
        let (lanes, _) = words.as_chunks();
        let Some(log2) = lanes.len().checked_ilog2() else {
            return Err(MetadataError::LanesTooShort { words: words.len(), needed: LANE_WORDS });
        };
        let lanes = &lanes[..1 << log2];
        // Relaxed: zeros publish nothing. Notes of another arena must not be trusted. A lane in use that reads a note
        // of which one word is cleared trusts it no more than any other half of a note.
        lanes.as_flattened().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        Ok(Self { lanes, ..self })
    }

    /// Returns the number of lanes: a power of two.
    pub const fn lanes(&self) -> usize {
        self.lanes.len()
    }
}

/// An arena as seen from one lane.
pub(crate) struct OnLane<'b, W> {
    arena: &'b Arena<'b, W>,
    /// The words of the lane: one of the arena's. They are found once, not in each of the functions that follow.
    words: &'b LaneWords<W>,
}

copy!(OnLane<'_, W>);

impl<'b, W: Word> OnLane<'b, W> {
    /// Returns the arena as seen from lane `number`, which may be any number.
    #[inline(always)]
    pub const fn new(arena: &'b Arena<'b, W>, number: usize) -> Self {
        // There is at least one lane, and their number is a power of two.
        Self { arena, words: &arena.lanes[number & (arena.lanes() - 1)] }
    }

    #[inline(always)]
    pub const fn tree(self) -> &'b Tree<'b, W> {
        &self.arena.tree
    }

    #[inline(always)]
    pub const fn geometry(self) -> &'b Geometry<W> {
        &self.arena.tree.geometry
    }

    /// Returns the lane's notes.
    #[inline(always)]
    pub fn notes(self) -> Notes<'b, W> {
        Notes::new(self.words)
    }

    /// Returns the lane's number, below that of the arena's lanes.
    pub fn number(self) -> usize {
        let offset = ptr::from_ref(self.words).addr() - self.arena.lanes.as_ptr().addr();
        offset / size_of::<LaneWords<W>>()
    }

    /// Returns the word of `level` from which the lane starts: lanes are spread over the arena, the first few as far
    /// apart as possible.
    pub fn home(self, level: usize) -> u64 {
        let lanes = self.arena.lanes();
        let place = reversed(self.number(), lanes) as u64;
        (place * self.geometry().words_of(level)) >> lanes.trailing_zeros()
    }

    /// Returns the lane whose [`home`](Self::home) is the last at or before word `idx` of `level`.
    fn at_home(self, level: usize, idx: u64) -> usize {
        let (lanes, words) = (self.arena.lanes(), self.geometry().words_of(level));
        // Avoids a division, which is a function call on targets without one of 64 bits.
        let (mut place, mut half) = (0, lanes / 2);
        while half > 0 {
            if ((place + half) as u64 * words) >> lanes.trailing_zeros() <= idx {
                place += half;
            }
            half /= 2;
        }
        reversed(place, lanes)
    }

    /// Returns the word near which the lane looks for a block of `order`.
    pub fn cursor(self, order: u32) -> u64 {
        self.begin(order).unwrap_or_else(|| self.home(W::SHAPE.level_of(order)))
    }

    /// Returns the word in which the lane first tries to claim a block of `order`; `None` if it is to search for one.
    pub fn begin(self, order: u32) -> Option<u64> {
        let level = W::SHAPE.level_of(order);
        match self.notes().cursor(order) {
            Some(idx) => (idx < self.geometry().words_of(level)).then_some(idx),
            None => Some(self.home(level)),
        }
    }

    /// Notes that word `idx`, where the lane tried to claim a block of `order`, lies below somebody's block. Where it
    /// began there, it searches the next time: a search does not look below blocks, and a lane that is refused again
    /// and again should not claim there, and undo that, each time.
    pub fn leave(self, order: u32, idx: u64) {
        if self.begin(order) == Some(idx) {
            self.notes().set_cursor(order, NOWHERE);
        }
    }

    /// Returns the word half an area from leaf word `idx`, in the standard shape on another cache line. Across from an
    /// inner word there is none: whole frames lie there, which may be another lane's.
    pub fn across(self, level: usize, idx: u64) -> Option<u64> {
        let across = W::SHAPE.across(idx);
        (level == 0 && across < self.geometry().words_of(0)).then_some(across)
    }

    /// Returns whether the lane that is at home at word `idx` of `level` claims blocks of `order` there, or
    /// [across](Self::across) from it, and so is about to fill the word again. This is a hint.
    pub fn is_another_at_work(self, level: usize, idx: u64, order: u32) -> bool {
        let other = Self::new(self.arena, self.at_home(level, idx));
        other
            .notes()
            .cursor(order)
            .is_some_and(|at| at == idx || self.across(level, at) == Some(idx))
    }

    /// Notes what was left in word `idx` of `level`, if it was changed.
    pub fn noted<T>(self, level: usize, idx: u64, changed: Option<(u64, T)>) -> Option<(u64, T)> {
        if let Some((left, _)) = &changed {
            self.notes().note(self.geometry().place(level, idx), *left);
        }
        changed
    }
}

/// Returns a number below `lanes`, a power of two, with its bits in reverse.
const fn reversed(number: usize, lanes: usize) -> usize {
    // Shifted by one first, as a single lane has no bits to reverse.
    (number << 1).reverse_bits() >> (usize::BITS - 1 - lanes.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn a_lane_is_at_home_where_it_starts() {
        for units in [1, 33, 4096, 20_000, 1 << 18] {
            let geometry = Geometry::<AtomicU64>::new(units).unwrap();
            let words: std::vec::Vec<_> =
                (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
            let more: std::vec::Vec<_> = (0..256 * LANE_WORDS).map(|_| AtomicU64::new(0)).collect();
            let arena = Arena::new(&words, units).unwrap();
            for arena in [arena, arena.with_lanes(&more).unwrap()] {
                let lane = |number| OnLane::new(&arena, number);
                for level in 0..=geometry.top() {
                    let homes = (0..arena.lanes()).map(|number| (lane(number).home(level), number));
                    for idx in 0..geometry.words_of(level) {
                        let nearest =
                            homes.clone().filter(|home| home.0 <= idx).map(|home| home.0).max();
                        let at_home = lane(0).at_home(level, idx);
                        assert_eq!(
                            Some(lane(at_home).home(level)),
                            nearest,
                            "{units} {level} {idx}"
                        );
                    }
                }
            }
        }
    }
}
