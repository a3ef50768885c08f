//! Handles to an arena, and the short forms of the most common operations.

use core::fmt;

use super::{Lane, default_lane};
use crate::error::{AllocError, FreeError, MetadataError};
use crate::lane::Arena;
use crate::sync::{AtomicU64, Word};

/// A lock-free buddy allocator. It hands out blocks of `2^order` units, and runs of any number of units, by unit index.
///
/// A `Buddy` is a handle over borrowed words; any number of handles can share the same words. Every operation takes
/// `&self`, never waits for another thread, and may be called from interrupt and signal handlers, whichever operation
/// they interrupt. The exceptions are [`audit`](Self::audit), which needs an arena at rest, and the first call on a
/// thread's own lane in a library that was loaded while the program ran: see [`default_lane`].
///
/// The methods of `Buddy` that allocate and free use the calling thread's lane. [`on`](Self::on) and
/// [`here`](Self::here) return a [`Lane`], which has every operation that allocates, frees or resizes.
///
/// `W` is the type of the atomic words. Leave it at its default, except to observe or steer the allocator's steps (see
/// [`sync`](crate::sync)).
///
/// # Cost
/// In the steady state, an allocation and a free each take one read-modify-write and a handful of loads, whatever the
/// size of the arena. A lane that moves to another part of the arena loads a word for each level above it (log16 of the
/// arena's size). Splitting a word takes one more read-modify-write; merging one takes two, or three if it is larger
/// than 32 units.
///
/// # Source
/// The algorithm is the non-blocking buddy system of Marotta et al. (IEEE TPDS 2021, section III), repaired: see
/// DESIGN.md, "What was wrong".
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
///
/// static METADATA: Metadata<{ metadata_words(1 << 18) }> = Metadata::new();
/// let pages = Buddy::new(METADATA.words(), 1 << 18)?;
/// let block = pages.alloc(3)?; // 8 pages
/// assert_eq!(pages.free(block), Ok(8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Buddy<'a, W = AtomicU64> {
    pub(super) arena: Arena<'a, W>,
}

copy!(Buddy<'_, W>);

impl<'a, W: Word> Buddy<'a, W> {
    /// Creates a handle to an arena of `units` units, whose metadata is the first
    /// [`metadata_words(units)`](crate::metadata_words) of `words`.
    ///
    /// Words that are all zero are an empty arena. Words that another handle with the same number of units uses are the
    /// same arena. Lanes stay off each other's cache lines if the words begin on a 64-byte boundary, as those of
    /// [`Metadata`](crate::Metadata) do.
    ///
    /// The words have room for 256 lanes from 16 GiB of pages on, 16 at 1 GiB, 4 from 16 MiB on, and fewer below. CPUs
    /// that share a lane are slow: where there are more, [`with_lanes`](Self::with_lanes) gives each its own, and so
    /// does a `MetadataBox`.
    ///
    /// With any other words, the results of the methods are meaningless, and the methods may panic or never return.
    /// Memory safety is not at stake, as the crate has no `unsafe`. For words with arbitrary content see
    /// [`new_cleared`](Self::new_cleared) and [`new_reserved`](Self::new_reserved).
    ///
    /// # Errors
    /// [`MetadataError::Units`] if `units` is 0 or above [`MAX_UNITS`](crate::MAX_UNITS),
    /// [`MetadataError::NoMemory`] if the words would be more than there are addresses, [`MetadataError::TooShort`] if the
    /// slice is too short.
    ///
    /// ```
    /// use nbbs::{Buddy, MetadataError, metadata_words};
    /// use std::sync::atomic::AtomicU64;
    ///
    /// let words: Vec<AtomicU64> = (0..metadata_words(100)).map(|_| AtomicU64::new(0)).collect();
    /// assert_eq!(Buddy::new(&words, 100)?.max_order(), 6);
    /// assert_eq!(Buddy::new(&words, 0).unwrap_err(), MetadataError::Units { units: 0, max: 1 << 40 });
    /// # Ok::<(), MetadataError>(())
    /// ```
    pub const fn new(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        match Arena::new(words, units) {
            Ok(arena) => Ok(Self { arena }),
            Err(error) => Err(error),
        }
    }

    /// Creates an empty arena in `words`, which may have any content, and clears them.
    ///
    /// Cost: a store for each word. No other handle may be using the words.
    ///
    /// # Errors
    /// Those of [`Buddy::new`].
    ///
    /// ```
    /// use nbbs::{Buddy, metadata_words};
    /// use std::sync::atomic::AtomicU64;
    ///
    /// let words: Vec<AtomicU64> = (0..metadata_words(64)).map(|_| AtomicU64::new(0xdead)).collect();
    /// let buddy = Buddy::new_cleared(&words, 64)?;
    /// assert_eq!(buddy.alloc(6)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_cleared(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        let buddy = Self::new(words, units)?;
        buddy.arena.tree.clear_all();
        Ok(buddy)
    }

    /// Creates an arena in which every unit is reserved, in words with arbitrary content.
    ///
    /// Only units that [`Buddy::release`] adds are handed out, as needed for a boot-time memory map. Cost: a store for
    /// each word, two for most. No other handle may be using the words.
    ///
    /// A kernel that learns at boot how much memory there is takes the words from that memory: `metadata_words(units)`
    /// words on a 64-byte boundary, made a slice by `core::slice::from_raw_parts`. It releases what the map calls
    /// usable and then [reserves](Buddy::reserve) the frames in which the words lie. Lanes and caches can follow the
    /// words, each on a 64-byte boundary (`examples/kernel` does all of this).
    ///
    /// # Errors
    /// Those of [`Buddy::new`].
    ///
    /// ```
    /// # use nbbs::{AllocError, Buddy, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(1024) }>::new();
    /// let frames = Buddy::new_reserved(metadata.words(), 1024)?;
    /// assert_eq!(frames.alloc(0), Err(AllocError::Exhausted { units: 1 }));
    /// frames.release(256..640)?; // usable memory, as the firmware says
    /// assert_eq!(frames.alloc(8)?, 256);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_reserved(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        let buddy = Self::new(words, units)?;
        buddy.arena.tree.reserve_all();
        Ok(buddy)
    }

    /// Creates another handle to an arena of `units` units that is already in use, for another thread, process or
    /// mapping. It is [`Buddy::new`] with a check that the words can belong to such an arena.
    ///
    /// Cost: a load for each word that pads a level, a few dozen.
    ///
    /// # Errors
    /// Those of [`Buddy::new`], and [`MetadataError::Foreign`] if a word that an arena of this many units never writes
    /// is not zero. A mismatch that does not show in such a word goes unnoticed, such as words of a version of this
    /// crate that lays them out otherwise.
    ///
    /// ```
    /// use nbbs::{Buddy, Metadata};
    ///
    /// let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// let one = Buddy::new(metadata.words(), 64)?;
    /// let two = Buddy::attach(metadata.words(), 64)?;
    /// let block = one.alloc(2)?;
    /// assert_eq!(two.free(block)?, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach(words: &'a [W], units: u64) -> Result<Self, MetadataError> {
        let buddy = Self::new(words, units)?;
        match buddy.arena.tree.first_foreign_word() {
            Some(word) => Err(MetadataError::Foreign { units, word }),
            None => Ok(buddy),
        }
    }

    /// Returns the same arena with lanes in the caller's words instead of those in the metadata. The number of lanes is
    /// the largest power of two for which [`lane_words`](crate::lane_words) has room in `words`; an empty slice changes
    /// nothing.
    ///
    /// The metadata has few lanes, as [`new`](Self::new) says, and two CPUs that share one claim in the same words,
    /// which costs them ten times as much. [`lanes_for`](crate::lanes_for) says how many lanes an arena should have,
    /// and a `MetadataBox` has so many; 16 KiB more keep 64 CPUs that share 1 GiB apart, 64 KiB keep 256 CPUs apart.
    /// Lanes are hints: handles with other lanes, in other processes too, share the arena as before.
    ///
    /// The call clears the words, which may have any content and should begin on a 64-byte boundary. Make the handle
    /// once, and copy it. The words belong to this arena as long as a handle with them is in use: what lanes note of
    /// one arena is wrong of another.
    ///
    /// # Errors
    /// [`MetadataError::LanesTooShort`] if there are words, but no room for one lane.
    ///
    /// ```
    /// use nbbs::{Buddy, Metadata, lane_words, metadata_words};
    ///
    /// static WORDS: Metadata<{ metadata_words(1 << 18) }> = Metadata::new();
    /// static LANES: Metadata<{ lane_words(64) }> = Metadata::new();
    /// let frames = Buddy::new(WORDS.words(), 1 << 18)?.with_lanes(LANES.words())?;
    /// let (one, other) = (frames.on(0).alloc(0)?, frames.on(63).alloc(0)?);
    /// assert!(one.abs_diff(other) >= 1 << 12); // each CPU has 16 MiB to begin in
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_lanes(self, words: &'a [W]) -> Result<Self, MetadataError> {
        Ok(Self { arena: self.arena.with_lanes(words)? })
    }

    /// Returns how many lanes the handle has: a power of two. CPUs whose numbers are equal modulo it share a lane.
    ///
    /// ```
    /// let metadata = nbbs::MetadataBox::for_cpus(1 << 18, 64)?;
    /// assert_eq!(metadata.arena()?.lanes(), 64);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn lanes(&self) -> usize {
        self.arena.lanes()
    }

    /// Returns the number of units in the arena.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// assert_eq!(nbbs::Buddy::new(metadata.words(), 64)?.units(), 64);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.arena.tree.geometry.units()
    }

    /// Returns the largest order of a block that fits into the arena: log2 of its units, rounded down.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// assert_eq!(nbbs::Buddy::new(metadata.words(), 100)?.max_order(), 6);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn max_order(&self) -> u32 {
        self.arena.tree.geometry.max_order()
    }

    /// Returns the arena as seen from `lane`: a CPU or thread number, or any other number.
    ///
    /// A lane remembers where it last allocated, so callers with different lanes stay off each other's cache lines. A
    /// wrong or shared lane costs speed, never safety.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(3);
    /// let block = cpu.alloc(0)?;
    /// cpu.free(block)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn on(&self, lane: usize) -> Lane<'_, W> {
        Lane::new(&self.arena, lane)
    }

    /// Returns the arena as seen from the calling thread's lane, [`default_lane`]; without the feature `std`, from lane
    /// 0.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let run = buddy.here().alloc_units(11)?;
    /// assert_eq!(buddy.len_of(run)?, 11);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn here(&self) -> Lane<'_, W> {
        self.on(default_lane())
    }

    /// Allocates a block from the calling thread's lane: see [`Lane::alloc`].
    ///
    /// # Errors
    /// Those of [`Lane::alloc`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(4)?;
    /// assert_eq!(block % 16, 0);
    /// assert!(buddy.alloc(7).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        self.here().alloc(order)
    }

    /// Frees a block or run from the calling thread's lane: see [`Lane::free`].
    ///
    /// # Errors
    /// Those of [`Lane::free`].
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(3)?;
    /// assert_eq!(buddy.free(block), Ok(8));
    /// assert_eq!(buddy.free(block), Err(FreeError::NotAllocated { index: block }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, index: u64) -> Result<u64, FreeError> {
        self.here().free(index)
    }

    /// Frees a block of known order from the calling thread's lane: see [`Lane::free_sized`].
    ///
    /// # Errors
    /// Those of [`Lane::free_sized`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(2)?;
    /// buddy.free_sized(block, 2)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.here().free_sized(index, order)
    }
}

// Not the words: there are thousands of them.
impl<W> fmt::Debug for Buddy<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.arena.tree.geometry.units();
        f.debug_struct("Buddy").field("units", &units).finish_non_exhaustive()
    }
}
