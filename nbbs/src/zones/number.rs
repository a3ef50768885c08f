//! Renumbers a zone's answers to numbers among all zones.

use core::ops::Range;

use crate::error::{BatchError, FreeError, RangeError, RequestError, ResizeError};

/// An answer that a unit is in no zone, but in a gap between them.
pub(super) trait InNoZone {
    fn in_no_zone(unit: u64, gap: Range<u64>) -> Self;
}

macro_rules! in_no_zone {
    ($($error:ty),*) => {
        $(impl InNoZone for $error {
            fn in_no_zone(unit: u64, gap: Range<u64>) -> Self {
                Self::InNoZone { unit, gap_start: gap.start, gap_end: gap.end }
            }
        })*
    };
}

in_no_zone!(FreeError, RangeError, RequestError);

impl InNoZone for ResizeError {
    fn in_no_zone(unit: u64, gap: Range<u64>) -> Self {
        Self::Free(FreeError::in_no_zone(unit, gap))
    }
}

/// An answer of a zone that names units.
pub(super) trait Numbered {
    /// Returns the same answer, of the zone whose first unit is `base` among all zones.
    fn among_all(self, base: u64) -> Self;
}

impl Numbered for FreeError {
    fn among_all(mut self, base: u64) -> Self {
        match &mut self {
            Self::OutOfRange { start, end, units } => outside(start, end, units, base),
            Self::Misaligned { index, .. }
            | Self::NotAllocated { index }
            | Self::NotABlock { index }
            | Self::Reserved { index }
            | Self::WrongOrder { index, .. }
            | Self::WrongLength { index, .. } => *index += base,
            Self::OrderTooLarge { .. } | Self::InNoZone { .. } => {}
        }
        self
    }
}

/// Renumbers a range that ends outside a zone; its limit becomes the end of the zone's units among all zones.
fn outside(start: &mut u64, end: &mut u64, units: &mut u64, base: u64) {
    *start += base;
    *end = end.saturating_add(base);
    *units += base;
}

impl Numbered for RequestError {
    fn among_all(mut self, base: u64) -> Self {
        match &mut self {
            Self::OutOfRange { start, end, units } => outside(start, end, units, base),
            Self::InUse { unit } => *unit += base,
            // `Zones::request` names its own range instead.
            Self::NoPlace { .. }
            | Self::Units { .. }
            | Self::OrderTooLarge { .. }
            | Self::Exhausted { .. }
            | Self::NoZone { .. }
            | Self::InNoZone { .. } => {}
        }
        self
    }
}

impl Numbered for ResizeError {
    fn among_all(mut self, base: u64) -> Self {
        match &mut self {
            Self::Free(error) => *error = error.among_all(base),
            Self::WrongLength { index, .. } => *index += base,
            // Numbers of a part before the zone have wrapped around.
            Self::BeforeRun { start, end, index: limit }
            | Self::BehindRun { start, end, behind: limit } => {
                (*start, *end) = (start.wrapping_add(base), end.wrapping_add(base));
                *limit += base;
            }
            Self::OrderTooLarge { .. } => {}
            Self::OutOfRange { start, end, units } => outside(start, end, units, base),
            Self::InUse { unit } | Self::Contended { unit } => *unit += base,
        }
        self
    }
}

impl Numbered for RangeError {
    fn among_all(mut self, base: u64) -> Self {
        match &mut self {
            Self::OutOfRange { start, end, units } => outside(start, end, units, base),
            Self::InUse { unit } | Self::NotReserved { unit } => *unit += base,
            Self::InNoZone { .. } => {}
        }
        self
    }
}

impl Numbered for BatchError {
    fn among_all(self, base: u64) -> Self {
        Self { error: self.error.among_all(base), ..self }
    }
}
