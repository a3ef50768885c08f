//! The errors of segments as numbers. Their sentences are where the others' are.

use nbbs_shared::{
    AllocError, AttachError, Geometry, GeometryError, JoinError, Offset, OffsetError, PathError,
    Segment,
};

use super::SharedId;
use crate::error::{Code, Error};

/// What blocks are aligned to at most: a page.
pub(super) const MOST_ALIGN: u64 = 4096;

/// The system's numbers for "no such descriptor", and for what has none.
pub(super) const EBADF: i32 = 9;
const EIO: i32 = 5;

/// An offset of the caller's. 0 is none: where the memory is, the segment says.
#[inline(always)]
pub(super) fn offset(segment: &Segment, bytes: u64) -> Result<Offset<u8>, Error> {
    Offset::new(bytes).ok_or_else(|| {
        let refused = segment.bytes_at(0, 1).map_err(Error::from);
        refused.err().unwrap_or(Error::of(Code::OutsideSegment, 0, 0))
    })
}

pub(super) fn of_system(error: std::io::Error) -> Error {
    Error::of(Code::System, error.raw_os_error().unwrap_or(EIO) as u64, 0)
}

/// The first dimension in which two differ.
fn unexpected(found: Geometry, expected: Geometry) -> Error {
    let all = |of: Geometry| [of.units, of.unit_bytes, of.members];
    let pairs = all(found).into_iter().zip(all(expected));
    let differs = (0..).zip(pairs).find(|(_, (found, expected))| found != expected);
    let (which, (found, expected)) = differs.unwrap_or_default();
    Error::of(Code::SegmentGeometry, found, expected).and(which)
}

impl From<GeometryError> for Error {
    fn from(error: GeometryError) -> Self {
        match error {
            GeometryError::Units { units, max } => Self::of(Code::Units, units, max),
            GeometryError::UnitBytes { unit_bytes, max, .. } => {
                Self::of(Code::UnitBytes, unit_bytes, max)
            }
            GeometryError::Members { members, max } => Self::of(Code::Members, members, max),
            GeometryError::Bytes { bytes, max, .. } => Self::of(Code::Size, bytes, max),
            GeometryError::Unexpected { found, expected } => unexpected(found, expected),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<AttachError> for Error {
    fn from(error: AttachError) -> Self {
        let corrupt = |value, limit, of| Self::of(Code::SegmentCorrupt, value, limit).and(of);
        match error {
            AttachError::System { errno, .. } => Self::of(Code::System, errno as u64, 0),
            AttachError::Foreign => Self::of(Code::NoSegment, 0, 0),
            AttachError::Short { bytes, least } => Self::of(Code::TooShort, bytes, least),
            AttachError::Version { version, known } => {
                Self::of(Code::SegmentVersion, version, known)
            }
            AttachError::Corrupt { value, .. } => corrupt(value, 0, 0),
            AttachError::Checksum { found, computed } => corrupt(found, computed, 1),
            AttachError::Bookkeeping { word } => corrupt(word as u64, 0, 2),
            AttachError::Used { at } => corrupt(at, 0, 3),
            AttachError::Name { bytes, max } => Self::of(Code::TooLong, bytes as u64, max as u64),
            AttachError::Geometry(error) => error.into(),
            AttachError::Making => Self::of(Code::SegmentMaking, 0, 0),
            AttachError::HalfMade => Self::of(Code::SegmentHalfMade, 0, 0),
            AttachError::Exists => Self::of(Code::SegmentExists, 0, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        error.error.into()
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Full { members } => Self::of(Code::SeatsTaken, members as u64, 0),
            JoinError::Changing { members, changing } => {
                Self::of(Code::SeatsTaken, members as u64, changing as u64)
            }
            JoinError::System { errno, .. } => Self::of(Code::System, errno as u64, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::TooLarge { layout, max } => Self::of(Code::Size, layout.size() as u64, max),
            AllocError::Exhausted { layout } => {
                Self::of(Code::SegmentFull, layout.size() as u64, layout.align() as u64)
            }
            AllocError::Alignment { layout, max } => {
                Self::of(Code::Alignment, layout.align() as u64, max)
            }
            AllocError::Damaged => Self::of(Code::SegmentDamaged, 0, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<OffsetError> for Error {
    fn from(error: OffsetError) -> Self {
        match error {
            OffsetError::Outside { offset, bytes, start, end } => {
                let detail = u32::try_from(bytes).unwrap_or(u32::MAX);
                Self { detail, ..Self::of(Code::OutsideSegment, offset, start).and(end) }
            }
            OffsetError::NoSlot { offset, bytes } => {
                Self::of(Code::OffsetMisaligned, offset, bytes).and(1)
            }
            OffsetError::Misaligned { offset, align } => {
                Self::of(Code::OffsetMisaligned, offset, align)
            }
            OffsetError::NotYours { offset, owner } => {
                let SharedId { seat, generation } =
                    owner.map_or(SharedId::default(), SharedId::from);
                Self::of(Code::NotYours, offset, seat).and(generation)
            }
            OffsetError::Damaged { offset } => Self::of(Code::SegmentDamaged, offset, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}
