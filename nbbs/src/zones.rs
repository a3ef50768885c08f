//! Several arenas behind one handle: NUMA nodes, memory that a device can reach, one arena for each core.

use core::fmt;
use core::sync::atomic::AtomicU64;

use crate::buddy::Buddy;
use crate::error::{AllocError, FreeError, RequestError};
use crate::request::Request;
use crate::sync::Word;

/// An arena, and the number that its first unit has among all zones.
#[derive(Debug)]
pub struct Zone<'a, W = AtomicU64> {
    /// The first unit's number.
    pub base: u64,
    /// The arena.
    pub buddy: Buddy<'a, W>,
}

impl<W> Clone for Zone<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Zone<'_, W> {}

/// Why zones cannot stand behind one handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZoneError {
    /// A zone begins before the one before it in the list ends, or its last unit's number does not fit.
    Overlap {
        /// Position of the zone in the list.
        zone: usize,
    },
}

/// Several arenas, in the order of their units, each of which may be asked first.
///
/// Lock-free as the arenas are. Statistics of a zone are those of its arena.
///
/// ```
/// use nbbs::{Buddy, Metadata, Zone, Zones};
///
/// let (low, high) = (Metadata::<{ nbbs::metadata_words(64) }>::new(), Metadata::<{ nbbs::metadata_words(256) }>::new());
/// let zones = [
///     Zone { base: 0, buddy: Buddy::new(low.words(), 64)? },
///     Zone { base: 1 << 20, buddy: Buddy::new(high.words(), 256)? },
/// ];
/// let zones = Zones::new(&zones)?;
/// let block = zones.alloc(&[1, 0], 6)?; // from the second, as long as that has one
/// assert_eq!(block, 1 << 20);
/// assert_eq!(zones.free(block)?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Zones<'a, W = AtomicU64> {
    zones: &'a [Zone<'a, W>],
}

impl<W> Clone for Zones<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Zones<'_, W> {}

impl<'a, W: Word> Zones<'a, W> {
    /// A handle to these zones, in ascending order of their units.
    ///
    /// # Errors
    /// [`ZoneError::Overlap`].
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, ZoneError, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// let zone = Zone { base: 7, buddy: Buddy::new(metadata.words(), 64)? };
    /// assert_eq!(Zones::new(&[zone, zone]).unwrap_err(), ZoneError::Overlap { zone: 1 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(zones: &'a [Zone<'a, W>]) -> Result<Self, ZoneError> {
        let mut end = 0;
        for (number, zone) in zones.iter().enumerate() {
            if zone.base < end {
                return Err(ZoneError::Overlap { zone: number });
            }
            let after = zone.base.checked_add(zone.buddy.units());
            end = after.ok_or(ZoneError::Overlap { zone: number })?;
        }
        Ok(Self { zones })
    }

    /// The zones.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 0, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// zones.alloc(&[0], 3)?;
    /// assert_eq!(zones.zones()[0].buddy.stats().used_units, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn zones(&self) -> &'a [Zone<'a, W>] {
        self.zones
    }

    /// Which zone a unit is in. Costs a step for each halving of the number of zones.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!((zones.zone_of(99), zones.zone_of(163), zones.zone_of(164)), (None, Some(0), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn zone_of(&self, index: u64) -> Option<usize> {
        let number = self.zones.partition_point(|zone| zone.base <= index).checked_sub(1)?;
        let zone = &self.zones[number];
        (index - zone.base < zone.buddy.units()).then_some(number)
    }

    /// Allocates a block of `2^order` units from the first zone of `preference` that has one. The block is
    /// aligned within its zone; a number that is no zone's is passed over.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc`] of the last zone that could have such a block, or else of the largest.
    ///
    /// ```
    /// # use nbbs::{AllocError, Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 1 << 30, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.alloc(&[0], 6)?, 1 << 30);
    /// assert_eq!(zones.alloc(&[0], 0), Err(AllocError::Exhausted { order: 0 }));
    /// assert_eq!(zones.alloc(&[0], 9), Err(AllocError::OrderTooLarge { order: 9, max: 6 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc(&self, preference: &[usize], order: u32) -> Result<u64, AllocError> {
        let mut refusal = AllocError::OrderTooLarge { order, max: 0 };
        for zone in self.preferred(preference) {
            match (zone.buddy.alloc(order), refusal) {
                (Ok(index), _) => return Ok(zone.base + index),
                (Err(error @ AllocError::Exhausted { .. }), _) => refusal = error,
                (
                    Err(AllocError::OrderTooLarge { max, .. }),
                    AllocError::OrderTooLarge { max: most, .. },
                ) => {
                    refusal = AllocError::OrderTooLarge { order, max: max.max(most) };
                }
                _ => {}
            }
        }
        Err(refusal)
    }

    /// Allocates what `request` describes from the first zone of `preference` that has it. Its range is one of
    /// units among all zones, its alignment one within the zone.
    ///
    /// # Errors
    /// Those of [`Buddy::request`], of the last zone that has a part of the range;
    /// [`RequestError::Exhausted`] if none has.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Request, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// assert_eq!(zones.request(&[0], Request::units(9).within(0..150).top_down())?, 141);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request(&self, preference: &[usize], request: Request) -> Result<u64, RequestError> {
        let mut refusal = RequestError::Exhausted { units: request.units };
        for zone in self.preferred(preference) {
            let mut here = request.clone();
            if let Some(range) = &request.range {
                let end = range.end.saturating_sub(zone.base).min(zone.buddy.units());
                let start = range.start.saturating_sub(zone.base);
                if start >= end {
                    continue;
                }
                here.range = Some(start..end);
            }
            match zone.buddy.request(here) {
                Ok(index) => return Ok(zone.base + index),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// Frees the block or run at `index`, whichever zone it is in.
    ///
    /// # Errors
    /// Those of [`Buddy::free`], with indices as the zone's own arena has them; [`FreeError::OutOfRange`] if
    /// the unit is in no zone.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Request, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 100, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let zones = Zones::new(&zones)?;
    /// let run = zones.request(&[0], Request::units(9))?;
    /// assert_eq!(zones.free(run)?, 4);
    /// assert!(zones.free(5).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free(&self, index: u64) -> Result<u32, FreeError> {
        let Some(zone) = self.zone_of(index).map(|number| &self.zones[number]) else {
            let end = self.zones.last().map_or(0, |zone| zone.base + zone.buddy.units());
            return Err(FreeError::OutOfRange { index, units: end });
        };
        zone.buddy.free(index - zone.base)
    }

    fn preferred(&self, preference: &[usize]) -> impl Iterator<Item = &'a Zone<'a, W>> {
        let zones = self.zones;
        preference.iter().filter_map(move |&number| zones.get(number))
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Overlap { zone } = self;
        write!(f, "zone {zone} overlaps the one before it, or ends beyond the last number")
    }
}

impl core::error::Error for ZoneError {}
