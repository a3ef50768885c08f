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
        let mut visitor = Visitor { visit, held: None };
        self.walk_word(self.0.geometry.top(), 0, &mut visitor);
        visitor.end_run();
    }

    /// Reports the pieces of a word and of the words below its split slots.
    fn walk_word(self, level: usize, idx: u64, visitor: &mut Visitor<impl FnMut(Piece)>) {
        let word = self.0.read(level, idx);
        let codes = self.0.merged_codes(level, idx, word);
        let whole = self.0.geometry.whole_slots(level, idx);
        let free = self.0.free_slots(level, idx, codes);
        let first = idx << W::SHAPE.slots_log2(level);
        let reserved = if level == 0 { self.0.reserved_slots(idx, codes) } else { 0 };
        let mut slot = 0;
        while slot < whole {
            let index = (first | u64::from(slot)) << W::SHAPE.slot_order(level);
            slot += match word::code(codes, slot) {
                word::FREE => {
                    let order = word::largest_at(free, slot);
                    visitor.piece(Piece::Free { index, order: order + W::SHAPE.slot_order(level) });
                    1 << order
                }
                word::SPLIT if level > 0 => {
                    self.walk_word(level - 1, first | u64::from(slot), visitor);
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
                    visitor.held(
                        index,
                        u64::from(slots) << W::SHAPE.slot_order(level),
                        code == word::REST,
                    );
                    slots
                }
            };
        }
        if let Some((slot, _)) = self.0.geometry.partial_slot(level, idx) {
            self.walk_word(level - 1, first | u64::from(slot), visitor);
        }
    }
}

impl<W: Word> Look<'_, W> {
    /// Calls `visit` for the free units of a range of the arena, in ascending order, piece by piece.
    pub fn walk_free(self, range: &Range<u64>, visit: &mut impl FnMut(Range<u64>)) {
        self.walk_free_word(self.0.geometry.top(), 0, range, visit);
    }

    /// Reports those of a word and of the words below its split slots.
    fn walk_free_word(
        self,
        level: usize,
        idx: u64,
        range: &Range<u64>,
        visit: &mut impl FnMut(Range<u64>),
    ) {
        let codes = self.0.merged_codes(level, idx, self.0.read(level, idx));
        let free = self.0.free_slots(level, idx, codes);
        let (log2, first) = (W::SHAPE.slot_order(level), idx << W::SHAPE.slots_log2(level));
        let beyond = range.end.div_ceil(1 << log2).saturating_sub(first);
        let end = beyond.min(u64::from(self.0.geometry.whole_slots(level, idx))) as u32;
        let mut slot = (range.start >> log2).saturating_sub(first).min(u64::from(end)) as u32;
        while slot < end {
            let mut slots = 1;
            match word::code(codes, slot) {
                word::FREE => {
                    slots <<= word::largest_at(free, slot);
                    let index = (first | u64::from(slot)) << log2;
                    let units = u64::from(slots) << log2;
                    visit(index.max(range.start)..(index + units).min(range.end));
                }
                word::SPLIT if level > 0 => {
                    self.walk_free_word(level - 1, first | u64::from(slot), range, visit);
                }
                _ => {}
            }
            slot += slots;
        }
        if let Some((slot, _)) = self.0.geometry.partial_slot(level, idx) {
            let index = (first | u64::from(slot)) << log2;
            if range.start < index + (1 << log2) && index < range.end {
                self.walk_free_word(level - 1, first | u64::from(slot), range, visit);
            }
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
