//! Freeing, resizing and splitting, in the zone of the unit.

use core::ops::Range;

use super::number::Numbered;
use super::{Zone, Zones};
use crate::error::{BatchError, FreeError, ResizeError};
use crate::sync::Word;

/// How many blocks of a batch are passed to a zone at once: as many as two words of units hold.
const TOGETHER: usize = 64;

impl<'a, W: Word> Zones<'a, W> {
    /// Frees the block or run that begins at unit `index`, and returns its number of units.
    ///
    /// # Errors
    /// Those of [`Lane::free`](crate::Lane::free); [`FreeError::InNoZone`] if the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, FreeError, Metadata, Request, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let run = zones.request(&[0], Request::units(9))?;
    /// assert_eq!(zones.free(run)?, 9);
    /// assert_eq!(zones.free(run), Err(FreeError::NotAllocated { index: run }));
    /// assert_eq!(zones.free(5), Err(FreeError::InNoZone { unit: 5, gap_start: 0, gap_end: 100 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free(&self, index: u64) -> Result<u64, FreeError> {
        self.on_lane(index, |lane, index| lane.free(index))
    }

    /// Frees the block of `order` at unit `index`, or a run of as many units that is aligned in its zone.
    ///
    /// # Errors
    /// Those of [`Lane::free_sized`](crate::Lane::free_sized); [`FreeError::InNoZone`] if the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, FreeError, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let index = zones.alloc(&[0], 2)?;
    /// assert_eq!(zones.free_sized(index, 1), Err(FreeError::WrongOrder { index, order: 1, actual: 2 }));
    /// zones.free_sized(index, 2)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.on_lane(index, |lane, index| lane.free_sized(index, order))
    }

    /// Frees the block or run of `units` units at `index`.
    ///
    /// # Errors
    /// Those of [`Lane::free_units`](crate::Lane::free_units); [`FreeError::InNoZone`] if the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Request, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let run = zones.request(&[0], Request::units(9))?;
    /// assert!(zones.free_units(run, 8).is_err());
    /// zones.free_units(run, 9)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_units(&self, index: u64, units: u64) -> Result<(), FreeError> {
        self.on_lane(index, |lane, index| lane.free_units(index, units))
    }

    /// Frees blocks of `order`, of any zones.
    ///
    /// Cost: nearly always one read-modify-write for neighbours in the slice that lie in the same word.
    ///
    /// # Errors
    /// [`BatchError`] for the first block that is refused. The blocks before it have been freed, the others have not.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let mut blocks = [0; 10];
    /// zones.alloc_batch(&[0], 1, &mut blocks)?;
    /// zones.free_batch(1, &blocks)?;
    /// assert_eq!(zones.free_batch(1, &blocks).unwrap_err().done, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_batch(&self, order: u32, blocks: &[u64]) -> Result<(), BatchError> {
        let mut done = 0;
        while let Some(&first) = blocks.get(done) {
            let Some((zone, _)) = self.find(first) else {
                return Err(BatchError { done, error: self.in_no_zone(first) });
            };
            let mut here = [0; TOGETHER];
            let count = of_zone(zone, &blocks[done..], &mut here);
            let freed = self.lane_of(zone).free_batch(order, &here[..count]);
            freed.map_err(|error| {
                let error = error.among_all(zone.base);
                BatchError { done: done + error.done, ..error }
            })?;
            done += count;
        }
        Ok(())
    }

    /// Frees all but the first `units` units of the block or run at `index`.
    ///
    /// # Errors
    /// Those of [`Lane::shrink`](crate::Lane::shrink), and [`FreeError::InNoZone`] in them.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let block = zones.alloc(&[0], 4)?;
    /// zones.shrink(block, 9)?;
    /// zones.grow(block, 12)?;
    /// assert_eq!(zones.len_of(block), Ok(12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.on_lane(index, |lane, index| lane.shrink(index, units))
    }

    /// Extends the block or run at `index` to `units` units, within its zone.
    ///
    /// # Errors
    /// Those of [`Lane::grow`](crate::Lane::grow), and [`FreeError::InNoZone`] in them.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, ResizeError, Zone, Zones};
    /// # let metadata = [const { Metadata::<{ nbbs::metadata_words(64) }>::new() }; 2];
    /// # let zones = [0, 1].map(|zone| Zone { base: 64 * zone as u64, buddy: Buddy::new(metadata[zone].words(), 64).unwrap() });
    /// let zones = Zones::new(&zones)?; // units 0 to 63, and 64 to 127
    /// let block = zones.alloc_at(56, 8)?;
    /// assert_eq!(zones.grow(block, 9), Err(ResizeError::OutOfRange { start: 56, end: 65, units: 64 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grow(&self, index: u64, units: u64) -> Result<(), ResizeError> {
        self.on_lane(index, |lane, index| lane.grow(index, units))
    }

    /// Splits the block or run at `index` after `units` units, and returns the first unit of the second part.
    ///
    /// # Errors
    /// Those of [`Lane::split_off`](crate::Lane::split_off), and [`FreeError::InNoZone`] in them.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let block = zones.alloc(&[0], 4)?;
    /// assert_eq!(zones.split_off(block, 11), Ok(block + 11));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split_off(&self, index: u64, units: u64) -> Result<u64, ResizeError> {
        self.on_lane(index, |lane, index| lane.split_off(index, units)).map(|_| index + units)
    }

    /// Splits the block or run at `index` into blocks of `order`.
    ///
    /// # Errors
    /// Those of [`Lane::split`](crate::Lane::split), and [`FreeError::InNoZone`] in them.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let block = zones.alloc(&[0], 4)?;
    /// zones.split(block, 2)?;
    /// assert_eq!(zones.free(block + 8), Ok(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn split(&self, index: u64, order: u32) -> Result<(), ResizeError> {
        self.on_lane(index, |lane, index| lane.split(index, order))
    }

    /// Frees the units of `part`, a part of the block or run at `index`, and keeps the rest.
    ///
    /// # Errors
    /// Those of [`Lane::free_part`](crate::Lane::free_part), and [`FreeError::InNoZone`] in them.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let block = zones.alloc(&[0], 4)?;
    /// zones.free_part(block, block + 3..block + 7)?;
    /// assert_eq!((zones.len_of(block)?, zones.len_of(block + 7)?), (3, 9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_part(&self, index: u64, part: Range<u64>) -> Result<(), ResizeError> {
        self.on_lane(index, |lane, here| {
            // A number before the zone wraps around, and so is in no part of anything.
            let number = |unit: u64| unit.wrapping_sub(index - here);
            lane.free_part(here, number(part.start)..number(part.end))
        })
        .map_err(|error| match error {
            ResizeError::BehindRun { start, end, .. } if start < index => {
                ResizeError::BeforeRun { start, end, index }
            }
            error => error,
        })
    }
}

/// Copies the blocks of a zone at the beginning of `blocks`, by their numbers in it, and returns how many.
fn of_zone<W: Word>(zone: &Zone<'_, W>, blocks: &[u64], here: &mut [u64]) -> usize {
    let numbers = blocks.iter().map(|&index| index.wrapping_sub(zone.base));
    let own = numbers.take_while(|&number| number < zone.buddy.units());
    own.zip(here).map(|(number, place)| *place = number).count()
}
