//! Allocating an exact number of units, anywhere or at a given place.

use core::ops::Range;

use super::find::Wanted;
use super::slots::Slots;
use super::{Runs, order_for};
use crate::error::RequestError;
use crate::request::Request;
use crate::sync::Word;
use crate::word::{self, span};

/// How many times as long as the order of a run the area is in which the next one is looked for first, log2.
const AREA: u32 = 3;

/// How many pieces a search looks at in vain, before the next one looks only where there must be room.
const LOOKS: u64 = 32;

impl<W: Word> Runs<'_, W> {
    /// Allocates exactly `units` units.
    pub fn alloc_units(self, units: u64) -> Result<u64, RequestError> {
        self.check_units(units)?;
        let order = order_for(units);
        if units.is_power_of_two()
            && let Ok(index) = self.blocks.alloc(order)
        {
            return Ok(index);
        }
        let index =
            if units < W::SHAPE.leaf_units() { self.claim_at_cursor(units as u32) } else { None };
        let wanted = Wanted { units, align: 1, offset: 0, top_down: false };
        index.or_else(|| self.claim_anywhere(wanted)).ok_or(RequestError::Exhausted { units })
    }

    /// Allocates units `index..index + units`.
    pub fn alloc_at(self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.check_units(units)?;
        let end = index.saturating_add(units);
        self.check_within(&(index..end))?;
        let claimed = self.claim_run(index, end);
        claimed.map(|()| index).map_err(|unit| RequestError::InUse { unit: unit.unwrap_or(index) })
    }

    /// Allocates a run that meets `request`.
    // Inlined, so that programs that always name a range do not include the other paths.
    #[inline]
    pub fn request(self, request: Request) -> Result<u64, RequestError> {
        let Request { units, order, offset, range, top_down, looks } = request;
        let is_anywhere = range.is_none() && !top_down && looks == u64::MAX;
        // A single unit is a block, and refused as one.
        if is_anywhere && order == 0 && units != 1 {
            return self.alloc_units(units);
        }
        let align = 1_u64.checked_shl(order).unwrap_or(0);
        self.check_aligned(units, order, offset)?;
        let offset = offset.unwrap_or(0) & align.wrapping_sub(1);
        if is_anywhere && offset == 0 && align == units {
            // A block is found, and refused, at less cost than a run.
            return self.blocks.alloc(order).map_err(|_| RequestError::Exhausted { units });
        }
        let range = range.unwrap_or(0..self.geometry().units());
        self.check_within(&range)?;
        let wanted = Wanted { units, align, offset, top_down };
        if wanted.fit(range.clone()).is_none() {
            let Range { start, end } = range;
            return Err(RequestError::NoPlace { units, order, start, end });
        }
        let index = if is_anywhere {
            self.claim_anywhere(wanted)
        } else {
            self.claim_in(wanted, wanted.core(), range, looks)
        };
        index.ok_or(RequestError::Exhausted { units })
    }

    /// Checks that there are so many units at an aligned place. Of an order above the largest there is one such place at
    /// most, and only a caller that has said what unit 0 stands for knows where.
    fn check_aligned(
        self,
        units: u64,
        order: u32,
        offset: Option<u64>,
    ) -> Result<(), RequestError> {
        self.check_units(units)?;
        let (max, last) = (self.geometry().max_order(), self.geometry().units() - units);
        let first_aligned =
            |offset: u64| 1_u64.checked_shl(order).map(|align| offset.wrapping_neg() & (align - 1));
        let is_there =
            order <= max || offset.and_then(first_aligned).is_some_and(|place| place <= last);
        if is_there { Ok(()) } else { Err(RequestError::OrderTooLarge { order, max }) }
    }

    fn check_units(self, units: u64) -> Result<(), RequestError> {
        let max = self.geometry().units();
        if (1..=max).contains(&units) { Ok(()) } else { Err(RequestError::Units { units, max }) }
    }

    fn check_within(self, range: &Range<u64>) -> Result<(), RequestError> {
        let (start, end, units) = (range.start, range.end, self.geometry().units());
        let out_of_range = RequestError::OutOfRange { start, end, units };
        if self.geometry().contains(range) { Ok(()) } else { Err(out_of_range) }
    }

    /// Claims a run in the leaf word in which the lane begins.
    fn claim_at_cursor(self, units: u32) -> Option<u64> {
        let order = leaf_order::<W>(order_for(units.into()));
        let leaf = self.lane().begin(order)?;
        let inside = word::first_slots(self.geometry().whole_slots(0, leaf));
        let claimed = self.tree().fill(0, leaf, |codes| {
            let slot = span::fit(word::free_slots(codes) & inside, units)?;
            Some((codes | span::closed(slot, units), slot))
        });
        let slot = self.lane().noted(0, leaf, claimed)?.1;
        let slots = Slots { level: 0, idx: leaf, slot, count: units };
        if !self.climb_from(slots, slots.closed()) {
            self.lane().leave(order, leaf);
            return None;
        }
        Some(W::SHAPE.first_unit(0, leaf, slot))
    }

    /// Claims a run anywhere: in what is left of the area at the lane's cursor; or else, from the lane's home on, in the
    /// first place that has a larger block than it must have, if some [looks](LOOKS) find one; in the first block that
    /// has room for it whatever lies around; or, if there is none, in the first place of all. So holes that are too small
    /// are not looked at one by one, and yet filled first where there are few of them.
    #[cold]
    fn claim_anywhere(self, wanted: Wanted) -> Option<u64> {
        let (core, order) = (wanted.core(), wanted.order_with_room());
        let in_leaf = wanted.units < W::SHAPE.leaf_units() && order <= W::SHAPE.slots_log2(0);
        let hint =
            if in_leaf { leaf_order::<W>(order) } else { order.min(self.geometry().max_order()) };
        let level = W::SHAPE.level_of(hint);
        let (end, area) = (self.geometry().units(), hint + AREA);
        let from = W::SHAPE.first_unit(level, self.lane().cursor(hint), 0);
        let near = from..end.min(((from >> area) + 1) << area);
        let nearby = |order| self.claim_in(wanted, order, near.clone(), LOOKS);
        let anywhere = |order, looks| self.claim_from_home(level, wanted, order, looks);
        let is_roomy = in_leaf || wanted.align > 1;
        // In one word, so that one compare-and-swap does it, if there is a block for it.
        let index = if in_leaf { nearby(order) } else { None }
            .or_else(|| nearby(core))
            .or_else(|| if is_roomy { None } else { anywhere(core + 1, LOOKS) })
            .or_else(|| anywhere(order, LOOKS))
            .or_else(|| anywhere(core, u64::MAX))?;
        self.lane().notes().set_cursor(hint, W::SHAPE.locate(level, index).0);
        Some(index)
    }

    /// Claims a run at the first place that contains a free block of `2^order` units, from the lane's home on `level` on,
    /// with so many [looks](Self::claim_in) at most on each side of it.
    fn claim_from_home(self, level: usize, wanted: Wanted, order: u32, looks: u64) -> Option<u64> {
        let (home, end) = (self.lane().home(level), self.geometry().units());
        let home = W::SHAPE.first_unit(level, home, 0);
        // What begins in front of the home may end behind it.
        let mut ranges = [home..end, 0..home + wanted.units.min(end - home)].into_iter();
        ranges.find_map(|range| self.claim_in(wanted, order, range, looks))
    }
}

/// Returns the order whose cursor leads to leaf words for runs that need a block of `order`.
fn leaf_order<W: Word>(order: u32) -> u32 {
    order.min(W::SHAPE.slots_log2(0) - 1)
}
