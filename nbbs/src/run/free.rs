//! Freeing the block or run that begins at a unit.

use super::slots::Slots;
use super::{Run, Runs};
use crate::error::{BatchError, FreeError};
use crate::sync::Word;
use crate::tree::Spot;
use crate::word::span;

impl<W: Word> Runs<'_, W> {
    /// Frees the block or run that begins at `index`, and returns its number of units.
    #[inline(always)]
    pub fn free(self, index: u64) -> Result<u64, FreeError> {
        let freed = self.blocks.free(index).map(|order| 1 << order);
        freed.or_else(|error| self.free_run(index, error))
    }

    /// Frees the block or run of `2^order` units at `index`.
    #[inline(always)]
    pub fn free_sized(self, index: u64, order: u32) -> Result<(), FreeError> {
        self.blocks
            .free_sized(index, order)
            .or_else(|error| self.free_run_sized(index, order, error))
    }

    /// Frees the block or run of `units` units at `index`.
    pub fn free_units(self, index: u64, units: u64) -> Result<(), FreeError> {
        let order = units.trailing_zeros();
        if units.is_power_of_two() && self.free_sized(index, order).is_ok() {
            return Ok(());
        }
        self.free_run_units(index, units)
    }

    /// Frees blocks of `order`, those of one word together.
    pub fn free_batch(self, order: u32, blocks: &[u64]) -> Result<(), BatchError> {
        let mut done = 0;
        while let Some(&first) = blocks.get(done) {
            let freed = self.blocks.free_many(order, &blocks[done..]);
            done += freed;
            if freed == 0 {
                self.free_sized(first, order).map_err(|error| BatchError { done, error })?;
                done += 1;
            }
        }
        Ok(())
    }

    /// [Frees](Self::free) a run, after a lookup of a block failed with `error`.
    #[cold]
    fn free_run(self, index: u64, error: FreeError) -> Result<u64, FreeError> {
        if let FreeError::OutOfRange { .. } | FreeError::NotAllocated { .. } = error {
            return Err(error);
        }
        self.free_found(index)
    }

    /// Frees the block or run that begins at `index`, on a path where speed does not matter, and returns its number of
    /// units.
    pub(super) fn free_found(self, index: u64) -> Result<u64, FreeError> {
        loop {
            let run = self.run_at(index)?;
            if self.release_run(&run) {
                return Ok(run.units());
            }
        }
    }

    /// [Frees](Self::free_sized) a run of `2^order` units, after a lookup of a block failed with `error`.
    #[cold]
    fn free_run_sized(self, index: u64, order: u32, error: FreeError) -> Result<(), FreeError> {
        match error {
            FreeError::NotABlock { .. } | FreeError::Reserved { .. } => {
                self.free_run_units(index, 1 << order)
            }
            _ => Err(error),
        }
    }

    /// Frees the run of `units` units at `index`, where no block of that size was found.
    #[cold]
    fn free_run_units(self, index: u64, units: u64) -> Result<(), FreeError> {
        let run = self.run_at(index)?;
        if run.units() != units {
            return Err(FreeError::WrongLength { index, units, actual: run.units() });
        }
        // Somebody else has freed it since.
        if self.release_run(&run) { Ok(()) } else { Err(FreeError::NotAllocated { index }) }
    }

    /// Frees a run. Returns `false` if the run is not there any more; then nothing has changed.
    ///
    /// The caller that hides an open head is the one that frees the run.
    fn release_run(self, run: &Run) -> bool {
        if !run.is_open {
            let slots = run.slots::<W>();
            return self.clear_slots(slots, slots.closed());
        }
        let Ok(held) = self.hold(run) else { return false };
        self.clear_rests(held.rests(), held.end);
        self.clear_own(held.first, held.first.hidden())
    }

    /// Clears the rests of units `from..to`, the end of a run, from the end.
    pub(super) fn clear_rests(self, from: u64, to: u64) {
        self.clear_rests_by(from, to, |slots| self.clear_slots(slots, slots.rests()));
    }

    /// [Clears](Self::clear_rests) the rests of units `from..to` by a call for those of each word.
    pub(super) fn clear_rests_by(self, from: u64, mut to: u64, clear: impl Fn(Slots) -> bool) {
        while to > from {
            let Spot { level, idx, slot, codes } = self.tree().spot(to - 1);
            let (from_idx, from_slot) = W::SHAPE.locate(level, from);
            let least = if from_idx == idx { from_slot } else { 0 };
            let first = span::rests_to(codes, slot).max(least);
            let count = (slot + 1).saturating_sub(first);
            let slots = Slots { level, idx, slot: first, count };
            if !clear(slots) {
                // Only if the run is not the caller's: nothing more is known about it.
                return;
            }
            to = W::SHAPE.first_unit(level, idx, first);
        }
    }
}
