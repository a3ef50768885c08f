//! Frames that their holders may use as memory.

use nbbs::sync::AtomicU64;

use crate::Region;

/// A [`Region`] whose frames are memory that nobody else uses: what traits that hand out memory require.
///
/// With feature `x86_64` it is a `FrameAllocator` and `FrameDeallocator` of frames of 4 KiB, 2 MiB and 1 GiB. Those
/// traits need a `&mut`, the arena does not: each CPU takes a copy.
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
/// use nbbs_adapters::{Frames, Region};
///
/// static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
/// let region = Region::new(Buddy::new(METADATA.words(), 1024)?, 0)?;
/// // SAFETY: nothing here uses the memory.
/// let frames = unsafe { Frames::new(region) };
/// assert_eq!(frames.region().addresses(), 0..4 << 20);
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
    /// - units are released only if that holds for them, and frames are freed only by holders that no longer use them.
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

    /// Returns the region.
    #[must_use]
    pub const fn region(&self) -> Region<'a, W> {
        self.region
    }
}
