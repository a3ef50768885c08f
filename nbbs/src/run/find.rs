//! Finding a place for a run: from one end of a range to the other, guided by bounds.
//!
//! A run of n units contains an aligned block of at least (n + 1) / 2 units, rounded down to a power of two. So the
//! search goes from one free block of that size to the next, descends only where a bound promises one, lowers the bounds
//! that misled it, and looks at the units on both sides of the block.

use core::ops::Range;

use super::{Runs, order_for};
use crate::sync::Word;
use crate::tree::Spot;
use crate::word::{self, span};

/// The run that a search looks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub units: u64,
    /// The power of two of which the first unit plus `offset` must be a multiple.
    pub align: u64,
    /// Smaller than `align`.
    pub offset: u64,
    pub top_down: bool,
}

impl Wanted {
    /// Returns the order of the free block that any such run contains.
    pub fn core(&self) -> u32 {
        (self.units + 1).ilog2() - 1
    }

    /// Returns the order of the smallest block that has room for the run wherever it lies.
    pub fn order_with_room(&self) -> u32 {
        let skip = self.offset.wrapping_neg() & (self.align - 1);
        order_for((skip + self.units).max(self.align))
    }

    /// Returns the last aligned unit up to `unit`.
    fn down(&self, unit: u64) -> Option<u64> {
        ((unit + self.offset) & !(self.align - 1)).checked_sub(self.offset)
    }

    /// Returns the first aligned unit from `unit` on, which may be far outside the arena.
    fn up(&self, unit: u64) -> u64 {
        unit + ((unit + self.offset).wrapping_neg() & (self.align - 1))
    }

    /// Returns where the run can begin in the free units of `range`.
    pub(super) fn fit(&self, range: Range<u64>) -> Option<u64> {
        let start = if self.top_down {
            self.down(range.end.checked_sub(self.units)?)?
        } else {
            self.up(range.start)
        };
        (start >= range.start && start + self.units <= range.end).then_some(start)
    }

    /// Returns what is left of `range` once no run that includes a part of the block at `block` can be claimed.
    fn beyond(&self, range: Range<u64>, block: u64) -> Range<u64> {
        if self.top_down {
            let end = block + (1 << self.core()) - 1;
            let start = end.checked_sub(self.units).and_then(|start| self.down(start));
            range.start..start.map_or(range.start, |start| start + self.units)
        } else {
            self.up(block + 1)..range.end
        }
    }
}

/// A search for a place for a run. It looks at the free blocks of `2^order` units, from one end of `range` to the other.
struct Search {
    wanted: Wanted,
    /// Every place that is looked for contains such a block.
    order: u32,
    /// The units in which the run is to lie.
    range: Range<u64>,
    /// The units whose blocks have not been looked at yet.
    rest: Range<u64>,
    /// How many more pieces are looked at in vain.
    looks: u64,
}

/// Contiguous free units of a word, and the inner word by which they were found, by its level and number.
struct Piece {
    units: Range<u64>,
    below: (usize, u64),
}

impl Search {
    /// Returns the slots of word `idx` of `level` of which some units are still to be looked at, by their low bits.
    fn ahead<W: Word>(&self, level: usize, idx: u64) -> u64 {
        let (first, order) = (W::SHAPE.first_unit(level, idx, 0), W::SHAPE.slot_order(level));
        let slots = |units: u64| word::first_slots(units.min(W::SHAPE.slots(level).into()) as u32);
        let before = slots(self.rest.start.saturating_sub(first) >> order);
        slots(self.rest.end.saturating_sub(first).div_ceil(1 << order)) & !before
    }

    /// Returns the slot of a set, given by their low bits, that is nearest to the end where the search begins.
    fn first_of(&self, set: u64) -> Option<u32> {
        if set == 0 {
            return None;
        }
        Some(if self.wanted.top_down { set.ilog2() / 2 } else { set.trailing_zeros() / 2 })
    }

    /// Returns the first block that is still to be looked at in units that are all free, or the last.
    fn block_in(&self, units: &Range<u64>) -> Option<u64> {
        let (start, end) = (units.start.max(self.rest.start), units.end.min(self.rest.end));
        let size = 1 << self.order;
        let first = if self.wanted.top_down { end.checked_sub(size)? } else { start + size - 1 };
        let block = first & !(size - 1);
        (block >= start && block + size <= end).then_some(block)
    }

    /// Returns where the run can begin in a free block, if that has room for it.
    fn place_in_block(&self, block: u64) -> Option<u64> {
        self.wanted.fit(block..block + (1 << self.order))
    }

    /// Returns the units in which any run lies that contains the block at `block`.
    fn reach(&self, block: u64) -> Range<u64> {
        let from = (block + (1 << self.order)).saturating_sub(self.wanted.units);
        self.range.start.max(from)..self.range.end.min(block + self.wanted.units)
    }

    /// Returns where the run can begin in the units around a block, `free` of which are free, within the block's
    /// [reach](Self::reach). If nowhere, the search goes on behind.
    fn judge(&mut self, block: u64, reach: &Range<u64>, free: Range<u64>) -> Option<u64> {
        let place = self.wanted.fit(free.clone());
        if place.is_none() {
            self.rest = self.wanted.beyond(self.rest.clone(), block);
            // Nothing fits between two units in use, so what lies there need not be looked at again.
            if self.wanted.top_down {
                if free.start > reach.start || reach.start == self.range.start {
                    self.rest.end = self.rest.end.min(free.start);
                }
            } else if free.end < reach.end || reach.end == self.range.end {
                self.rest.start = self.rest.start.max(free.end);
            }
            self.tire();
        }
        place
    }

    /// Counts a look in vain. After the last one nothing is left to look at.
    fn tire(&mut self) {
        self.looks = self.looks.saturating_sub(1);
        if self.looks == 0 {
            self.rest.end = self.rest.start;
        }
    }

    /// Goes on behind the first place, or the last, at `place`, which could not be claimed. The next place, perhaps at
    /// the same block, does not have the unit that was in the way, if that is known.
    fn skip(&mut self, place: u64, in_the_way: Option<u64>) {
        if self.wanted.top_down {
            self.range.end = in_the_way.unwrap_or(place + self.wanted.units - 1);
        } else {
            self.range.start = in_the_way.unwrap_or(place) + 1;
        }
        let Range { start, end } = self.range;
        self.rest = self.rest.start.max(start)..self.rest.end.min(end);
    }
}

impl<W: Word> Runs<'_, W> {
    /// Claims a run in `range`, at a place that contains a free block of `2^order` units, and returns its first unit.
    /// Returns `None` if the search never saw such a place that could be claimed, or has looked around so many blocks in
    /// vain.
    #[cold]
    pub(super) fn claim_in(
        self,
        wanted: Wanted,
        order: u32,
        range: Range<u64>,
        looks: u64,
    ) -> Option<u64> {
        if order > self.geometry().max_order() {
            return None;
        }
        let mut search = Search { wanted, order, rest: range.clone(), range, looks };
        loop {
            let place = self.next_place(self.geometry().top(), 0, &mut search)?;
            let Err(unit) = self.claim_run(place, place + wanted.units) else { return Some(place) };
            if unit.is_none() {
                self.blocks.split_over_all(place);
            }
            search.skip(place, unit);
        }
    }

    /// Finds the next place in or around the free blocks in or below a word.
    fn next_place(self, level: usize, idx: u64, search: &mut Search) -> Option<u64> {
        // Tested here, so that the loop over leaf words does not test each of them.
        if level == 1 {
            self.next_place_below(1, idx, search)
        } else {
            self.next_place_below(level, idx, search)
        }
    }

    #[inline(always)]
    fn next_place_below(self, level: usize, idx: u64, search: &mut Search) -> Option<u64> {
        let slot_order = W::SHAPE.slot_order(level);
        if search.order >= slot_order {
            let codes = self.settled_codes(level, idx);
            return self.next_in_word(level, idx, codes, search);
        }
        let word = self.tree().read(level, idx);
        let codes = word::codes(level, word);
        let need = u64::from(search.order) + 1;
        let promises = word::bound(word) >= need;
        let promising = if promises { word::split_slots(codes) } else { 0 };
        let inside = word::first_slots(self.geometry().slots(level, idx));
        let slots = (word::free_slots(codes) | promising) & inside;
        let mut ahead = slots & search.ahead::<W>(level, idx);
        let mut is_misled = promises && ahead == slots;
        let below = self.tree().below(level, idx);
        while let Some(slot) = search.first_of(ahead) {
            ahead ^= 1 << (2 * slot);
            let place = if word::code(codes, slot) == word::FREE {
                let first = W::SHAPE.first_unit(level, idx, slot);
                let units = first..first + (1 << slot_order);
                self.next_in_piece(Piece { units, below: (level, idx) }, search)
            } else {
                let (child, word) = (W::SHAPE.child(idx, slot), below.read(slot));
                if !below.offers(slot, word, need) {
                    continue;
                }
                is_misled = false;
                if level == 1 {
                    self.next_in_word(0, child, word, search)
                } else {
                    self.next_place(level - 1, child, search)
                }
            };
            if place.is_some() {
                return place;
            }
            let still = search.ahead::<W>(level, idx);
            is_misled &= ahead & !still == 0;
            ahead &= still;
        }
        if is_misled {
            // So that the next search does not look at these words again. The word above waits for it: a free is
            // likely to raise this bound before.
            self.tree().tighten(level, idx);
        }
        None
    }

    /// Returns the codes of a word in which free blocks lie side by side: none of them waits for a merge. What waits
    /// still, or again, as others go on, is judged by the words below.
    fn settled_codes(self, level: usize, idx: u64) -> u64 {
        let mut word = self.tree().read(level, idx);
        if level > 0 && word::bound(word) == word::UNSETTLED {
            self.tree().settle(level, idx);
            word = self.tree().read(level, idx);
        }
        self.tree().merged_codes(level, idx, word)
    }

    /// Finds the next place in or around the free blocks of a word with `codes`, each of one slot or more.
    #[inline]
    fn next_in_word(self, level: usize, idx: u64, codes: u64, search: &mut Search) -> Option<u64> {
        let slot_order = W::SHAPE.slot_order(level);
        let first = W::SHAPE.first_unit(level, idx, 0);
        let unit_of = |slot| first + (u64::from(slot) << slot_order);
        let below = if level == 0 { (1, W::SHAPE.parent(idx).0) } else { (level, idx) };
        let free = self.tree().free_slots(level, idx, codes);
        let mut blocks = word::places(free, search.order - slot_order);
        while let Some(slot) = search.first_of(blocks) {
            let (start, end) = (span::start_to(free, slot), slot + span::length_from(free, slot));
            blocks &= !span::bits(start, end - start);
            // Between two units in use, without a look at what lies around.
            let is_closed = level == 0 && start > 0 && end < W::SHAPE.slots(0);
            if is_closed && u64::from(end - start) < search.wanted.units {
                search.tire();
                continue;
            }
            let piece = Piece { units: unit_of(start)..unit_of(end), below };
            let place = self.next_in_piece(piece, search);
            if place.is_some() {
                return place;
            }
        }
        None
    }

    /// Finds the next place in or around the blocks of a piece.
    fn next_in_piece(self, piece: Piece, search: &mut Search) -> Option<u64> {
        while let Some(block) = search.block_in(&piece.units) {
            let place = search.place_in_block(block).or_else(|| {
                let reach = search.reach(block);
                let free = self.free_around(&piece, &reach);
                search.judge(block, &reach, free)
            });
            if place.is_some() {
                return place;
            }
        }
        None
    }

    /// Returns the free units around a piece in `range`. What ends inside a leaf word ends beside a unit in use.
    fn free_around(self, piece: &Piece, range: &Range<u64>) -> Range<u64> {
        let Range { mut start, mut end } = piece.units;
        let is_open = |unit| W::SHAPE.locate(0, unit).1 == 0;
        let spot = |unit| self.tree().spot_below(piece.below.0, piece.below.1, unit);
        while end < range.end && is_open(end) {
            match self.free_after(end, spot(end)) {
                0 => break,
                free => end += free,
            }
        }
        while start > range.start && is_open(start) {
            match Self::free_before(start, spot(start - 1)) {
                0 => break,
                free => start -= free,
            }
        }
        start.max(range.start)..end.min(range.end)
    }

    /// Returns how many units are free up to `unit`, in the word that describes the one before.
    fn free_before(unit: u64, spot: Spot) -> u64 {
        let free = spot.slot + 1 - span::start_to(word::free_slots(spot.codes), spot.slot);
        let behind = spot.unit::<W>() + (1 << W::SHAPE.slot_order(spot.level));
        unit.saturating_sub(behind - (u64::from(free) << W::SHAPE.slot_order(spot.level)))
    }
}
