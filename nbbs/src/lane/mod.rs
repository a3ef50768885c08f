//! What a lane remembers of an arena, to find its way with fewer loads.
//!
//! ```text
//! notes     the words of one lane, and what is packed into them
//! path      the way up from a word, as the lane last saw it
//! ```

mod notes;
mod path;

use crate::error::MetadataError;
use crate::layout::geometry::Geometry;
use crate::sync::Word;
use crate::tree::{LaneWords, Tree};
pub(crate) use notes::Notes;
pub(crate) use path::Path;

/// An arena: its tree, and the notes of its lanes.
#[derive(Debug)]
pub(crate) struct Arena<'a, W> {
    pub tree: Tree<'a, W>,
    lanes: &'a [LaneWords<W>],
}

impl<W> Clone for Arena<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Arena<'_, W> {}

impl<'a, W: Word> Arena<'a, W> {
    /// The arena of `units` units over `words`.
    pub const fn new(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        match Tree::new(words, units) {
            Ok((tree, lanes)) => Ok(Self { tree, lanes }),
            Err(error) => Err(error),
        }
    }
}

/// An arena as seen from one lane.
#[derive(Debug)]
pub(crate) struct OnLane<'b, W> {
    pub arena: &'b Arena<'b, W>,
    /// The lane, any number.
    pub number: usize,
}

impl<W> Clone for OnLane<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for OnLane<'_, W> {}

impl<'b, W: Word> OnLane<'b, W> {
    #[inline(always)]
    pub fn tree(self) -> &'b Tree<'b, W> {
        &self.arena.tree
    }

    #[inline(always)]
    pub fn geometry(self) -> &'b Geometry<W> {
        &self.arena.tree.geometry
    }

    /// What the lane remembers.
    #[inline(always)]
    pub fn notes(self) -> Notes<'b, W> {
        let lanes = self.arena.lanes;
        // There is one lane at least, and as many as a power of two.
        Notes::new(&lanes[self.number & (lanes.len() - 1)])
    }

    /// The word of `level` from which the lane starts.
    #[inline(always)]
    pub fn home(self, level: usize) -> u64 {
        self.geometry().home(self.number, level)
    }

    /// The word in which the lane claims a block of `order` first.
    pub fn cursor(self, order: u32) -> u64 {
        let level = W::SHAPE.level_of(order);
        self.notes()
            .cursor(order)
            .filter(|&idx| idx < self.geometry().words_of(level))
            .unwrap_or_else(|| self.home(level))
    }

    /// Remembers what was left in word `idx` of `level`, if it was changed.
    pub fn noted<T>(self, level: usize, idx: u64, changed: Option<(u64, T)>) -> Option<(u64, T)> {
        if let Some((left, _)) = &changed {
            self.notes().note(self.geometry().place(level, idx), *left);
        }
        changed
    }
}
