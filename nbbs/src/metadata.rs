//! Storage for the metadata of an arena.

use core::fmt;

use crate::api::Buddy;
use crate::error::MetadataError;
use crate::sync::AtomicU64;
#[cfg(feature = "std")]
use crate::{
    layout::geometry::{LINE, Layout, lane_words, lanes_for},
    layout::shape::Shape,
};

/// Storage for `WORDS` words of metadata, zeroed and aligned to a cache line: the state of an empty arena.
///
/// As all words are zero, a `static` of this type lives in `.bss` and needs no start-up code.
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
///
/// static WORDS: Metadata<{ metadata_words(1000) }> = Metadata::new();
/// static FRAMES: Buddy = WORDS.arena(1000);
/// assert_eq!(FRAMES.on(0).alloc(9)?, 0);
/// # Ok::<(), nbbs::AllocError>(())
/// ```
#[repr(C, align(64))]
pub struct Metadata<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Metadata<WORDS> {
    /// Creates storage in which all words are zero.
    ///
    /// ```
    /// static WORDS: nbbs::Metadata<{ nbbs::metadata_words(64) }> = nbbs::Metadata::new(); // in .bss
    /// assert_eq!(nbbs::Buddy::new(WORDS.words(), 64)?.count_free(), 64);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Returns the words, to pass to [`Buddy::new`](crate::Buddy::new).
    ///
    /// ```
    /// let metadata = nbbs::Metadata::<100>::new();
    /// assert_eq!(metadata.words().len(), 100);
    /// ```
    #[must_use]
    pub const fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    /// Returns a handle to the arena of `units` units in these words: [`Buddy::new`], for statics. Any number of
    /// handles may be made. Cost: that of [`Buddy::new`], at compile time in a `static` or `const`.
    ///
    /// # Panics
    /// If `units` is 0 or above [`MAX_UNITS`](crate::MAX_UNITS), or if `WORDS` is less than
    /// [`metadata_words(units)`](crate::metadata_words). In a `static` or `const` this is a compile-time error. Where
    /// `units` comes from outside the program, use [`Buddy::new`].
    ///
    /// ```
    /// use nbbs::{Buddy, Metadata, metadata_words};
    ///
    /// static WORDS: Metadata<{ metadata_words(64) }> = Metadata::new();
    /// static FRAMES: Buddy = WORDS.arena(64);
    /// assert_eq!(FRAMES.on(0).alloc(6)?, 0);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    ///
    /// ```compile_fail
    /// static WORDS: nbbs::Metadata<{ nbbs::metadata_words(64) }> = nbbs::Metadata::new();
    /// static FRAMES: nbbs::Buddy = WORDS.arena(1 << 20); // too few words
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn arena(&self, units: u64) -> Buddy<'_> {
        match Buddy::new(&self.0, units) {
            Ok(buddy) => buddy,
            Err(MetadataError::Units { .. }) => panic!("an arena has 1 to 2^40 units"),
            Err(_) => panic!("too few words for so many units: see metadata_words()"),
        }
    }
}

// Not the words, as for `Buddy`.
impl<const WORDS: usize> fmt::Debug for Metadata<WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata").field("words", &WORDS).finish_non_exhaustive()
    }
}

impl<const WORDS: usize> Default for Metadata<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Zeroed metadata words on a cache-line boundary, as many as needed at run time.
///
/// All of them have been written to: no page fault is left in them. A box that was made for an arena knows how many
/// units that has.
///
/// ```
/// use nbbs::MetadataBox;
///
/// let metadata = MetadataBox::new(1000)?;
/// assert_eq!(metadata.words().as_ptr() as usize % 64, 0);
/// assert_eq!(metadata.arena()?.alloc(9)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "std")]
pub struct MetadataBox<W = AtomicU64> {
    words: std::vec::Vec<W>,
    /// How many words lie before the boundary.
    before: usize,
    /// Of the arena that the words were made for; 0 if they were not.
    units: u64,
}

#[cfg(feature = "std")]
impl MetadataBox {
    /// Allocates the words of an arena of `units` units, all zero, with as many lanes as there are CPUs that this process
    /// may use: those of [`for_cpus`](Self::for_cpus). [`arena`](Self::arena) makes the arena. Cost: that of
    /// [`zeroed`](Self::zeroed), and the system calls by which `available_parallelism` counts the CPUs.
    ///
    /// # Errors
    /// [`MetadataError::Units`] if `units` is 0 or above [`MAX_UNITS`](crate::MAX_UNITS), and those of
    /// [`zeroed`](Self::zeroed).
    ///
    /// ```
    /// use nbbs::{MetadataBox, MetadataError};
    ///
    /// let metadata = MetadataBox::new(1 << 18)?;
    /// let pages = metadata.arena()?;
    /// assert_eq!(pages.alloc(9)? % 512, 0);
    /// let refused = MetadataBox::new(0).unwrap_err();
    /// assert_eq!(refused, MetadataError::Units { units: 0, max: nbbs::MAX_UNITS });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(units: u64) -> Result<Self, MetadataError> {
        let cpus = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        Self::for_cpus(units, cpus)
    }

    /// Allocates the words of an arena of `units` units, all zero, with lanes for `cpus` CPUs. These are the first
    /// [`metadata_words(units)`](crate::metadata_words), and behind them those of as many lanes as [`lanes_for`] returns:
    /// none where the first have enough, and fewer than CPUs in a small arena. CPUs whose numbers are beyond `cpus` share
    /// lanes. Cost: that of [`zeroed`](Self::zeroed).
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    ///
    /// ```
    /// use nbbs::{MetadataBox, lane_words, metadata_words};
    ///
    /// let metadata = MetadataBox::for_cpus(1 << 18, 64)?; // 1 GiB of pages has 16 lanes by itself
    /// assert_eq!(metadata.words().len(), metadata_words(1 << 18) + lane_words(64));
    /// let pages = metadata.arena()?;
    /// let (one, other) = (pages.on(0).alloc(0)?, pages.on(63).alloc(0)?);
    /// assert!(one.abs_diff(other) >= 1 << 12); // each CPU has 16 MiB to begin in
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_cpus(units: u64, cpus: usize) -> Result<Self, MetadataError> {
        let words = Layout::new(Shape::STANDARD, units)?.words();
        let lanes = lane_words(lanes_for(units, cpus));
        Ok(Self { units, ..Self::zeroed(words.saturating_add(lanes))? })
    }

    /// Returns the arena that these words were made for by [`new`](Self::new) or [`for_cpus`](Self::for_cpus), with
    /// their lanes. Call it once and copy the handle: it clears lanes that lie behind the metadata, by a store for each
    /// of their words.
    ///
    /// # Errors
    /// [`MetadataError::Units`], with 0 units, if the words are of [`zeroed`](Self::zeroed), which are made for no
    /// arena in particular: pass them to [`Buddy::new`](crate::Buddy::new).
    ///
    /// ```
    /// use nbbs::MetadataBox;
    ///
    /// let metadata = MetadataBox::new(1 << 18)?;
    /// let pages = metadata.arena()?;
    /// assert_eq!(pages.units(), 1 << 18);
    /// assert!(MetadataBox::zeroed(100)?.arena().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arena(&self) -> Result<Buddy<'_>, MetadataError> {
        let arena = Buddy::new(self.words(), self.units)?;
        match &self.words()[crate::metadata_words(self.units)..] {
            lanes if lanes.len() < lane_words(1) => Ok(arena),
            lanes => arena.with_lanes(lanes),
        }
    }
}

#[cfg(feature = "std")]
impl<W: From<u64>> MetadataBox<W> {
    /// Allocates `words` words of zero, for an arena or for caches. Cost: an allocation, and a store for each word.
    ///
    /// # Errors
    /// [`MetadataError::NoMemory`] if there is no memory for them.
    ///
    /// ```
    /// use nbbs::{Caches, MetadataBox};
    ///
    /// let metadata = MetadataBox::new(1000)?;
    /// let cpus = 4;
    /// let words = MetadataBox::zeroed(nbbs::cache_words(cpus))?;
    /// let caches = Caches::new(metadata.arena()?, words.words());
    /// assert_eq!(caches.cpus(), cpus);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn zeroed(words: usize) -> Result<Self, MetadataError> {
        let (needed, mut words) = (words, std::vec::Vec::new());
        let room = needed.saturating_add(LINE);
        if words.try_reserve_exact(room).is_err() {
            return Err(MetadataError::NoMemory { words: needed });
        }
        words.resize_with(room, || W::from(0));
        // A power of two, whatever the size of a word is.
        let line = (LINE * size_of::<W>()).next_power_of_two();
        let before = words.as_ptr().align_offset(line).min(LINE);
        words.truncate(before + needed);
        Ok(Self { words, before, units: 0 })
    }
}

#[cfg(feature = "std")]
impl<W> MetadataBox<W> {
    /// Returns the words, to lend to [`Buddy::new`](crate::Buddy::new) or [`Caches::new`](crate::Caches::new).
    ///
    /// ```
    /// let metadata = nbbs::MetadataBox::new(1000)?;
    /// assert!(metadata.words().len() >= nbbs::metadata_words(1000));
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub fn words(&self) -> &[W] {
        &self.words[self.before..]
    }
}

// Not the words, as for `Buddy`.
#[cfg(feature = "std")]
impl<W> fmt::Debug for MetadataBox<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataBox").field("words", &self.words().len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::MetadataBox;
    use crate::error::MetadataError;
    use crate::sync::{AtomicU64, Ordering};

    #[test]
    fn begins_on_a_cache_line_and_is_zero() {
        for len in [1, 7, 8, 4097, 100_000] {
            let metadata = MetadataBox::<AtomicU64>::zeroed(len).unwrap();
            assert_eq!(metadata.words().as_ptr() as usize % 64, 0);
            assert_eq!(metadata.words().len(), len);
            assert!(metadata.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        }
    }

    #[test]
    fn the_arena_has_a_lane_for_each_cpu() {
        for (cpus, apart) in [(1, 1 << 14), (16, 1 << 14), (17, 1 << 13), (64, 1 << 12)] {
            let metadata = MetadataBox::for_cpus(1 << 18, cpus).unwrap();
            let pages = metadata.arena().unwrap();
            let lanes = cpus.max(16).next_power_of_two();
            let mut begins: std::vec::Vec<_> =
                (0..lanes).map(|lane| pages.on(lane).alloc(0).unwrap()).collect();
            begins.sort_unstable();
            assert!(begins.windows(2).all(|two| two[1] - two[0] >= apart - 32), "{begins:?}");
        }
    }

    #[test]
    fn a_new_box_has_room_for_the_cpus_of_the_process() {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        for units in [1, 1 << 12, 1 << 18] {
            let (new, same) = (MetadataBox::new(units), MetadataBox::for_cpus(units, cpus));
            assert_eq!(new.unwrap().words().len(), same.unwrap().words().len());
        }
    }

    #[test]
    fn what_no_memory_holds_is_refused() {
        let refused = MetadataBox::<AtomicU64>::zeroed(usize::MAX).unwrap_err();
        assert_eq!(refused, MetadataError::NoMemory { words: usize::MAX });
        let units = crate::MAX_UNITS;
        let needed = crate::metadata_words(units);
        let expected = if needed == usize::MAX {
            MetadataError::NoMemory { words: needed } // on 32 bits
        } else {
            MetadataError::TooShort { words: 0, needed }
        };
        assert_eq!(crate::Buddy::<AtomicU64>::new(&[], units).unwrap_err(), expected);
        let text = std::format!("there is no memory for {} words of metadata", usize::MAX);
        assert_eq!(std::string::ToString::to_string(&refused), text);
    }
}
