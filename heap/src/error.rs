//! Errors: why memory was not added, why a free was refused, and why pages were not taken back.

use core::fmt;

/// Why memory was not added.
///
/// ```
/// use nbbs_heap::{AddError, PlacedSmall};
/// use std::ptr::NonNull;
///
/// let memory = NonNull::from(Box::leak(Box::new([0_u8; 10]))).cast();
/// // SAFETY: nobody else ever uses the memory.
/// let error = unsafe { PlacedSmall::<32>::new(memory, 10) }.unwrap_err();
/// assert!(matches!(error, AddError::TooSmall { bytes: 10, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddError {
    /// No unit fits into the memory beside the bookkeeping.
    TooSmall {
        /// Bytes given.
        bytes: usize,
        /// Bytes that suffice there; for [`Placed::new`](crate::Placed::new), at any address.
        needed: usize,
    },
    /// The heap already has as many regions as it can have.
    TooMany {
        /// That number.
        most: usize,
    },
    /// The memory overlaps that of a region which the heap already has.
    Overlaps {
        /// The first address that was given.
        address: usize,
        /// Where that region begins.
        begins: usize,
        /// The first address behind it.
        ends: usize,
    },
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { bytes, needed } => {
                write!(f, "memory of {bytes} bytes: {needed} are needed")
            }
            Self::TooMany { most } => write!(f, "a heap has at most {most} regions"),
            Self::Overlaps { address, begins, ends } => {
                write!(
                    f,
                    "memory at {address:#x} overlaps a region of the heap, from {begins:#x} to {ends:#x}"
                )
            }
        }
    }
}

impl core::error::Error for AddError {}

/// Why an address is not that of allocated memory.
///
/// ```
/// use nbbs_heap::{FreeError, Heap};
/// use std::alloc::Layout;
///
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
/// let begins = block.addr().get();
/// let inside = block.map_addr(|address| address | 1);
/// assert_eq!(HEAP.usable(inside), Err(FreeError::Inside { address: begins + 1, begins }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The address is not in memory that the heap hands out.
    Foreign {
        /// The address.
        address: usize,
        /// Number of regions that the heap has.
        regions: usize,
    },
    /// The address is inside a slot, or inside the first unit of a run.
    Inside {
        /// The address.
        address: usize,
        /// Where the slot or the run begins.
        begins: usize,
    },
    /// The address is inside a run, behind its first unit. Where the run begins takes a walk to find out, and is not
    /// said.
    InsideRun {
        /// The address.
        address: usize,
    },
    /// Nothing is allocated at the address: it was freed before, or never allocated.
    NotAllocated {
        /// The address.
        address: usize,
    },
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { address, regions } => {
                let s = if *regions == 1 { "" } else { "s" };
                write!(
                    f,
                    "address {address:#x} is in no memory of the heap, which has {regions} region{s}"
                )
            }
            Self::Inside { address, begins } => {
                write!(f, "address {address:#x} is inside what begins at {begins:#x}")
            }
            Self::InsideRun { address } => {
                write!(f, "address {address:#x} is inside a block that begins before it")
            }
            Self::NotAllocated { address } => write!(f, "nothing is allocated at {address:#x}"),
        }
    }
}

impl core::error::Error for FreeError {}

/// Why pages were not taken back: pages do not have so many bytes.
///
/// ```
/// static HEAP: nbbs_heap::Heap<{ 1 << 20 }> = nbbs_heap::Heap::new();
///
/// // SAFETY: nothing is said to be zero.
/// let refused = unsafe { HEAP.discard(1000, |_, _| false) }.unwrap_err();
/// let said = refused.to_string();
/// assert_eq!(said, "pages of 1000 bytes: a page is a power of two, and at most 64 KiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageError {
    /// Bytes of a page, as given.
    pub page: usize,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pages of {} bytes: a page is a power of two, and at most 64 KiB", self.page)
    }
}

impl core::error::Error for PageError {}
