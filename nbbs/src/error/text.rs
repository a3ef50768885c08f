//! Errors as sentences.

use core::fmt;
use core::ops::Range;

use super::{
    AllocError, BatchError, Broken, BrokenCache, FreeError, MetadataError, RangeError,
    RequestError, ResizeError,
};

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Units { units, max } => {
                write!(f, "an arena cannot have {units} units: it has 1 to {max}")
            }
            Self::TooShort { words, needed } => {
                write!(f, "metadata of {words} words: the arena needs {needed}")
            }
            Self::LanesTooShort { words, needed } => {
                write!(f, "lanes of {words} words: one lane takes {needed}")
            }
            Self::NoMemory { words } => {
                write!(f, "there is no memory for {words} words of metadata")
            }
            Self::Foreign { units, word } => {
                write!(f, "metadata is not of an arena of {units} units: word {word} is in use")
            }
        }
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::Exhausted { units: 1 } => f.write_str("no unit is free"),
            Self::Exhausted { units } => write!(f, "no block of {units} units is free"),
            Self::NoZone { zones } => no_zone(f, zones),
        }
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::Misaligned { index, order } => {
                write!(f, "unit {index} is not aligned to a block of order {order}")
            }
            Self::NotAllocated { index } => write!(f, "unit {index} is not allocated"),
            Self::NotABlock { index } => write!(f, "no block begins at unit {index}"),
            Self::Reserved { index } => write!(f, "unit {index} is reserved"),
            Self::WrongOrder { index, order, actual } => {
                write!(f, "the block at unit {index} has order {actual}, not {order}")
            }
            Self::WrongLength { index, units, actual } => wrong_length(f, index, units, actual),
            Self::InNoZone { unit, gap_start, gap_end } => in_no_zone(f, unit, gap_start, gap_end),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Units { units, max } => {
                write!(f, "a run cannot have {units} units: the arena has 1 to {max}")
            }
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::NoPlace { units, order, start, end } => {
                let s = plural(units);
                write!(f, "units {start}..{end} have no place for {units} unit{s}")?;
                if order > 0 { write!(f, " at a multiple of 2^{order}") } else { Ok(()) }
            }
            Self::Exhausted { units: 1 } => f.write_str("no unit that fits the request is free"),
            Self::Exhausted { units } => {
                write!(f, "no {units} units that fit the request are free")
            }
            Self::InUse { unit } => in_use(f, unit),
            Self::NoZone { zones } => no_zone(f, zones),
            Self::InNoZone { unit, gap_start, gap_end } => in_no_zone(f, unit, gap_start, gap_end),
        }
    }
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Free(error) => error.fmt(f),
            Self::WrongLength { index, units, actual } => wrong_length(f, index, units, actual),
            Self::BeforeRun { start, end, index } => {
                write!(
                    f,
                    "units {start}..{end} are no part of the run, which begins at unit {index}"
                )
            }
            Self::BehindRun { start, end, behind } => {
                write!(
                    f,
                    "units {start}..{end} are no part of the run, which ends before unit {behind}"
                )
            }
            Self::OrderTooLarge { order, max } => order_too_large(f, order, max),
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::InUse { unit } => in_use(f, unit),
            Self::Contended { unit } => {
                write!(
                    f,
                    "unit {unit} cannot be split now, as another thread's claim stands below it: \
                     try again, or, if that thread has died, free the run"
                )
            }
        }
    }
}

fn order_too_large(f: &mut fmt::Formatter<'_>, order: u32, max: u32) -> fmt::Result {
    write!(f, "order {order} is above the arena's largest, {max}")
}

fn out_of_range(f: &mut fmt::Formatter<'_>, range: Range<u64>, units: u64) -> fmt::Result {
    let last = units.saturating_sub(1);
    if range.end <= units {
        write!(f, "units {range:?} are an empty range")
    } else if range.end.saturating_sub(range.start) <= 1 {
        write!(f, "unit {} is beyond the last unit, {last}", range.start)
    } else {
        write!(f, "units {range:?} reach beyond the last unit, {last}")
    }
}

fn wrong_length(f: &mut fmt::Formatter<'_>, index: u64, units: u64, actual: u64) -> fmt::Result {
    let s = plural(actual);
    write!(f, "the run at unit {index} has {actual} unit{s}, so {units} is not possible")
}

/// The ending of a noun of which there are so many.
fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn no_zone(f: &mut fmt::Formatter<'_>, zones: usize) -> fmt::Result {
    write!(f, "none of the given numbers is that of a zone: there are {zones}, numbered from 0")
}

fn in_no_zone(f: &mut fmt::Formatter<'_>, unit: u64, start: u64, end: u64) -> fmt::Result {
    write!(f, "unit {unit} is in no zone: there is none from unit {start} on")?;
    if end < u64::MAX { write!(f, ", up to unit {}", end - 1) } else { Ok(()) }
}

fn in_use(f: &mut fmt::Formatter<'_>, unit: u64) -> fmt::Result {
    write!(f, "unit {unit} is in use or reserved")
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} blocks: {}", self.done, self.error)
    }
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { start, end, units } => out_of_range(f, start..end, units),
            Self::InUse { unit } => in_use(f, unit),
            Self::NotReserved { unit } => write!(f, "unit {unit} is not reserved"),
            Self::InNoZone { unit, gap_start, gap_end } => in_no_zone(f, unit, gap_start, gap_end),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, level, word, slot, unit } = self;
        write!(f, "{invariant:?} broken at level {level}, word {word}, slot {slot} (unit {unit})")
    }
}

impl fmt::Display for BrokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, index, order } = self;
        match cpu {
            Some(cpu) => write!(f, "CPU {cpu}")?,
            None => write!(f, "a cache")?,
        }
        write!(f, " keeps a block of order {order} at unit {index} that is not its own")
    }
}
