//! The positions of all parts of a segment: arithmetic on the geometry, which the creator chooses and the header
//! records.
//!
//! ```text
//! header | turns, a line for each seat | pins, four lines for each seat | hints | tags, a word for each unit
//! | the buddy's words | units
//! ```
//!
//! Each part begins on a page of 4 KiB. So a block is aligned to its size, or to a page if it is larger.

use nbbs::{MAX_UNITS, metadata_words};

use crate::error::GeometryError;
use crate::ledger::{MAX_SEATS, TURN_STRIDE};
use crate::slabs::{HINTS, PIN_STRIDE};

/// The least and most bytes of a unit.
pub(crate) const MIN_UNIT: u64 = 64;
pub(crate) const MAX_UNIT: u64 = 1 << 30;
/// The alignment of the parts, and the largest alignment of blocks.
pub(crate) const PAGE: u64 = 4096;

/// The most bytes of a segment. A process of 32 bits can map no more than `isize::MAX`, nor reserve them in a file.
const MAX_BYTES: u64 = if isize::MAX as u64 >> 46 == 0 { isize::MAX as u64 } else { 1 << 46 };

/// The dimensions of a segment. The creator chooses them, and everybody else finds them in the header.
///
/// ```
/// use nbbs_shared::Geometry;
///
/// let geometry = Geometry { units: 4096, unit_bytes: 4096, members: 64 };
/// assert_eq!(geometry.file_bytes()?, 16_842_752); // 16 MiB of units, and 64 KiB beside them
/// # Ok::<(), nbbs_shared::GeometryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Units that are handed out, from 1 to 2^40.
    pub units: u64,
    /// Bytes of a unit, the smallest piece that is handed out: a power of two from 64 to 2^30.
    pub unit_bytes: u64,
    /// Seats: how many members may be alive at a time, from 1 to 1022.
    pub members: u64,
}

/// The positions of the parts, in bytes from the beginning of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub geometry: Geometry,
    pub turns: u64,
    pub pins: u64,
    pub hints: u64,
    pub tags: u64,
    pub words: u64,
    pub arena: u64,
    /// The whole segment.
    pub bytes: u64,
}

impl Geometry {
    /// Returns the bytes that the segment takes, everything included: beside the units 64 bits per unit for its owner,
    /// 2.3 for the buddy allocator, more in less than 2^18 units, and 320 bytes per member, in two parts; each of these
    /// parts in whole pages of 4 KiB, and two pages more.
    ///
    /// # Errors
    /// [`GeometryError`], which names the value that is out of range.
    ///
    /// ```
    /// # use nbbs_shared::{Geometry, GeometryError};
    /// let geometry = Geometry { units: 64, unit_bytes: 4096, members: 8 };
    /// assert!(geometry.file_bytes()? > 64 * 4096);
    /// let refused = Geometry { units: 0, ..geometry }.file_bytes();
    /// assert!(matches!(refused, Err(GeometryError::Units { units: 0, .. })));
    /// # Ok::<(), GeometryError>(())
    /// ```
    pub fn file_bytes(&self) -> Result<u64, GeometryError> {
        Layout::new(*self).map(|layout| layout.bytes)
    }
}

impl Layout {
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        let Geometry { units, unit_bytes, members } = geometry;
        if !(1..=MAX_UNITS).contains(&units) {
            return Err(GeometryError::Units { units, max: MAX_UNITS });
        }
        if !(MIN_UNIT..=MAX_UNIT).contains(&unit_bytes) || !unit_bytes.is_power_of_two() {
            return Err(GeometryError::UnitBytes { unit_bytes, min: MIN_UNIT, max: MAX_UNIT });
        }
        if !(1..=MAX_SEATS as u64).contains(&members) {
            return Err(GeometryError::Members { members, max: MAX_SEATS as u64 });
        }
        let words = metadata_words(units) as u64;
        // None of these overflows but the units' bytes: units are at most 2^40.
        let turns = PAGE;
        let pins = turns + (members * TURN_STRIDE as u64 * 8).next_multiple_of(PAGE);
        let hints = pins + (members * PIN_STRIDE as u64 * 8).next_multiple_of(PAGE);
        let tags = hints + (HINTS as u64 * 8).next_multiple_of(PAGE);
        let words_at = tags + (units * 8).next_multiple_of(PAGE);
        let arena = words_at + (words * 8).next_multiple_of(PAGE);
        let arena_bytes = units.saturating_mul(unit_bytes).checked_next_multiple_of(PAGE);
        let bytes = arena.saturating_add(arena_bytes.unwrap_or(u64::MAX));
        if bytes > MAX_BYTES {
            return Err(GeometryError::Bytes { units, unit_bytes, bytes, max: MAX_BYTES });
        }
        Ok(Self { geometry, turns, pins, hints, tags, words: words_at, arena, bytes })
    }

    /// Returns log2 of the bytes of a unit, for divisions by shifting.
    #[inline(always)]
    pub fn unit_log2(&self) -> u32 {
        self.geometry.unit_bytes.trailing_zeros()
    }

    /// Returns the byte behind the last unit.
    pub fn end(&self) -> u64 {
        self.arena + self.geometry.units * self.geometry.unit_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, Layout, MAX_BYTES, PAGE};
    use crate::error::GeometryError;
    use proptest::prelude::*;

    proptest! {
        /// Any numbers that a header may hold are refused, or give parts that follow each other on pages.
        #[test]
        fn any_geometry_is_refused_or_has_room(
            units in prop_oneof![any::<u64>(), 0..5000_u64, Just(1 << 40)],
            unit_bytes in prop_oneof![any::<u64>(), (0..64_u32).prop_map(|log2| 1 << log2)],
            members in prop_oneof![any::<u64>(), 0..2000_u64],
        ) {
            if let Ok(layout) = Layout::new(Geometry { units, unit_bytes, members }) {
                prop_assert!(layout.turns >= PAGE && layout.pins >= layout.turns + 64 * members);
                prop_assert!(layout.hints >= layout.pins + 256 * members && layout.tags > layout.hints);
                prop_assert!(layout.words >= layout.tags + 8 * units && layout.end() <= layout.bytes);
                prop_assert!(layout.arena >= layout.words + 8 * nbbs::metadata_words(units) as u64);
                for at in [layout.turns, layout.pins, layout.hints, layout.tags, layout.words, layout.arena, layout.bytes] {
                    prop_assert_eq!(at % PAGE, 0);
                }
                prop_assert!(layout.bytes <= MAX_BYTES);
            }
        }
    }

    /// Whatever the size of a pointer.
    #[test]
    fn a_segment_can_be_mapped() {
        let two_gib = Geometry { units: 1 << 19, unit_bytes: 4096, members: 1 };
        match two_gib.file_bytes() {
            Ok(bytes) => assert!(isize::try_from(bytes).is_ok()),
            Err(refused) => {
                let is_named =
                    matches!(refused, GeometryError::Bytes { max, .. } if max == isize::MAX as u64);
                assert!(is_named, "{refused}");
            }
        }
    }

    #[test]
    fn errors_name_value_and_limit() {
        let good = Geometry { units: 64, unit_bytes: 4096, members: 8 };
        assert!(good.file_bytes().is_ok());
        let said = |geometry: Geometry| geometry.file_bytes().unwrap_err().to_string();
        assert_eq!(
            said(Geometry { units: 0, ..good }),
            "0 units: a segment has 1 to 1099511627776"
        );
        assert_eq!(
            said(Geometry { unit_bytes: 100, ..good }),
            "units of 100 bytes: a power of two from 64 to 1073741824"
        );
        assert_eq!(
            said(Geometry { members: 1023, ..good }),
            "1023 members: a segment has seats for 1 to 1022"
        );
        let most = format!("a segment has at most {MAX_BYTES}");
        // The units alone would fit.
        let with_bookkeeping =
            Geometry { units: MAX_BYTES.next_power_of_two() / 64, unit_bytes: 64, members: 8 };
        let Err(GeometryError::Bytes { bytes, .. }) = with_bookkeeping.file_bytes() else {
            panic!("{with_bookkeeping:?}")
        };
        assert!(bytes > MAX_BYTES && said(with_bookkeeping).ends_with(&most));
        let units = 1_u64 << 40;
        assert_eq!(
            said(Geometry { units, unit_bytes: 1 << 30, ..good }),
            format!("{units} units of 1073741824 bytes take {} bytes: {most}", u64::MAX)
        );
    }
}
