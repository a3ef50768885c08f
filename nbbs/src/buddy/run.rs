//! Runs: what begins at a unit, how far it goes, and how it is freed.
//!
//! Every rest belongs to the run that the unit before it belongs to, at every instant: runs are claimed, and
//! grow, head first; they shrink, and are freed, from the end. So the end of a run is where the rests end.

use super::Buddy;
use super::slots::Slots;
use crate::error::FreeError;
use crate::sync::Word;
use crate::word::{self, span};

/// The slot that describes a unit: the highest that is not split.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub level: usize,
    pub idx: u64,
    pub slot: u32,
    pub codes: u64,
}

impl Spot {
    pub fn code(&self) -> u64 {
        word::code(self.codes, self.slot)
    }

    /// The first unit of the slot.
    pub fn unit<W: Word>(&self) -> u64 {
        W::SHAPE.first_unit(self.level, self.idx, self.slot)
    }
}

/// Units that are held together.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub start: u64,
    pub end: u64,
    /// Where the head is. An open head is in a leaf word.
    pub head: Spot,
    pub is_open: bool,
}

impl Run {
    pub fn units(&self) -> u64 {
        self.end - self.start
    }

    /// The slots of a closed run.
    pub fn slots<W: Word>(&self) -> Slots {
        let Spot { level, idx, slot, .. } = self.head;
        Slots { level, idx, slot, count: (self.units() >> W::SHAPE.slot_order(level)) as u32 }
    }

    /// The order of a block that would hold the run.
    pub fn order(&self) -> u32 {
        self.units().next_power_of_two().trailing_zeros()
    }
}

impl<W: Word> Buddy<'_, W> {
    /// How many units are held at `index`: the units of the block or run that begins there.
    ///
    /// Cost: a load for each level from the top down, and for a run that spans words a few more for each
    /// word. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Buddy::free`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.alloc_units(37)?;
    /// assert_eq!(buddy.len_of(run), Ok(37));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len_of(&self, index: u64) -> Result<u64, FreeError> {
        self.held(index).map(|run| run.units())
    }

    /// Where unit `unit` is described.
    pub(super) fn spot(&self, unit: u64) -> Spot {
        let mut level = self.geometry().top();
        loop {
            let (idx, slot) = W::SHAPE.locate(level, unit);
            let codes = word::codes(level, self.tree.read(level, idx));
            if level == 0 || word::code(codes, slot) != word::SPLIT {
                return Spot { level, idx, slot, codes };
            }
            level -= 1;
        }
    }

    /// The block or run that begins at `index`.
    #[cold]
    pub(super) fn held(&self, index: u64) -> Result<Run, FreeError> {
        let units = self.geometry().units();
        if index >= units {
            return Err(FreeError::OutOfRange { index, units });
        }
        let head = self.spot(index);
        let (level, idx, slot) = (head.level, head.idx, head.slot);
        match head.code() {
            word::FREE => Err(FreeError::NotAllocated { index }),
            word::HEAD if head.unit::<W>() == index => {
                let slots = 1 + span::rests_from(head.codes, slot + 1);
                let end = W::SHAPE.first_unit(level, idx, slot)
                    + (u64::from(slots) << W::SHAPE.slot_order(level));
                Ok(Run { start: index, end, head, is_open: false })
            }
            word::HOLE if span::is_open(head.codes, slot) => {
                let within = u64::from(1 + span::rests_from(head.codes, slot + 1));
                let here = index + within;
                let end =
                    if W::SHAPE.locate(0, here).1 == 0 { self.end_of_tails(here) } else { here };
                Ok(Run { start: index, end, head, is_open: true })
            }
            word::HOLE => Err(FreeError::Reserved { index }),
            _ => Err(FreeError::NotABlock { index }),
        }
    }

    /// Where the rests end that begin at `unit`, the first of a word or of a slot.
    pub(super) fn end_of_tails(&self, mut unit: u64) -> u64 {
        while unit < self.geometry().units() {
            let spot = self.spot(unit);
            let rests = span::rests_from(spot.codes, spot.slot);
            if rests == 0 || spot.unit::<W>() != unit {
                break;
            }
            unit += u64::from(rests) << W::SHAPE.slot_order(spot.level);
            let behind = spot.slot + rests;
            let goes_on = behind == W::SHAPE.slots(spot.level)
                || spot.level > 0 && word::code(spot.codes, behind) == word::SPLIT;
            if !goes_on {
                break;
            }
        }
        unit
    }

    /// Frees what begins at `index`, where a look for a block met `error`. Returns the order of a block that
    /// would hold it.
    #[cold]
    pub(super) fn free_run(
        &self,
        lane: usize,
        index: u64,
        error: FreeError,
    ) -> Result<u32, FreeError> {
        if let FreeError::OutOfRange { .. } | FreeError::NotAllocated { .. } = error {
            return Err(error);
        }
        loop {
            let run = self.held(index)?;
            if self.release_run(lane, &run) {
                return Ok(run.order());
            }
        }
    }

    /// Frees the run of `units` units at `index`, where no block of that size was found.
    #[cold]
    pub(super) fn free_run_sized(
        &self,
        lane: usize,
        index: u64,
        units: u64,
    ) -> Result<(), FreeError> {
        let run = self.held(index)?;
        if run.units() != units {
            return Err(FreeError::WrongLength { index, units, actual: run.units() });
        }
        // Somebody else freed it meanwhile.
        if self.release_run(lane, &run) { Ok(()) } else { Err(FreeError::NotAllocated { index }) }
    }

    /// Frees a run. `false`: it is not there any more, and nothing has changed.
    ///
    /// Whoever turns an open head into holes is the one who frees the run.
    pub(super) fn release_run(&self, lane: usize, run: &Run) -> bool {
        if !run.is_open {
            let slots = run.slots::<W>();
            return self.clear_slots(lane, slots, slots.closed());
        }
        let Ok(held) = self.hold(lane, run) else { return false };
        self.clear_tails(lane, held.tails(), held.end);
        self.clear_slots(lane, held.first, held.first.holes())
    }

    /// Clears the rests of units `from..to`, the end of a run, from the end.
    pub(super) fn clear_tails(&self, lane: usize, from: u64, mut to: u64) {
        while to > from {
            let Spot { level, idx, slot, codes } = self.spot(to - 1);
            let (from_idx, from_slot) = W::SHAPE.locate(level, from);
            let least = if from_idx == idx { from_slot } else { 0 };
            let first = span::rests_to(codes, slot).max(least);
            let count = (slot + 1).saturating_sub(first);
            let slots = Slots { level, idx, slot: first, count };
            if !self.clear_slots(lane, slots, slots.rests()) {
                // Only if the run is not the caller's: nothing more is known about it.
                return;
            }
            to = W::SHAPE.first_unit(level, idx, first);
        }
    }
}
