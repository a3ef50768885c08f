//! The settings that can be refused, by their names in C.

use core::fmt;
use core::ops::RangeInclusive;

use crate::error::{Code, Error};

/// Which setting was refused: in the `detail` of `NBBS_CODE_SETTING`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `limit` of an `nbbs_pool_config`.
    Limit = 1,
    /// `reserve` of an `nbbs_pool_config`.
    Reserve,
    /// `chunk` of an `nbbs_pool_config`.
    Chunk,
    /// `most` of `nbbs_pool_local_create`.
    Most,
    /// `blocks` of an `nbbs_cache_config`: `detail` names the order, above its 16 bits.
    Blocks,
    /// `large_order` of an `nbbs_cache_config`.
    LargeOrder,
    /// `large_blocks` of an `nbbs_cache_config`.
    LargeBlocks,
    /// `caches` of `nbbs_heap_create`.
    Caches,
    /// `unit` of `nbbs_small_create`, which is 16, 32 or 64.
    Unit,
}

use Setting::*;

const NAMES: [(Setting, &str); 9] = [
    (Limit, "limit"),
    (Reserve, "reserve"),
    (Chunk, "chunk"),
    (Most, "most"),
    (Blocks, "blocks"),
    (LargeOrder, "large_order"),
    (LargeBlocks, "large_blocks"),
    (Caches, "caches"),
    (Unit, "unit"),
];

impl Setting {
    /// Returns the refusal of a value that is not in the range.
    pub(crate) const fn refused(self, value: u64, range: RangeInclusive<u64>) -> Error {
        let refused = Error::of(Code::Setting, value, *range.end()).and(*range.start());
        Error { detail: self as u32, ..refused }
    }
}

/// Writes the sentence of a refused setting.
pub(crate) fn sentence(error: &Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Error { detail, value, limit, other: least, .. } = *error;
    let (number, place) = (detail & 0xffff, detail >> 16);
    match NAMES.iter().find(|&&(setting, _)| setting as u32 == number) {
        Some((Unit, name)) => {
            return write!(f, "the setting {name} is {value}: it must be 16, 32 or 64");
        }
        Some((Blocks, name)) => write!(f, "the setting {name}[{place}] is {value}: ")?,
        Some((_, name)) => write!(f, "the setting {name} is {value}: ")?,
        None => write!(f, "a setting of {value}: ")?,
    }
    match least {
        0 => write!(f, "it must be at most {limit}"),
        _ => write!(f, "it must be from {least} to {limit}"),
    }
}
