//! Operations on runs, from one lane: an exact number of units, anywhere or at a given place.

use super::Lane;
use crate::error::{FreeError, RequestError};
use crate::request::Request;
use crate::sync::Word;

impl<W: Word> Lane<'_, W> {
    /// Allocates a run of exactly `units` consecutive units, and returns the first.
    ///
    /// If the number is a power of two, the run is a block, aligned to its size, as long as such a block is free. Free
    /// a run with [`free`](Self::free) or [`free_units`](Self::free_units).
    ///
    /// Cost: one read-modify-write if the run lies in one word. It does so if it has fewer than 32 units and a leaf word
    /// near the lane's last has room, or if its place is up to 15 larger slots (of 32 units, 512, ...) of one word.
    /// Otherwise one for each word, and one more. Each slot that is split takes one or two. Callable from interrupt and
    /// signal handlers.
    ///
    /// A run that spans words is claimed piece by piece, its first units first. Others see the claimed pieces as in
    /// use; if one piece cannot be claimed, the others are given back. A thread that dies in the call costs the pieces
    /// that it has claimed.
    ///
    /// # Errors
    /// [`RequestError::Units`], or [`RequestError::Exhausted`] if every place for the run was in use when it was
    /// examined, or in the hands of an operation that had not returned.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(37)?;
    /// assert_eq!(buddy.stats().free_units, 64 - 37);
    /// cpu.free_units(run, 37)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_units(&self, units: u64) -> Result<u64, RequestError> {
        self.runs.alloc_units(units)
    }

    /// Allocates units `index..index + units`, if all are free, and returns `index`.
    ///
    /// Cost, and what others can see: as for [`alloc_units`](Self::alloc_units), without a search. Below a larger block
    /// each call claims and takes that back, which takes up to 60 accesses, and 12 more for each level that an arena of
    /// 2^25 units or more has besides; [`request`](Self::request) within the same units looks first. Callable from
    /// interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RequestError::Units`], [`RequestError::OutOfRange`], and [`RequestError::InUse`] if a unit is in use or
    /// another thread is allocating around it at that moment. Nothing has changed.
    ///
    /// ```
    /// # use nbbs::RequestError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// assert_eq!(cpu.alloc_at(17, 30), Ok(17));
    /// assert_eq!(cpu.alloc_at(46, 2), Err(RequestError::InUse { unit: 46 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at(&self, index: u64, units: u64) -> Result<u64, RequestError> {
        self.runs.alloc_at(index, units)
    }

    /// Allocates a run that meets `request`, at the first suitable place of its range, or at the last one with
    /// [`top_down`](Request::top_down). A request with neither a range nor `top_down` may be served at any place.
    ///
    /// Cost: that of [`alloc_units`](Self::alloc_units), and of a search from that end of the range, which descends
    /// only where a bound promises a free block of half the size: few loads in the common case, in the worst some
    /// dozens for each word in use. A request for a block of order 1 or more, with no range, offset or `top_down`,
    /// costs what [`alloc`](Self::alloc) does. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RequestError::Units`], [`RequestError::OrderTooLarge`] or [`RequestError::OutOfRange`];
    /// [`RequestError::NoPlace`] if the range has no place for such a run, whatever is free; or
    /// [`RequestError::Exhausted`], as in [`alloc_units`](Self::alloc_units).
    ///
    /// ```
    /// # use nbbs::{Request, RequestError};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let below_20 = || Request::units(10).within(0..20);
    /// assert_eq!(cpu.request(below_20().top_down())?, 10);
    /// assert_eq!(cpu.request(below_20())?, 0);
    /// assert_eq!(cpu.request(below_20()), Err(RequestError::Exhausted { units: 10 }));
    /// let never = RequestError::NoPlace { units: 10, order: 0, start: 15, end: 20 };
    /// assert_eq!(cpu.request(Request::units(10).within(15..20)), Err(never));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn request(&self, request: Request) -> Result<u64, RequestError> {
        self.runs.request(request)
    }

    /// Frees the block or run of `units` units at `index`.
    ///
    /// Cost: that of [`free_sized`](Self::free_sized) for a block; otherwise two read-modify-writes for the first word
    /// of the run, one for each further word, and two or three for each word at any level that this empties. Callable
    /// from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`free`](Self::free), and [`FreeError::WrongLength`]; nothing has changed.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let run = cpu.alloc_units(9)?;
    /// let refused = FreeError::WrongLength { index: run, units: 8, actual: 9 };
    /// assert_eq!(cpu.free_units(run, 8), Err(refused));
    /// assert_eq!(cpu.free_units(run, 9), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_units(&self, index: u64, units: u64) -> Result<(), FreeError> {
        self.runs.free_units(index, units)
    }
}
