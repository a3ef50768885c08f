//! Several arenas behind one handle, such as NUMA nodes, memory that a device can reach, or an arena for each core.
//!
//! ```text
//! alloc      allocates from the first zone of a preference list that has room
//! change     frees, resizes and splits, in the zone of the unit
//! look       queries about units and ranges of units, reservations
//! number     renumbers a zone's answers to numbers among all zones
//! ```

mod alloc;
mod change;
mod look;
mod number;

use core::fmt;

use crate::api::{Buddy, Lane, default_lane};
use crate::sync::{AtomicU64, Word};
use number::{InNoZone, Numbered};

/// An arena, and the number of its first unit among all zones.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::{Zone, Zones};
///
/// let high = [Zone { base: 1 << 20, buddy }];
/// assert_eq!(Zones::new(&high)?.alloc(&[0], 0)?, 1 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Zone<'a, W = AtomicU64> {
    /// The number of the first unit.
    pub base: u64,
    /// The arena.
    pub buddy: Buddy<'a, W>,
}

copy!(Zone<'_, W>);

impl<W: Word> Zone<'_, W> {
    /// Returns the number after the last unit.
    fn end(&self) -> u64 {
        self.base + self.buddy.units()
    }
}

/// Why a list of zones was refused.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// use nbbs::{Zone, ZoneError, Zones};
///
/// let twice = [Zone { base: 0, buddy }, Zone { base: 63, buddy }];
/// let refused = ZoneError::Overlap { zone: 1, base: 63, end: 64 };
/// assert_eq!(Zones::new(&twice).unwrap_err(), refused);
/// # Ok::<(), nbbs::MetadataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZoneError {
    /// A zone begins before its predecessor in the list ends.
    Overlap {
        /// Position of the zone in the list.
        zone: usize,
        /// The number of its first unit.
        base: u64,
        /// The unit after the last of its predecessor.
        end: u64,
    },
    /// The number after the last unit of a zone is above `u64::MAX`.
    TooHigh {
        /// Position of the zone in the list.
        zone: usize,
        /// The number of its first unit.
        base: u64,
        /// Units of the zone.
        units: u64,
    },
}

/// Several arenas behind one handle, with units numbered among all of them. Each allocation says which zones to try, in
/// which order.
///
/// It has the operations of a [`Lane`] but [`has_free`](Lane::has_free), with the same names, results and errors; those
/// that may allocate anywhere take the preference list first. It is as lock-free as the arenas. Cost: that of the
/// operation in its zone, plus a binary search of the zones to find it; an allocation tries one zone after the other.
/// Errors also number units among all zones; what an `OutOfRange` names as the units of the arena is where the zone
/// ends. No block or run spans two zones. The statistics of a zone are those of its arena. Every method may be called
/// where that of a [`Lane`] may.
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
/// assert_eq!(zones.free(block)?, 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Zones<'a, W = AtomicU64> {
    zones: &'a [Zone<'a, W>],
    /// `None`: that of the calling thread.
    lane: Option<usize>,
}

copy!(Zones<'_, W>);

impl<'a, W: Word> Zones<'a, W> {
    /// Creates a handle to these zones, which must be in ascending order of their units.
    ///
    /// # Errors
    /// [`ZoneError::Overlap`] if they are not, or overlap; [`ZoneError::TooHigh`] if the number after the last unit of
    /// one is above `u64::MAX`.
    ///
    /// It is `const`, so zones can be `static`, as the arenas can:
    ///
    /// ```
    /// use nbbs::{Metadata, Zone, Zones};
    ///
    /// static WORDS: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// static LIST: [Zone<'static>; 1] = [Zone { base: 100, buddy: WORDS.arena(64) }];
    /// static ZONES: Zones<'static> = match Zones::new(&LIST) {
    ///     Ok(zones) => zones,
    ///     Err(_) => panic!("zones overlap"),
    /// };
    /// assert_eq!(ZONES.alloc(&[0], 6)?, 100);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, ZoneError, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// let zone = Zone { base: 7, buddy: Buddy::new(metadata.words(), 64)? };
    /// let refused = ZoneError::Overlap { zone: 1, base: 7, end: 71 };
    /// assert_eq!(Zones::new(&[zone, zone]).unwrap_err(), refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(zones: &'a [Zone<'a, W>]) -> Result<Self, ZoneError> {
        let (mut zone, mut end) = (0, 0);
        // A loop that constant expressions may have.
        while zone < zones.len() {
            let (base, units) = (zones[zone].base, zones[zone].buddy.units());
            if base < end {
                return Err(ZoneError::Overlap { zone, base, end });
            }
            match base.checked_add(units) {
                Some(behind) => end = behind,
                None => return Err(ZoneError::TooHigh { zone, base, units }),
            }
            zone += 1;
        }
        Ok(Self { zones, lane: None })
    }

    /// Returns the zones behind the handle.
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
    pub const fn zones(&self) -> &'a [Zone<'a, W>] {
        self.zones
    }

    /// Returns the position in the list of the zone that has unit `index`, or `None` if no zone has it.
    ///
    /// Cost: a binary search of the zones.
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

    /// Returns the same zones as seen from `lane`: see [`Buddy::on`].
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, Zone, Zones};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let zones = [Zone { base: 0, buddy: Buddy::new(metadata.words(), 64)? }];
    /// let cpu = Zones::new(&zones)?.on(3);
    /// let block = cpu.alloc(&[0], 2)?;
    /// cpu.free(block)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn on(&self, lane: usize) -> Self {
        Self { lane: Some(lane), ..*self }
    }

    /// Returns the caller's lane in a zone.
    fn lane_of(&self, zone: &'a Zone<'a, W>) -> Lane<'a, W> {
        zone.buddy.on(self.lane.unwrap_or_else(default_lane))
    }

    /// Finds the zone of a unit, and the unit's number in it.
    fn find(&self, index: u64) -> Option<(&'a Zone<'a, W>, u64)> {
        let zone = &self.zones[self.zone_of(index)?];
        Some((zone, index - zone.base))
    }

    /// Calls an operation with a unit's number in its zone, from the caller's lane.
    fn on_lane<T, E: Numbered + InNoZone>(
        &self,
        index: u64,
        act: impl FnOnce(Lane<'a, W>, u64) -> Result<T, E>,
    ) -> Result<T, E> {
        self.in_zone(index, |zone, index| act(self.lane_of(zone), index))
    }

    /// Calls an operation with a unit's zone and its number there.
    fn in_zone<T, E: Numbered + InNoZone>(
        &self,
        index: u64,
        act: impl FnOnce(&'a Zone<'a, W>, u64) -> Result<T, E>,
    ) -> Result<T, E> {
        let (zone, here) = self.find(index).ok_or_else(|| self.in_no_zone(index))?;
        act(zone, here).map_err(|error| error.among_all(zone.base))
    }

    /// Returns the number behind the last unit of the last zone.
    fn end(&self) -> u64 {
        self.zones.last().map_or(0, Zone::end)
    }

    /// Returns the answer that no zone has a unit, nor the numbers around it, up to `u64::MAX` behind the last zone.
    fn in_no_zone<E: InNoZone>(&self, unit: u64) -> E {
        let (before, after) =
            self.zones.split_at(self.zones.partition_point(|zone| zone.base <= unit));
        let start = before.last().map_or(0, Zone::end);
        E::in_no_zone(unit, start..after.first().map_or(u64::MAX, |zone| zone.base))
    }
}

// For words that cannot be printed, too: a derive asks for `W: Debug`.
impl<W> fmt::Debug for Zone<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, buddy } = self;
        f.debug_struct("Zone").field("base", base).field("buddy", buddy).finish()
    }
}

// As for `Zone`.
impl<W> fmt::Debug for Zones<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zones, lane } = self;
        f.debug_struct("Zones").field("zones", zones).field("lane", lane).finish()
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overlap { zone, base, end } => {
                write!(f, "zone {zone} begins at unit {base}: the one before it ends at unit {end}")
            }
            Self::TooHigh { zone, base, units } => {
                let most = u64::MAX;
                write!(f, "zone {zone} has {units} units from unit {base} on: it ends above {most}")
            }
        }
    }
}

impl core::error::Error for ZoneError {}
