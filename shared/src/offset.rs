//! Offsets: addresses within a segment, in bytes from its beginning, which are the same in every process.

use std::cmp;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// The position of a `T` in a segment. It has eight bytes and is never 0, so `Option<Offset<T>>` has eight bytes, too.
///
/// ```
/// use nbbs_shared::Offset;
///
/// assert_eq!(size_of::<Option<Offset<u32>>>(), 8);
/// assert_eq!(Offset::<u32>::new(0), None);
/// assert_eq!(Offset::<u32>::new(4096).unwrap().bytes(), 4096);
/// assert_eq!(Offset::<u32>::new(4096).unwrap().to_string(), "0x1000");
/// assert!(Offset::<u32>::new(4096) < Offset::new(8192));
/// ```
#[repr(transparent)]
pub struct Offset<T: ?Sized>(NonZeroU64, PhantomData<fn() -> *mut T>);

impl<T: ?Sized> Offset<T> {
    /// Creates the offset of this many bytes from the beginning; `None` for 0. Whether it is within a segment is
    /// checked when it is used.
    ///
    /// ```
    /// # use nbbs_shared::Offset;
    /// assert_eq!(Offset::<u32>::new(0), None);
    /// assert!(Offset::<u32>::new(4096).is_some());
    /// ```
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        match NonZeroU64::new(bytes) {
            Some(bytes) => Some(Self(bytes, PhantomData)),
            None => None,
        }
    }

    /// Returns the bytes from the beginning of the segment.
    ///
    /// ```
    /// # use nbbs_shared::Offset;
    /// assert_eq!(Offset::<u32>::new(4096).map(Offset::bytes), Some(4096));
    /// ```
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0.get()
    }

    /// Returns the same offset, with another type.
    ///
    /// ```
    /// # use nbbs_shared::Offset;
    /// let bytes = Offset::<u8>::new(4096).unwrap();
    /// assert_eq!(bytes.cast::<u64>().bytes(), 4096);
    /// ```
    #[must_use]
    pub const fn cast<U: ?Sized>(self) -> Offset<U> {
        Offset(self.0, PhantomData)
    }
}

impl<T: ?Sized> Clone for Offset<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Offset<T> {}

impl<T: ?Sized> PartialEq for Offset<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: ?Sized> Eq for Offset<T> {}

/// By position.
impl<T: ?Sized> Ord for Offset<T> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T: ?Sized> PartialOrd for Offset<T> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: ?Sized> Hash for Offset<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The bytes from the beginning, in hexadecimal.
impl<T: ?Sized> fmt::Display for Offset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<T: ?Sized> fmt::Debug for Offset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offset({:#x})", self.0)
    }
}

/// An offset or none that several members can change at the same time: a link of a structure in the segment, or its
/// root.
///
/// ```
/// use nbbs_shared::{AtomicOffset, Offset};
/// use std::sync::atomic::Ordering::{AcqRel, Acquire};
///
/// let link = AtomicOffset::<u64>::none();
/// let first = Offset::new(4096);
/// assert_eq!(link.compare_exchange(None, first, AcqRel, Acquire), Ok(None));
/// assert_eq!(link.load(Acquire), first);
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicOffset<T: ?Sized>(AtomicU64, PhantomData<fn() -> *mut T>);

impl<T: ?Sized> AtomicOffset<T> {
    /// Creates one that is none: all its bytes are zero.
    ///
    /// ```
    /// # use nbbs_shared::AtomicOffset;
    /// # use std::sync::atomic::Ordering::Acquire;
    /// static ROOT: AtomicOffset<u64> = AtomicOffset::none();
    /// assert_eq!(ROOT.load(Acquire), None);
    /// ```
    #[must_use]
    pub const fn none() -> Self {
        Self(AtomicU64::new(0), PhantomData)
    }

    /// Reads it.
    ///
    /// ```
    /// # use nbbs_shared::{AtomicOffset, Offset};
    /// # use std::sync::atomic::Ordering::{Acquire, Release};
    /// let link = AtomicOffset::<u64>::none();
    /// link.store(Offset::new(4096), Release);
    /// assert_eq!(link.load(Acquire).map(Offset::bytes), Some(4096));
    /// ```
    #[must_use]
    pub fn load(&self, order: Ordering) -> Option<Offset<T>> {
        Offset::new(self.0.load(order))
    }

    /// Writes it.
    ///
    /// ```
    /// # use nbbs_shared::{AtomicOffset, Offset};
    /// # use std::sync::atomic::Ordering::{Acquire, Release};
    /// let link = AtomicOffset::<u64>::none();
    /// link.store(Offset::new(4096), Release);
    /// link.store(None, Release);
    /// assert_eq!(link.load(Acquire), None);
    /// ```
    pub fn store(&self, offset: Option<Offset<T>>, order: Ordering) {
        self.0.store(raw(offset), order);
    }

    /// Replaces `current` by `new`, and returns what was found.
    ///
    /// # Errors
    /// What was found, if it is not `current`.
    ///
    /// ```
    /// # use nbbs_shared::{AtomicOffset, Offset};
    /// # use std::sync::atomic::Ordering::{AcqRel, Acquire};
    /// let link = AtomicOffset::<u64>::none();
    /// let (first, second) = (Offset::new(4096), Offset::new(8192));
    /// assert_eq!(link.compare_exchange(None, first, AcqRel, Acquire), Ok(None));
    /// assert_eq!(link.compare_exchange(None, second, AcqRel, Acquire), Err(first));
    /// ```
    pub fn compare_exchange(
        &self,
        current: Option<Offset<T>>,
        new: Option<Offset<T>>,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Option<Offset<T>>, Option<Offset<T>>> {
        let exchanged = self.0.compare_exchange(raw(current), raw(new), success, failure);
        exchanged.map(Offset::new).map_err(Offset::new)
    }
}

fn raw<T: ?Sized>(offset: Option<Offset<T>>) -> u64 {
    offset.map_or(0, Offset::bytes)
}
