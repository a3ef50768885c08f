//! Queries about units and ranges of units, and reservations.

use core::ops::Range;

use super::Zones;
use super::number::Numbered;
use crate::api::Buddy;
use crate::error::{FreeError, RangeError};
use crate::sync::Word;

impl<'a, W: Word> Zones<'a, W> {
    /// Returns the order of the block that begins at unit `index`, or of the smallest block that would hold the run
    /// there.
    ///
    /// # Errors
    /// Those of [`Buddy::order_of`]; [`FreeError::InNoZone`] if the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.order_of(zones.alloc(&[0], 3)?), Ok(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn order_of(&self, index: u64) -> Result<u32, FreeError> {
        self.in_zone(index, |zone, index| zone.buddy.order_of(index))
    }

    /// Returns the number of units of the block or run that begins at `index`.
    ///
    /// # Errors
    /// Those of [`Buddy::len_of`](crate::Buddy::len_of); [`FreeError::InNoZone`] if the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.len_of(zones.alloc(&[0], 3)?), Ok(8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len_of(&self, index: u64) -> Result<u64, FreeError> {
        self.in_zone(index, |zone, index| zone.buddy.len_of(index))
    }

    /// Returns whether every unit of `range`, all of one zone, is free.
    ///
    /// # Errors
    /// [`RangeError::InNoZone`] if the first unit is in no zone, [`RangeError::OutOfRange`] if its zone does not have
    /// all of the units, or the range is empty.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// zones.alloc_at(117, 3)?;
    /// assert_eq!((zones.is_free(100..117), zones.is_free(110..118)), (Ok(true), Ok(false)));
    /// assert!(zones.is_free(163..165).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_free(&self, range: Range<u64>) -> Result<bool, RangeError> {
        self.in_one_zone(range, |buddy, range| buddy.is_free(range))
    }

    /// Reserves the units of `range`, all of one zone, as [`Buddy::reserve`] does.
    ///
    /// # Errors
    /// Those of [`Buddy::reserve`], if the range is of units of one zone, and [`RangeError::InNoZone`] if its first
    /// unit is in none.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, RangeError, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// zones.reserve(100..105)?;
    /// assert_eq!(zones.alloc(&[0], 3)?, 108);
    /// assert_eq!(zones.reserve(104..106), Err(RangeError::InUse { unit: 104 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.in_one_zone(range, |buddy, range| buddy.reserve(range))
    }

    /// Frees the units of `range`, all of one zone and reserved, as [`Buddy::release`] does.
    ///
    /// # Errors
    /// Those of [`Buddy::release`], if the range is of units of one zone, and [`RangeError::InNoZone`] if its first
    /// unit is in none.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new_reserved(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// zones.release(116..132)?; // usable memory, as the firmware says
    /// assert_eq!(zones.alloc(&[0], 4)?, 116);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.in_one_zone(range, |buddy, range| buddy.release(range))
    }

    /// Calls an operation with the numbers that the units of a range have in their zone.
    fn in_one_zone<T>(
        &self,
        range: Range<u64>,
        act: impl FnOnce(&Buddy<'a, W>, Range<u64>) -> Result<T, RangeError>,
    ) -> Result<T, RangeError> {
        let Range { start, end } = range;
        let Some((zone, here)) = self.find(start) else {
            return Err(self.in_no_zone(start));
        };
        let units = zone.end();
        if start >= end || end > units {
            return Err(RangeError::OutOfRange { start, end, units });
        }
        act(&zone.buddy, here..end - zone.base).map_err(|error| error.among_all(zone.base))
    }
}
