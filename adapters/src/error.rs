//! Errors of a region.

use core::fmt;

use nbbs::{FreeError, RangeError, RequestError};

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
    /// The base is not a multiple of a frame, or the last address does not fit into a `usize`.
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
    Request(RequestError),
    /// Frames were not freed.
    Free(FreeError),
    /// A usable range of a memory map was not added; those before it have been.
    Map(RangeError),
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base { base, frames } => write!(
                f,
                "a region of {frames} frames at {base:#x}: it begins at a multiple of {FRAME_SIZE} and ends below {:#x}",
                usize::MAX
            ),
            Self::Address { address, start, end } => {
                write!(f, "no frame of the region {start:#x}..{end:#x} begins at {address:#x}")
            }
            Self::Request(error) => error.fmt(f),
            Self::Free(error) => error.fmt(f),
            Self::Map(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RegionError {}

impl From<RequestError> for RegionError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}
