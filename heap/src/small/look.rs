//! Looking at a row while others use it: what its units are used for, piece by piece.
//!
//! Each word is read once, from the first to the last, and may change before the next is read. What is seen of it stays
//! in order: pieces do not overlap, and no unit is in two. A run that nobody changes meanwhile is seen as it is, as no
//! rest of another can be at its end, at any instant.

use core::fmt;
use core::ops::Range;

use super::codes::{self, Use};
use super::row::Row;
use super::word::Word;

/// What a small heap's memory is used for, in bytes, each unit as it is at some moment of the look.
///
/// A block that is being allocated, freed or resized at that moment counts as in use as far as it has come. Whatever
/// others do meanwhile, `free` is at most `bytes`, `largest_free` at most `free`, and each block has some of the bytes
/// that are not free.
///
/// ```
/// use nbbs_heap::{Small, SmallStats};
/// use std::alloc::Layout;
///
/// static HEAP: Small<{ 16 << 10 }> = Small::new();
///
/// let before: SmallStats = HEAP.stats();
/// assert_eq!((before.blocks, before.largest_free), (0, before.bytes));
/// assert!(HEAP.alloc(Layout::new::<[u8; 100]>()).is_some());
/// let after = HEAP.stats();
/// assert_eq!((after.blocks, after.free), (1, before.free - 128)); // four units
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmallStats {
    /// The memory that the heap can hand out, without the bookkeeping.
    pub bytes: usize,
    /// Units that are free.
    pub free: usize,
    /// The most bytes that are free in one piece.
    pub largest_free: usize,
    /// Blocks in use.
    pub blocks: usize,
}

/// One line, in bytes.
///
/// ```
/// use nbbs_heap::Small;
/// use std::alloc::Layout;
///
/// static HEAP: Small<{ 16 << 10 }> = Small::new();
///
/// assert!(HEAP.alloc(Layout::new::<[u8; 100]>()).is_some());
/// let said = HEAP.stats().to_string();
/// assert!(said.ends_with("; blocks in use: 1"), "{said}");
/// ```
impl fmt::Display for SmallStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, free, largest_free, blocks } = self;
        write!(
            f,
            "{bytes} bytes: {free} free; largest free piece {largest_free}; blocks in use: {blocks}"
        )
    }
}

impl SmallStats {
    /// What a row of units of `unit` bytes is used for.
    pub(super) fn of<W: Word>(row: &Row<'_, W>, unit: usize) -> Self {
        let (bytes, free, largest_free, blocks) = (row.units * unit, 0, 0, 0);
        let mut stats = Self { bytes, free, largest_free, blocks };
        row.walk(|used_for, units| match used_for {
            Use::Free => {
                let free = units.len() * unit;
                stats.free += free;
                stats.largest_free = stats.largest_free.max(free);
            }
            Use::Run => stats.blocks += 1,
            Use::Rests => {}
        });
        stats
    }
}

impl<W: Word> Row<'_, W> {
    /// Calls `visit` for each piece of the row, in order: each run, and what is free between them. Cost: a load for
    /// each word.
    pub fn walk(&self, mut visit: impl FnMut(Use, Range<usize>)) {
        let (mut used_for, mut piece) = (Use::Free, 0..0);
        for idx in 0..self.words.len() {
            let word = self.read(idx);
            let first = idx * W::UNITS as usize;
            let end = self.units.min(first + W::UNITS as usize);
            while piece.end < end {
                let (next, count) = codes::first_use(word, (piece.end - first) as u32);
                let goes_on = match next {
                    Use::Free => used_for == Use::Free,
                    Use::Rests => used_for != Use::Free,
                    Use::Run => false,
                };
                if !goes_on {
                    if !piece.is_empty() {
                        visit(used_for, piece.clone());
                    }
                    (used_for, piece.start) = (next, piece.end);
                }
                piece.end = end.min(piece.end + count as usize);
            }
        }
        visit(used_for, piece);
    }
}
