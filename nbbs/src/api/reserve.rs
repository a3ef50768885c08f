//! Reserving units, and adding memory.

use core::ops::Range;

use super::Buddy;
use crate::error::RangeError;
use crate::sync::Word;

// From lane 0: a reservation is nobody's allocation.
impl<W: Word> Buddy<'_, W> {
    /// Reserves the units of `range`: they are not handed out until [`Buddy::release`].
    ///
    /// Either all units are reserved or none. Cost: a read-modify-write for every 32 units, one for each slot above, at
    /// any level, that this splits, and for every 512 units two or three at each level where a bound falls: in free
    /// memory 38 for 512 units, and somewhat more in large arenas. May run while others allocate and free; they may
    /// temporarily see a part of the range in use, which becomes free again if the call is refused. Callable from
    /// interrupt and signal handlers.
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], or [`RangeError::InUse`] if a unit is allocated or reserved already, or if another
    /// thread is allocating around it at that moment; nothing has changed. (If somebody wrongly releases a part of the
    /// range before the call returns, the rest of its 32 units may stay reserved.)
    ///
    /// ```
    /// # use nbbs::RangeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(0..5)?;
    /// assert_eq!(buddy.alloc(3)?, 8);
    /// assert_eq!(buddy.reserve(4..6), Err(RangeError::InUse { unit: 4 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.on(0).runs.reserve(range)
    }

    /// Frees the units of `range`, all of which must be reserved: the end of a reservation, or memory that is added
    /// later.
    ///
    /// The range is checked as a whole before anything changes. Cost: a read-modify-write for every 32 units, and
    /// merges. May run while others allocate and free. Callable from interrupt and signal handlers.
    ///
    /// The caller must own the reservation. Units that another thread is reserving, releasing, freeing, resizing, or
    /// allocating as a run across words look reserved in the meantime. A call that names such units may be refused
    /// after a part of its range was released, or may release units in use. If that hits a run that is being resized,
    /// the whole run is freed, and its owner's call is refused with
    /// [`FreeError::NotAllocated`](crate::FreeError::NotAllocated).
    ///
    /// # Errors
    /// [`RangeError::OutOfRange`], or [`RangeError::NotReserved`] with the first unit that is not reserved.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(10..20)?;
    /// buddy.release(10..20)?;
    /// assert_eq!(buddy.alloc(6)?, 0); // whole again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(&self, range: Range<u64>) -> Result<(), RangeError> {
        self.on(0).runs.release(range)
    }
}
