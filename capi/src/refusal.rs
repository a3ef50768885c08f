//! The library's errors as numbers, and numbers as the library's sentences.

use core::fmt;

use nbbs::{
    AllocError, BatchError, Broken, BrokenCache, FreeError, Invariant, MetadataError, RangeError,
    RequestError, ResizeError,
};
use nbbs_heap::{AddError, AuditError, FreeError as NotHeld};
use nbbs_pool::Exhausted;

use crate::error::{Code, Error};
use crate::{function, setting};

impl Error {
    fn order_too_large(order: u32, max: u32) -> Self {
        Self::of(Code::OrderTooLarge, order.into(), max.into())
    }

    fn out_of_range(start: u64, end: u64, units: u64) -> Self {
        Self::of(Code::OutOfRange, start, units).and(end)
    }
}

impl From<AllocError> for Error {
    #[inline]
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::OrderTooLarge { order, max } => Self::order_too_large(order, max),
            AllocError::Exhausted { units } => Self::of(Code::Exhausted, units, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<FreeError> for Error {
    fn from(error: FreeError) -> Self {
        match error {
            FreeError::OutOfRange { start, end, units } => Self::out_of_range(start, end, units),
            FreeError::OrderTooLarge { order, max } => Self::order_too_large(order, max),
            FreeError::Misaligned { index, order } => {
                Self::of(Code::Misaligned, index, 0).and(order.into())
            }
            FreeError::NotAllocated { index } => Self::of(Code::NotAllocated, index, 0),
            FreeError::NotABlock { index } => Self::of(Code::NotABlock, index, 0),
            FreeError::Reserved { index } => Self::of(Code::Reserved, index, 0),
            FreeError::WrongOrder { index, order, actual } => {
                Self::of(Code::WrongOrder, index, actual.into()).and(order.into())
            }
            FreeError::WrongLength { index, units, actual } => {
                Self::of(Code::WrongLength, index, actual).and(units)
            }
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Units { units, max } => Self::of(Code::Length, units, max),
            RequestError::OrderTooLarge { order, max } => Self::order_too_large(order, max),
            RequestError::OutOfRange { start, end, units } => Self::out_of_range(start, end, units),
            RequestError::NoPlace { units, order, start, end } => {
                Self { detail: order, ..Self::of(Code::NoPlace, units, start).and(end) }
            }
            RequestError::Exhausted { units } => Self::of(Code::Exhausted, units, 0),
            RequestError::InUse { unit } => Self::of(Code::InUse, unit, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<ResizeError> for Error {
    fn from(error: ResizeError) -> Self {
        match error {
            ResizeError::Free(error) => error.into(),
            ResizeError::WrongLength { index, units, actual } => {
                Self { detail: 1, ..Self::of(Code::Length, units, actual).and(index) }
            }
            ResizeError::BeforeRun { start, end, index } => {
                Self { detail: 1, ..Self::of(Code::OutsideRun, start, index).and(end) }
            }
            ResizeError::BehindRun { start, end, behind } => {
                Self::of(Code::OutsideRun, start, behind).and(end)
            }
            ResizeError::OrderTooLarge { order, max } => Self::order_too_large(order, max),
            ResizeError::OutOfRange { start, end, units } => Self::out_of_range(start, end, units),
            ResizeError::InUse { unit } => Self::of(Code::InUse, unit, 0),
            ResizeError::Contended { unit } => Self::of(Code::Contended, unit, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<RangeError> for Error {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::OutOfRange { start, end, units } => Self::out_of_range(start, end, units),
            RangeError::InUse { unit } => Self::of(Code::InUse, unit, 0),
            RangeError::NotReserved { unit } => Self::of(Code::NotReserved, unit, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        error.error.into()
    }
}

impl From<MetadataError> for Error {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::Units { units, max } => Self::of(Code::Units, units, max),
            MetadataError::TooShort { words, needed }
            | MetadataError::LanesTooShort { words, needed } => {
                Self::of(Code::TooShort, bytes_of(words), bytes_of(needed))
            }
            MetadataError::Foreign { units, word } => {
                Self::of(Code::ForeignMetadata, units, word as u64)
            }
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<Broken> for Error {
    fn from(error: Broken) -> Self {
        let Broken { invariant, level, word, slot, unit, .. } = error;
        let rule =
            INVARIANTS.iter().position(|&each| each == invariant).unwrap_or(INVARIANTS.len());
        let detail = (rule as u32) << 16 | slot;
        Self { detail, ..Self::of(Code::Broken, unit, word).and(level as u64) }
    }
}

impl From<BrokenCache> for Error {
    fn from(error: BrokenCache) -> Self {
        let BrokenCache { cpu, index, order, .. } = error;
        Self::of(Code::CacheBroken, index, cpu.unwrap_or(0) as u64).and(order.into())
    }
}

impl From<Exhausted> for Error {
    fn from(error: Exhausted) -> Self {
        match error {
            Exhausted::Limit { limit } => Self::of(Code::Full, limit as u64, 0),
            Exhausted::Slots { slots, limit } => {
                Self::of(Code::Objects, slots as u64, limit as u64)
            }
            Exhausted::Memory { bytes, align } => {
                Self::of(Code::SourceEmpty, bytes as u64, align as u64)
            }
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Self {
        match error {
            AddError::TooSmall { bytes, needed } => {
                Self::of(Code::TooShort, bytes as u64, needed as u64)
            }
            AddError::TooMany { most } => Self::of(Code::Regions, most as u64, 0),
            AddError::Overlaps { address, begins, ends } => {
                Self::of(Code::Overlap, address as u64, begins as u64).and(ends as u64)
            }
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<NotHeld> for Error {
    fn from(error: NotHeld) -> Self {
        match error {
            NotHeld::Foreign { address, regions } => {
                Self::of(Code::NotOfHeap, address as u64, regions as u64)
            }
            NotHeld::Inside { address, begins } => {
                Self::of(Code::InsideUnit, address as u64, begins as u64)
            }
            NotHeld::InsideRun { address } => Self::of(Code::InsideUnit, address as u64, 0),
            NotHeld::NotAllocated { address } => Self::of(Code::NoBlock, address as u64, 0),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

impl From<AuditError> for Error {
    fn from(error: AuditError) -> Self {
        let broken = |value: usize, of| Self::of(Code::HeapBroken, value as u64, 0).and(of);
        match error {
            AuditError::Units(broken) => broken.into(),
            AuditError::Slab { address } => broken(address, 0),
            AuditError::Stack { size } => broken(size, 1),
            AuditError::Kept { address } => broken(address, 2),
            _ => Self::of(Code::Other, 0, 0),
        }
    }
}

/// What `HeapBroken` is of.
fn heap_broken(value: u64, other: u64) -> AuditError {
    let value = value as usize;
    match other {
        0 => AuditError::Slab { address: value },
        1 => AuditError::Stack { size: value },
        _ => AuditError::Kept { address: value },
    }
}

/// The invariants, as `detail` numbers them.
const INVARIANTS: [Invariant; 4] =
    [Invariant::WellFormed, Invariant::InsideArena, Invariant::Dormant, Invariant::Bound];

/// The sentence, and the address that was given, if there was one.
fn at_address(error: FreeError, address: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    if address == 0 { Ok(()) } else { write!(f, ": address {address:#x}") }
}

fn bytes_of(words: usize) -> u64 {
    (words as u64).saturating_mul(8)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, detail, value, limit, other } = *self;
        let Some(known) = self.code() else {
            return write!(f, "{code} is no code of nbbs");
        };
        if let Code::Null | Code::PointerMisaligned | Code::NoArena = known
            && let Some(function) = function::name(other)
        {
            write!(f, "{function}: ")?;
        }
        match known {
            Code::Ok => f.write_str("no error"),
            Code::Null if detail == 1 => write!(f, "the function in argument {value} is null"),
            Code::Null => write!(f, "argument {value} is a null pointer"),
            Code::PointerMisaligned => {
                write!(f, "address {value:#x} is not a multiple of {limit}")
            }
            Code::NoArena if value == 0 => f.write_str("there was no nb_init"),
            Code::NoArena => write!(f, "the handle at {value:#x} is of no arena"),
            Code::TooLong => write!(f, "a length of {value}: it must be at most {limit}"),
            Code::Units => MetadataError::Units { units: value, max: limit }.fmt(f),
            Code::TooShort => write!(f, "memory of {value} bytes: {limit} are needed"),
            Code::ForeignMetadata => {
                MetadataError::Foreign { units: value, word: limit as usize }.fmt(f)
            }
            Code::OrderTooLarge => {
                AllocError::OrderTooLarge { order: value as u32, max: limit as u32 }.fmt(f)
            }
            Code::Exhausted => RequestError::Exhausted { units: value }.fmt(f),
            Code::OutOfRange => {
                RangeError::OutOfRange { start: value, end: other, units: limit }.fmt(f)
            }
            Code::Misaligned => FreeError::Misaligned { index: value, order: other as u32 }.fmt(f),
            Code::NotAllocated => at_address(FreeError::NotAllocated { index: value }, other, f),
            Code::NotABlock => at_address(FreeError::NotABlock { index: value }, other, f),
            Code::Reserved => at_address(FreeError::Reserved { index: value }, other, f),
            Code::WrongOrder => {
                let (order, actual) = (other as u32, limit as u32);
                FreeError::WrongOrder { index: value, order, actual }.fmt(f)
            }
            Code::WrongLength => {
                FreeError::WrongLength { index: value, units: other, actual: limit }.fmt(f)
            }
            Code::Length if detail == 1 => {
                ResizeError::WrongLength { index: other, units: value, actual: limit }.fmt(f)
            }
            Code::Length => write!(f, "a length of {value} units: it must be from 1 to {limit}"),
            Code::OutsideRun if detail == 1 => {
                ResizeError::BeforeRun { start: value, end: other, index: limit }.fmt(f)
            }
            Code::OutsideRun => {
                ResizeError::BehindRun { start: value, end: other, behind: limit }.fmt(f)
            }
            Code::InUse => RequestError::InUse { unit: value }.fmt(f),
            Code::NotReserved => RangeError::NotReserved { unit: value }.fmt(f),
            Code::Contended => ResizeError::Contended { unit: value }.fmt(f),
            Code::Broken => match INVARIANTS.get((detail >> 16) as usize) {
                Some(invariant) => {
                    let slot = detail & 0xffff;
                    write!(f, "{invariant:?} broken at level {other}, ")?;
                    write!(f, "word {limit}, slot {slot} (unit {value})")
                }
                None => write!(f, "an invariant is broken at unit {value}"),
            },
            Code::NoMemory => f.write_str("the arena has not been told where its memory is"),
            Code::ForeignAddress if other > limit => {
                write!(f, "address {value:#x} is not in the memory from {limit:#x} to {other:#x}")
            }
            Code::ForeignAddress => {
                let s = if limit == 1 { "" } else { "s" };
                write!(
                    f,
                    "address {value:#x} is in no memory of the pool, which has {limit} chunk{s}"
                )
            }
            Code::InsideUnit if limit == 0 => NotHeld::InsideRun { address: value as usize }.fmt(f),
            Code::InsideUnit => {
                write!(f, "address {value:#x} is inside what begins at {limit:#x}")
            }
            Code::Size if other == 1 => {
                write!(f, "a size of {value} bytes: it must be a power of two up to {limit}")
            }
            Code::Size => write!(f, "a size of {value} bytes: it must be from 1 to {limit}"),
            Code::Alignment => {
                write!(f, "an alignment of {value}: it must be a power of two up to {limit}")
            }
            Code::NoObject => write!(f, "no object is allocated at {value:#x}"),
            Code::Full => write!(f, "all {value} objects that the pool may have are allocated"),
            Code::SourceEmpty => {
                write!(f, "the source has no {value} bytes at a multiple of {limit}")
            }
            Code::Setting => setting::sentence(self, f),
            Code::CacheBroken => {
                write!(f, "CPU {limit} keeps a block of order {other} ")?;
                write!(f, "at unit {value} that is not its own")
            }
            Code::HeapFull => {
                write!(f, "the heap has no {value} bytes at a multiple of {limit}")
            }
            Code::NotOfHeap => {
                NotHeld::Foreign { address: value as usize, regions: limit as usize }.fmt(f)
            }
            Code::NoBlock => NotHeld::NotAllocated { address: value as usize }.fmt(f),
            Code::Regions => AddError::TooMany { most: value as usize }.fmt(f),
            Code::HeapBroken => heap_broken(value, other).fmt(f),
            Code::NoPlace => {
                let (units, order) = (value, detail);
                RequestError::NoPlace { units, order, start: limit, end: other }.fmt(f)
            }
            Code::Overlap => {
                let (address, begins, ends) = (value as usize, limit as usize, other as usize);
                AddError::Overlaps { address, begins, ends }.fmt(f)
            }
            Code::System => write!(f, "the system refused: errno {value}"),
            Code::NoSegment => f.write_str("the file is no segment"),
            Code::SegmentVersion => {
                write!(f, "the segment has layout version {value}: this code knows {limit}")
            }
            Code::SegmentCorrupt => match other {
                1 => write!(f, "the header says checksum {value:#x}, and has {limit:#x}"),
                2 => write!(
                    f,
                    "word {value} of the bookkeeping is not zero, and nobody writes there"
                ),
                3 => write!(
                    f,
                    "the segment is not whole by its header, but was used: byte {value} is not 0"
                ),
                _ => write!(f, "the header has a field of {value}, which no segment has"),
            },
            Code::SegmentMaking => f.write_str("the segment is not made yet"),
            Code::SegmentHalfMade => {
                f.write_str("whoever made the segment died before it was whole")
            }
            Code::SegmentExists => f.write_str("there is a whole segment already"),
            Code::UnitBytes => {
                write!(f, "units of {value} bytes: a power of two from 64 to {limit}")
            }
            Code::Members => write!(f, "{value} members: a segment has seats for 1 to {limit}"),
            Code::SeatsTaken if limit > 0 => {
                write!(f, "none of {value} seats is free: {limit} are just being taken or left")
            }
            Code::SeatsTaken => write!(f, "all {value} seats are taken by living members"),
            Code::SegmentFull => {
                write!(f, "the segment has no {value} bytes at a multiple of {limit}")
            }
            Code::OutsideSegment => {
                let more = if detail == u32::MAX { " or more" } else { "" };
                write!(
                    f,
                    "{detail} bytes{more} at {value:#x} are not within {limit:#x}..{other:#x}"
                )
            }
            Code::OffsetMisaligned if other == 1 => {
                write!(f, "no slot of {limit} bytes begins at offset {value:#x}")
            }
            Code::OffsetMisaligned => {
                write!(f, "offset {value:#x} is not aligned to {limit} bytes")
            }
            Code::NotYours if limit == 0 => {
                write!(f, "nobody has a block that begins at {value:#x}")
            }
            Code::NotYours => {
                write!(f, "the block at {value:#x} is that of seat {limit}'s member {other}")
            }
            Code::SegmentDamaged => {
                write!(f, "the segment's bookkeeping is damaged: offset {value:#x}")
            }
            Code::Objects => {
                write!(f, "{value} objects are asked for, and the pool may have {limit}")
            }
            Code::SegmentGeometry => {
                let of = match other {
                    0 => "units",
                    1 => "bytes to a unit",
                    _ => "seats for members",
                };
                write!(f, "the segment has {value} {of}: expected were {limit}")
            }
            Code::Other => f.write_str("refused"),
        }
    }
}

impl core::error::Error for Error {}
