//! Frames that their holders may use as memory.

use core::ops::Range;

use nbbs::Stats;
use nbbs::sync::{AtomicU64, Word};

use crate::Region;

/// A [`Region`] whose frames are memory that nobody else uses: what traits that hand out memory require.
///
/// With feature `x86_64` it is a `FrameAllocator` and `FrameDeallocator` of frames of 4 KiB, 2 MiB and 1 GiB. Those
/// traits need a `&mut`, the arena does not: each CPU takes a copy, on its own lane by [`on`](Self::on).
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
/// use nbbs_adapters::{Frames, Region};
///
/// static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
/// let region = Region::new(Buddy::new(METADATA.words(), 1024)?, 0)?;
/// // SAFETY: nothing here uses the memory.
/// let frames = unsafe { Frames::new(region) };
/// assert_eq!(frames.addresses(), 0..4 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Frames<'a, W = AtomicU64> {
    region: Region<'a, W>,
}

impl<W> Clone for Frames<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Frames<'_, W> {}

impl<'a, W> Frames<'a, W> {
    /// Creates the frames of a region.
    ///
    /// # Safety
    /// As long as the arena is in use, through any handle:
    /// - its units that are not reserved are memory at the region's addresses, which only those to whom the arena has
    ///   given it use;
    /// - units are released only if that holds for them, and frames are freed only by holders that no longer use them;
    /// - nothing but handles of this arena, all of the same number of units, writes to its words.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Region};
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let region = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// // SAFETY: nothing here uses the memory.
    /// let frames = unsafe { Frames::new(region.on(2)) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const unsafe fn new(region: Region<'a, W>) -> Self {
        Self { region }
    }

    /// Returns the region, which can free frames and add memory.
    ///
    /// # Safety
    /// Whatever is done with the region keeps the contract of [`new`](Self::new): frames are freed only by holders that
    /// no longer use them, and memory is added or released only if nobody else uses it.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Region};
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let region = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// # // SAFETY: nothing here uses the memory.
    /// # let frames = unsafe { Frames::new(region) };
    /// // SAFETY: only frames that were just allocated are freed.
    /// let region = unsafe { frames.region() };
    /// let run = region.alloc_frames(3, 0)?;
    /// region.free(run, 3)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const unsafe fn region(&self) -> Region<'a, W> {
        self.region
    }

    /// Returns the region, for adapters, which keep the contract of [`new`](Self::new).
    pub(crate) const fn inner(&self) -> &Region<'a, W> {
        &self.region
    }
}

impl<W: Word> Frames<'_, W> {
    /// Returns the same frames from the lane of a CPU: see [`Region::on`].
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Region};
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let region = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// // SAFETY: nothing here uses the memory.
    /// let frames = unsafe { Frames::new(region) };
    /// let of_cpu = [0, 1, 2, 3].map(|cpu| frames.on(cpu));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn on(self, cpu: usize) -> Self {
        Self { region: self.region.on(cpu) }
    }

    /// Returns the physical addresses of the region.
    #[must_use]
    pub const fn addresses(&self) -> Range<u64> {
        self.region.addresses()
    }

    /// Returns how many frames are free, in use and reserved: see [`Buddy::stats`](nbbs::Buddy::stats).
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Region};
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let region = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// // SAFETY: nothing here uses the memory.
    /// let frames = unsafe { Frames::new(region) };
    /// assert_eq!(frames.stats().free_units, 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.region.buddy().stats()
    }
}

/// The region frees what others use, so safe code must not get it.
///
/// ```compile_fail,E0133
/// fn freed(frames: nbbs_adapters::Frames<'_>) {
///     let _ = frames.region().free(0, 1);
/// }
/// ```
#[cfg(doctest)]
struct RegionIsUnsafe;
