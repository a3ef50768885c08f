//! Allocating so many units, anywhere or where the caller says.

use core::ops::Range;

use super::Buddy;
use super::exact::Obstacle;
use super::place::Wanted;
use super::slots::Slots;
use crate::error::{FreeError, RequestError};
use crate::lane::default_lane;
use crate::request::Request;
use crate::sync::Word;
use crate::word::{self, span};

impl<W: Word> Buddy<'_, W> {
    /// Allocates exactly `units` units side by side, and returns the first. No unit beyond them is held.
    ///
    /// A power of two of units is a block, aligned to its size, as long as there is one. Free it with
    /// [`Buddy::free`], or with [`Buddy::free_units`].
    ///
    /// Cost: one read-modify-write where the run lies in one word: fewer than 32 units, or a multiple of a
    /// larger slot (32 units, 512, ...) up to 15 of them. Others take one for each word, one or two for each
    /// slot that is split. Callable from interrupt and signal handlers.
    ///
    /// A run that spans words is claimed piece by piece, its first units first. Meanwhile others see the
    /// pieces in use; if one is not to be had, they are given back. A thread that dies there costs the
    /// pieces that it has claimed.
    ///
    /// # Errors
    /// [`RequestError::Units`], or [`RequestError::Exhausted`]: every place for the run was in use when it
    /// was looked at, or in the hands of an operation that had not returned.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(37)?;
    /// assert_eq!(buddy.stats().free_units, 64 - 37);
    /// buddy.free_units(run, 37)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_units(&self, units: u64) -> Result<u64, RequestError> {
        self.alloc_units_on(default_lane(), units)
    }

    /// [`Buddy::alloc_units`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc_units`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units_on(1, 5)?;
    /// assert_eq!(buddy.free_on(1, run)?, 3); // 5 units would fill a block of order 3
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_units_on(&self, lane: usize, units: u64) -> Result<u64, RequestError> {
        self.check_units(units)?;
        let order = units.next_power_of_two().trailing_zeros();
        if units.is_power_of_two()
            && let Ok(index) = self.alloc_on(lane, order)
        {
            return Ok(index);
        }
        let index =
            if units < W::SHAPE.leaf_units() { self.claim_near(lane, units as u32) } else { None };
        index
            .or_else(|| self.claim_anywhere(lane, units, order))
            .ok_or(RequestError::Exhausted { units })
    }

    /// Allocates units `index..index + units`, if all are free, and returns `index`.
    ///
    /// Cost: that of [`Buddy::alloc_units`] without a search. What others see meanwhile is said there.
    ///
    /// # Errors
    /// [`RequestError::Units`], [`RequestError::OutOfRange`], [`RequestError::InUse`] if a unit is in use or
    /// another thread is just then allocating around it, and [`RequestError::LastOfWord`]. Nothing has
    /// changed.
    ///
    /// ```
    /// # use nbbs::RequestError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.alloc_at(17, 30), Ok(17));
    /// assert_eq!(buddy.alloc_at(46, 2), Err(RequestError::InUse { unit: 46 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at(&self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.alloc_at_on(default_lane(), index, units)
    }

    /// [`Buddy::alloc_at`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc_at`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.alloc_at_on(1, 32, 32)?, 32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at_on(&self, lane: usize, index: u64, units: u64) -> Result<u64, RequestError> {
        self.check_units(units)?;
        let end = index.saturating_add(units);
        self.check_within(&(index..end))?;
        match self.claim_run(lane, index, end) {
            Ok(()) => Ok(index),
            Err(Obstacle::InUse(unit)) => Err(RequestError::InUse { unit }),
            Err(Obstacle::LastOfWord) => Err(RequestError::LastOfWord { unit: index }),
        }
    }

    /// Allocates what `request` describes, at the first place (or the last) that will do. Without a range, and not from the
    /// top, any place may do.
    ///
    /// Cost: that of [`Buddy::alloc_units`], and a search from that end of the range, down only where a bound
    /// promises a free block of half the size: few loads in the common case, one for each word in use in
    /// the worst. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RequestError::Units`], [`RequestError::OrderTooLarge`], [`RequestError::OutOfRange`] or
    /// [`RequestError::Exhausted`], as in [`Buddy::alloc_units`].
    ///
    /// ```
    /// # use nbbs::{Request, RequestError};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let below_20 = || Request::units(10).within(0..20);
    /// assert_eq!(buddy.request(below_20().top_down())?, 10);
    /// assert_eq!(buddy.request(below_20())?, 0);
    /// assert_eq!(buddy.request(below_20()), Err(RequestError::Exhausted { units: 10 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request(&self, request: Request) -> Result<u64, RequestError> {
        self.request_on(default_lane(), request)
    }

    /// [`Buddy::request`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::request`].
    ///
    /// ```
    /// # use nbbs::Request;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.request_on(1, Request::block(2).top_down())?, 60);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request_on(&self, lane: usize, request: Request) -> Result<u64, RequestError> {
        let Request { units, order, range, top_down } = request;
        self.check_units(units)?;
        if order > self.geometry().max_order() {
            return Err(RequestError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        let anywhere = range.is_none() && !top_down;
        let range = range.unwrap_or(0..self.geometry().units());
        self.check_within(&range)?;
        if anywhere && order == 0 {
            return self.alloc_units_on(lane, units);
        }
        if anywhere
            && units == 1 << order
            && let Ok(index) = self.alloc_on(lane, order)
        {
            return Ok(index);
        }
        let wanted = Wanted { units, align: 1 << order, top_down };
        self.claim_in(lane, wanted, range).ok_or(RequestError::Exhausted { units })
    }

    /// Frees the block or run of `units` units at `index`.
    ///
    /// Cost: that of [`Buddy::free_sized`] for a block, otherwise a read-modify-write for each word of the
    /// run and three for its first. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Buddy::free`], and [`FreeError::WrongLength`]; nothing has changed.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(9)?;
    /// let refused = FreeError::WrongLength { index: run, units: 8, actual: 9 };
    /// assert_eq!(buddy.free_units(run, 8), Err(refused));
    /// assert_eq!(buddy.free_units(run, 9), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_units(&self, index: u64, units: u64) -> Result<(), FreeError> {
        self.free_units_on(default_lane(), index, units)
    }

    /// [`Buddy::free_units`] from the lane of the caller's choice.
    ///
    /// # Errors
    /// Those of [`Buddy::free_units`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(40)?;
    /// buddy.free_units_on(1, run, 40)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_units_on(&self, lane: usize, index: u64, units: u64) -> Result<(), FreeError> {
        if units.is_power_of_two()
            && self.free_sized_on(lane, index, units.trailing_zeros()).is_ok()
        {
            return Ok(());
        }
        self.free_run_sized(lane, index, units)
    }

    fn check_units(&self, units: u64) -> Result<(), RequestError> {
        let max = self.geometry().units();
        if (1..=max).contains(&units) { Ok(()) } else { Err(RequestError::Units { units, max }) }
    }

    fn check_within(&self, range: &Range<u64>) -> Result<(), RequestError> {
        let (start, end, units) = (range.start, range.end, self.geometry().units());
        let out_of_range = RequestError::OutOfRange { start, end, units };
        if self.geometry().contains(range) { Ok(()) } else { Err(out_of_range) }
    }

    /// Claims a run in the leaf word at the lane's cursor.
    fn claim_near(&self, lane: usize, units: u32) -> Option<u64> {
        let leaf = self.cursor(lane, leaf_order::<W>(units.into()));
        let inside = word::first_slots(self.geometry().whole_slots(0, leaf));
        let claimed = self.tree.fill(0, leaf, |codes| {
            let slot = span::fit(word::free_slots(codes) & inside, units)?;
            Some((codes | span::closed(slot, units), slot))
        });
        let slot = self.noted(lane, 0, leaf, claimed)?.1;
        if self.climb(lane, 0, leaf) {
            return Some(W::SHAPE.first_unit(0, leaf, slot));
        }
        let slots = Slots { level: 0, idx: leaf, slot, count: units };
        self.clear_slots(lane, slots, slots.closed());
        None
    }

    /// Claims a run anywhere, first from the lane's cursor on: in one word if it fits into one.
    #[cold]
    fn claim_anywhere(&self, lane: usize, units: u64, order: u32) -> Option<u64> {
        let in_leaf = units < W::SHAPE.leaf_units();
        let hint =
            if in_leaf { leaf_order::<W>(units) } else { order.min(self.geometry().max_order()) };
        let level = W::SHAPE.level_of(hint);
        let from = W::SHAPE.first_unit(level, self.cursor(lane, hint), 0);
        let (later, sooner) =
            (from..self.geometry().units(), 0..from + units.min(self.geometry().units() - from));
        let within_block = || {
            // In one word, so that one compare-and-swap does it.
            let mut ranges = [&later, &sooner].into_iter();
            ranges.find_map(|range| self.claim_in_block(lane, units, order, range))
        };
        let wanted = Wanted { units, align: 1, top_down: false };
        let index = if in_leaf { within_block() } else { None }
            .or_else(|| self.claim_in(lane, wanted, later.clone()))
            .or_else(|| self.claim_in(lane, wanted, sooner.clone()))?;
        self.hints(lane).set_cursor(hint, W::SHAPE.locate(level, index).0);
        Some(index)
    }
}

/// The order whose cursor leads to leaf words for runs of so many units.
fn leaf_order<W: Word>(units: u64) -> u32 {
    units.next_power_of_two().trailing_zeros().min(W::SHAPE.slots_log2(0) - 1)
}
