//! Finding a place for a run: from one end of a range to the other, guided by bounds.
//!
//! A run of n units contains an aligned block of at least (n + 1) / 2 units, rounded down to a power of two. So the
//! search goes from one free block of that size to the next, descends only where a bound promises one, lowers the bounds
//! that misled it, and looks at the units on both sides of the block.

use core::ops::Range;

use super::Runs;
use crate::sync::Word;
use crate::word::{self, span};

/// The run that a search looks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub units: u64,
    /// The power of two of which the first unit must be a multiple, when `offset` is added. That is smaller.
    pub align: u64,
    pub offset: u64,
    pub top_down: bool,
}

impl Wanted {
    /// Returns the order of the free block that any such run contains.
    fn core(&self) -> u32 {
        (self.units + 1).ilog2() - 1
    }

    /// Returns the last aligned unit up to `unit`.
    fn down(&self, unit: u64) -> Option<u64> {
        ((unit + self.offset) & !(self.align - 1)).checked_sub(self.offset)
    }

    /// Returns the first aligned unit from `unit` on.
    fn up(&self, unit: u64) -> u64 {
        ((unit + self.offset + self.align - 1) & !(self.align - 1)) - self.offset
    }

    /// Returns where the run can begin in the free units of `range`.
    fn fit(&self, range: Range<u64>) -> Option<u64> {
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

/// A search for a free block of `2^order` units in `range`, for a run: the first one, or, top down, the last. It passes
/// over those for which a leaf word and those beside it show that there is no room for the run.
struct Sought<'r> {
    wanted: Wanted,
    order: u32,
    range: &'r Range<u64>,
}

impl Sought<'_> {
    /// Returns whether a block at `unit` lies in the range.
    fn admits(&self, unit: u64) -> bool {
        unit >= self.range.start && unit + (1 << self.order) <= self.range.end
    }

    /// Returns whether some of `units` lie in the range.
    fn meets(&self, units: &Range<u64>) -> bool {
        units.start < self.range.end && units.end > self.range.start
    }

    /// Iterates over the slots of a set, given by their low bits, from the end where the search begins.
    fn slots_in_order(&self, mut set: u64) -> impl Iterator<Item = u32> + use<> {
        let top_down = self.wanted.top_down;
        core::iter::from_fn(move || {
            let bit = if top_down {
                63_u32.checked_sub(set.leading_zeros())
            } else {
                Some(set.trailing_zeros())
            };
            let bit = bit.filter(|&bit| bit < 64)?;
            set ^= 1 << bit;
            Some(bit / 2)
        })
    }

    /// Returns the first such block in units that are all free, or the last.
    fn in_free(&self, units: Range<u64>) -> Option<u64> {
        let (start, end) = (units.start.max(self.range.start), units.end.min(self.range.end));
        let size = 1_u64 << self.order;
        let number = if self.wanted.top_down {
            end.checked_sub(size)? >> self.order
        } else {
            start.div_ceil(size)
        };
        let block = number << self.order;
        (block >= start && block + size <= end).then_some(block)
    }
}

impl<W: Word> Runs<'_, W> {
    /// Claims a run in `range` and returns its first unit. Returns `None` if the search never saw a place that could be
    /// claimed.
    #[cold]
    pub(super) fn claim_in(self, wanted: Wanted, mut range: Range<u64>) -> Option<u64> {
        let mut rest = range.clone();
        while rest.start < rest.end {
            let order = wanted.core();
            let sought = Sought { wanted, order, range: &rest };
            let block = self.next_block(self.geometry().top(), 0, &sought)?;
            // Any run that contains the block lies in these units.
            let from = range.start.max((block + (1 << order)).saturating_sub(wanted.units));
            let to = range.end.min(block + wanted.units);
            let free = self.free_around(block, from..to);
            if let Some(start) = wanted.fit(free.clone()) {
                let end = start + wanted.units;
                let Err(unit) = self.claim_run(start, end) else { return Some(start) };
                if unit.is_none() {
                    self.blocks.split_over_all(start);
                }
                // The next place, perhaps at the same block, does not have the unit that was in the way.
                if wanted.top_down {
                    range.end = unit.unwrap_or(end - 1);
                } else {
                    range.start = unit.unwrap_or(start) + 1;
                }
                rest = rest.start.max(range.start)..rest.end.min(range.end);
                continue;
            }
            rest = wanted.beyond(rest, block);
            if wanted.top_down {
                // Nothing fits between two units in use, so what lies there need not be looked at again.
                if free.start > from || from == range.start {
                    rest.end = rest.end.min(free.start);
                }
            } else if free.end < to || to == range.end {
                rest.start = rest.start.max(free.end);
            }
        }
        None
    }

    /// Claims a run at the beginning of a free block of `order` that has room for it.
    pub(super) fn claim_in_block(self, units: u64, order: u32, range: &Range<u64>) -> Option<u64> {
        if order > self.geometry().max_order() {
            return None;
        }
        let wanted = Wanted { units, align: 1, offset: 0, top_down: false };
        let sought = Sought { wanted, order, range };
        let block = self.next_block(self.geometry().top(), 0, &sought)?;
        self.claim_run(block, block + units).ok().map(|()| block)
    }

    /// Finds the next free block that matches `sought`, in or below a word.
    fn next_block(self, level: usize, idx: u64, sought: &Sought) -> Option<u64> {
        if level == 0 {
            return self.next_in_leaf(idx, sought);
        }
        if level <= W::SHAPE.level_of(sought.order) {
            // Free blocks that wait for a merge do not lie side by side in the word. Each failure is somebody else's
            // completed change.
            while !self.tree().settle(level, idx) {}
        }
        let slot_order = W::SHAPE.slot_order(level);
        let word = self.tree().read(level, idx);
        let codes = word::codes(level, word);
        let unit_of = |slot| W::SHAPE.first_unit(level, idx, slot);
        if sought.order >= slot_order {
            let free = self.tree().free_slots(level, idx, codes);
            let places = word::places(free, sought.order - slot_order);
            return sought.slots_in_order(places).map(unit_of).find(|&unit| sought.admits(unit));
        }
        let need = u64::from(sought.order) + 1;
        let promises = word::bound(word) >= need;
        let promising = if promises { word::split_slots(codes) } else { 0 };
        let slots =
            (word::free_slots(codes) | promising) & word::first_slots(W::SHAPE.slots(level));
        let below = self.tree().below(level, idx);
        let mut is_misled = promises;
        let found = sought.slots_in_order(slots).find_map(|slot| {
            let units = unit_of(slot)..unit_of(slot) + (1 << slot_order);
            if !sought.meets(&units) {
                is_misled = false;
                None
            } else if word::code(codes, slot) == word::FREE {
                sought.in_free(units)
            } else if below.offers(slot, below.read(slot), need) {
                is_misled = false;
                self.next_block(level - 1, W::SHAPE.child(idx, slot), sought)
            } else {
                None
            }
        });
        if is_misled && found.is_none() {
            // So that the next search does not look at these words again. The word above waits for it: a free is
            // likely to raise this bound before.
            self.tree().tighten(level, idx);
        }
        found
    }

    /// Finds the next free block that matches `sought` in a leaf word.
    #[inline]
    fn next_in_leaf(self, idx: u64, sought: &Sought) -> Option<u64> {
        let first = W::SHAPE.first_unit(0, idx, 0);
        let free = self.tree().free_slots(0, idx, self.tree().read(0, idx));
        let mut blocks = word::places(free, sought.order);
        while let Some(slot) = sought.slots_in_order(blocks).next() {
            let unit = first + u64::from(slot);
            if !sought.admits(unit) {
                blocks ^= 1 << (2 * slot);
                continue;
            }
            let (start, len) = (span::start_to(free, slot), span::length_from(free, slot));
            let piece = first + u64::from(start)..unit + u64::from(len);
            if self.may_have_room(&sought.wanted, idx, piece) {
                return Some(unit);
            }
            blocks &= !span::bits(start, slot + len - start);
        }
        None
    }

    /// Returns whether the run may lie in the free units of which `piece` is the part in leaf word `idx`, or, for a run
    /// that is more aligned than the word, whether the search should look for the next aligned place.
    #[inline]
    fn may_have_room(self, wanted: &Wanted, idx: u64, piece: Range<u64>) -> bool {
        if wanted.fit(piece.clone()).is_some() {
            return true;
        }
        let slots = u64::from(W::SHAPE.slots(0));
        let first = W::SHAPE.first_unit(0, idx, 0);
        let begins_before = piece.start == first && idx > 0;
        let ends_behind = piece.end == first + slots && idx + 1 < self.geometry().words_of(0);
        let with = |before: u64, behind: u64| {
            wanted.fit(piece.start.saturating_sub(before)..piece.end + behind).is_some()
        };
        let most = |is_open: bool| if is_open { wanted.units } else { 0 };
        if !with(most(begins_before), most(ends_behind)) {
            return wanted.align > slots;
        }
        // As far as the words beside it tell. If one is free, a run that reaches beyond it is found there.
        with(
            if begins_before { self.free_before(piece.start) } else { 0 },
            if ends_behind { self.free_after(piece.end) } else { 0 },
        )
    }

    /// Returns the free units around `unit` in `range`.
    fn free_around(self, unit: u64, range: Range<u64>) -> Range<u64> {
        let (mut start, mut end) = (unit, unit);
        while end < range.end {
            match self.free_after(end) {
                0 => break,
                free => end += free,
            }
        }
        while start > range.start {
            match self.free_before(start) {
                0 => break,
                free => start -= free,
            }
        }
        start.max(range.start)..end.min(range.end)
    }

    /// Returns how many units are free up to `unit`, in one word.
    fn free_before(self, unit: u64) -> u64 {
        let spot = self.tree().spot(unit - 1);
        let free = spot.slot + 1 - span::start_to(word::free_slots(spot.codes), spot.slot);
        let behind = spot.unit::<W>() + (1 << W::SHAPE.slot_order(spot.level));
        unit.saturating_sub(behind - (u64::from(free) << W::SHAPE.slot_order(spot.level)))
    }
}
