//! Errors. Every error names the value and the limit that it broke.

use core::alloc::Layout;
use core::fmt;

/// Why there is no slot, or no memory for more.
///
/// ```
/// use nbbs_pool::{Config, Exhausted, Pool};
///
/// let pool = Pool::<u32>::with_config(Config::new().limit(100));
/// assert_eq!(pool.reserve(200), Err(Exhausted::Slots { slots: 200, limit: 100 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exhausted {
    /// All slots are in use, or kept by [`Local`](crate::Local)s, and the pool has reached its limit.
    Limit {
        /// The most slots that the pool may have.
        limit: usize,
    },
    /// A pool cannot have so many slots, whatever memory its source has. Nothing has changed.
    Slots {
        /// Slots that there were to be.
        slots: usize,
        /// The most slots that the pool may have: its limit, or as many as [there can be bytes
        /// for](crate::Config::check_slots).
        limit: usize,
    },
    /// The source has no memory for a further chunk. An allocation says so if, in addition, all slots are in use, or
    /// kept by [`Local`](crate::Local)s.
    Memory {
        /// Bytes that could not be allocated.
        bytes: usize,
        /// The required alignment of their address.
        align: usize,
    },
}

impl Exhausted {
    /// More bytes than there are addresses.
    pub(crate) const ENDLESS: Self = Self::Memory { bytes: usize::MAX, align: 1 };

    /// The source has no block of this layout.
    pub(crate) const fn of(layout: Layout) -> Self {
        Self::Memory { bytes: layout.size(), align: layout.align() }
    }
}

/// The object for which there was no slot, and why there was none.
///
/// ```
/// use nbbs_pool::{Config, Pool};
///
/// let pool = Pool::<String>::with_config(Config::new().limit(1));
/// let first = pool.alloc_box("first".to_owned());
/// let full = pool.alloc_box("second".to_owned()).unwrap_err();
/// assert_eq!(full.value, "second"); // it is not lost
/// assert_eq!(full.to_string(), "no slot is free: the pool has 1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Full<T> {
    /// The object.
    pub value: T,
    /// Why.
    pub reason: Exhausted,
}

/// Why a pointer was refused. Nothing has changed.
///
/// ```
/// use nbbs_pool::{FreeError, Pool};
///
/// let pool = Pool::<u32>::new();
/// let seven = pool.alloc(7).unwrap();
/// assert_eq!(pool.free(seven), Ok(()));
/// let address = seven.addr().get();
/// assert_eq!(pool.free(seven), Err(FreeError::NotAllocated { address }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The address lies in no chunk of the pool.
    Foreign {
        /// Address given.
        address: usize,
        /// Number of chunks of the pool; the address is in none of them.
        chunks: usize,
    },
    /// The address lies inside a slot.
    Misaligned {
        /// Address given.
        address: usize,
        /// Where the slot begins.
        slot: usize,
    },
    /// There is no object there that was allocated by pointer: it was freed before, never allocated, or is owned by a
    /// [`PoolBox`](crate::PoolBox).
    NotAllocated {
        /// Address given.
        address: usize,
    },
}

/// Why a handle was refused. Nothing has changed.
///
/// ```
/// use nbbs_pool::{HandleError, Handles};
///
/// let numbers = Handles::<u32>::new();
/// let seven = numbers.insert(7).unwrap();
/// assert_eq!(numbers.remove(seven), Ok(()));
/// assert!(matches!(numbers.remove(seven), Err(HandleError::Stale { .. })));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandleError {
    /// The pool has no such slot.
    OutOfRange {
        /// Slot that the handle names.
        index: usize,
        /// Slots in the pool.
        capacity: usize,
    },
    /// The object is gone: the slot is free, or belongs to another object by now.
    Stale {
        /// Generation of the handle.
        generation: u32,
        /// Generation of the slot.
        current: u32,
    },
    /// The object already has the largest number of guards that can be counted.
    Pinned {
        /// Guards that it has.
        guards: u32,
        /// The largest number.
        max: u32,
    },
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Limit { limit } => write!(f, "no slot is free: the pool has {limit}"),
            Self::Slots { slots, limit } => {
                write!(f, "{slots} slots are asked for, and the pool may have {limit}")
            }
            Self::Memory { bytes, align } => {
                write!(
                    f,
                    "the source has no {bytes} bytes at a multiple of {align} for further slots"
                )
            }
        }
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Foreign { address, chunks } => {
                let s = if chunks == 1 { "" } else { "s" };
                write!(f, "{address:#x} is in no memory of the pool, which has {chunks} chunk{s}")
            }
            Self::Misaligned { address, slot } => {
                write!(f, "{address:#x} lies inside the slot that begins at {slot:#x}")
            }
            Self::NotAllocated { address } => write!(f, "no object is allocated at {address:#x}"),
        }
    }
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { index, capacity } => {
                write!(f, "the handle names slot {index} of a pool of {capacity} slots")
            }
            Self::Stale { generation, current } => {
                write!(f, "the handle is of generation {generation}, its slot of {current}")
            }
            Self::Pinned { guards, max } => {
                write!(f, "the object has {guards} guards, and may have {max}")
            }
        }
    }
}

impl core::error::Error for Exhausted {}
impl<T> core::error::Error for Full<T> {}
impl core::error::Error for FreeError {}
impl core::error::Error for HandleError {}
