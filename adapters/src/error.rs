//! Errors of a region.

use core::fmt;

use nbbs::{FreeError, RequestError};

use crate::FRAME_SIZE;

/// Why a region was not made, or refused a request. Nothing has changed, unless stated otherwise.
///
/// ```
/// # use nbbs::{Buddy, Metadata, metadata_words};
/// # use nbbs_adapters::{Region, RegionError};
/// # let metadata = Metadata::<{ metadata_words(64) }>::new();
/// # let buddy = Buddy::new(metadata.words(), 64)?;
/// let refused = Region::new(buddy, 0x1234).unwrap_err();
/// assert_eq!(refused, RegionError::Base { base: 0x1234, frames: 64 });
/// assert_eq!(Region::new(buddy, 0x1000)?.free(0, 1), Err(RegionError::Address { address: 0, start: 0x1000, end: 0x41000 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionError {
    /// The base is not a multiple of a frame, or the address behind the last frame does not fit into a `usize`.
    Base {
        /// Address given.
        base: u64,
        /// Frames in the arena.
        frames: u64,
    },
    /// No frame of the region begins there.
    Address {
        /// Address given.
        address: u64,
        /// Where the region begins.
        start: u64,
        /// Where it ends.
        end: u64,
    },
    /// Frames could not be allocated as requested.
    Request {
        /// Why, in units of the arena: unit 0 is the frame at `base`.
        error: RequestError,
        /// Where the region begins.
        base: u64,
    },
    /// Frames were not freed.
    Free {
        /// Why, in units of the arena: unit 0 is the frame at `base`.
        error: FreeError,
        /// Where the region begins.
        base: u64,
    },
    /// A frame of a memory map's entry was not reserved, so nothing of the entry was added; those before it have been.
    Map {
        /// Position of the entry in the map, from 0 on; entries that are not usable count.
        entry: usize,
        /// Where the first such frame begins.
        address: u64,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base { base, frames } => write!(
                f,
                "a region of {frames} frames at {base:#x}: it begins at a multiple of {FRAME_SIZE} and ends by {:#x}",
                usize::MAX
            ),
            Self::Address { address, start, end } => {
                write!(f, "no frame of the region {start:#x}..{end:#x} begins at {address:#x}")
            }
            Self::Request { error, base } => write!(f, "{error}; unit 0 is the frame at {base:#x}"),
            Self::Free { error, base } => write!(f, "{error}; unit 0 is the frame at {base:#x}"),
            Self::Map { entry, address } => write!(
                f,
                "entry {entry} of the map, counted from 0: the frame at {address:#x} is not reserved"
            ),
        }
    }
}

impl core::error::Error for RegionError {}
