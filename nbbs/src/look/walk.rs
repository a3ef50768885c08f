//! The walk: the pieces of an arena, one after the other.

use core::ops::Range;

use super::Look;
use crate::sync::Word;
use crate::word::{self, span};

/// A stretch of the arena, as [`Buddy::walk`](crate::Buddy::walk) reports it.
///
/// ```
/// # use nbbs::Piece;
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// buddy.here().alloc_at(5, 40)?;
/// let mut in_use = 0;
/// buddy.walk(|piece| match piece {
///     Piece::Used { order, .. } => in_use += 1 << order,
///     Piece::Run { len, .. } => in_use += len,
///     _ => {}
/// });
/// assert_eq!(in_use, 40);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// `2^order` free units from unit `index` on, in the largest possible pieces.
    Free {
        /// First unit.
        index: u64,
        /// log2 of the units.
        order: u32,
    },
    /// A block in use.
    Used {
        /// First unit.
        index: u64,
        /// Order of the block.
        order: u32,
    },
    /// A run in use that is not a block.
    Run {
        /// First unit.
        index: u64,
        /// Units.
        len: u64,
    },
    /// `len` units, at most 32, that are never handed out.
    Reserved {
        /// First unit.
        index: u64,
        /// Units.
        len: u64,
    },
}

impl<W: Word> Look<'_, W> {
    /// Calls `visit` for every piece of the arena, in ascending order, without gap or overlap.
    pub fn walk(self, visit: impl FnMut(Piece)) {
        self.walk_in(&(0..self.0.geometry.units()), visit);
    }

    /// Calls `visit` for the free units of a range of the arena, in ascending order, piece by piece.
    pub fn walk_free(self, range: &Range<u64>, mut visit: impl FnMut(Range<u64>)) {
        self.walk_in(range, |piece| {
            if let Piece::Free { index, order } = piece {
                visit(index.max(range.start)..(index + (1 << order)).min(range.end));
            }
        });
    }

    /// Calls `visit` for every piece of which some units lie in a range. A piece may lie in it in part; one in use that
    /// does is cut off at either end.
    fn walk_in(self, range: &Range<u64>, visit: impl FnMut(Piece)) {
        let mut visitor = Visitor { visit, held: None };
        self.walk_word(self.0.geometry.top(), 0, range, &mut visitor);
        visitor.end_run();
    }

    /// Reports the pieces of a word and of the words below its split slots.
    fn walk_word(
        self,
        level: usize,
        idx: u64,
        range: &Range<u64>,
        visitor: &mut Visitor<impl FnMut(Piece)>,
    ) {
        let word = self.0.read(level, idx);
        let codes = self.0.merged_codes(level, idx, word);
        let whole = self.0.geometry.whole_slots(level, idx);
        let free = self.0.free_slots(level, idx, codes);
        let first = idx << W::SHAPE.slots_log2(level);
        let reserved = if level == 0 { self.0.reserved_slots(idx, codes) } else { 0 };
        let log2 = W::SHAPE.slot_order(level);
        let in_word = |slot: u64| slot.saturating_sub(first).min(u64::from(whole)) as u32;
        let end = in_word(range.end.div_ceil(1 << log2));
        let mut slot = in_word(range.start >> log2);
        while slot < end {
            let index = (first | u64::from(slot)) << log2;
            slot += match word::code(codes, slot) {
                word::FREE => {
                    let order = word::largest_at(free, slot);
                    visitor.piece(Piece::Free { index, order: order + log2 });
                    1 << order
                }
                word::SPLIT if level > 0 => {
                    self.walk_word(level - 1, first | u64::from(slot), range, visitor);
                    1
                }
                word::RESERVED if reserved >> (2 * slot) & 1 != 0 => {
                    let len = span::length_from(reserved, slot).min(whole - slot);
                    visitor.piece(Piece::Reserved { index, len: u64::from(len) });
                    len
                }
                word::HEAD if self.0.is_hidden(level, idx, slot) => {
                    visitor.piece(Piece::Reserved { index, len: 1 });
                    1
                }
                code => {
                    let slots = (1 + span::rests_from(codes, slot + 1)).min(whole - slot);
                    visitor.held(index, u64::from(slots) << log2, code == word::REST);
                    slots
                }
            };
        }
        // The last slot of the arena's last word, if the range reaches it.
        if let Some((slot, _)) = self.0.geometry.partial_slot(level, idx)
            && (first | u64::from(slot)) << log2 < range.end
        {
            self.walk_word(level - 1, first | u64::from(slot), range, visitor);
        }
    }
}

/// Joins the pieces of each run, and passes everything on.
struct Visitor<V> {
    visit: V,
    /// First unit and number of units of the run that may continue.
    held: Option<(u64, u64)>,
}

impl<V: FnMut(Piece)> Visitor<V> {
    fn piece(&mut self, piece: Piece) {
        self.end_run();
        (self.visit)(piece);
    }

    /// Handles units in use; if they are `rests`, they belong to the run before.
    fn held(&mut self, index: u64, len: u64, rests: bool) {
        match &mut self.held {
            Some((_, before)) if rests => *before += len,
            _ => {
                self.end_run();
                self.held = Some((index, len));
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((index, len)) = self.held.take() {
            let is_block = len.is_power_of_two() && index & (len - 1) == 0;
            let block = Piece::Used { index, order: len.trailing_zeros() };
            (self.visit)(if is_block { block } else { Piece::Run { index, len } });
        }
    }
}
