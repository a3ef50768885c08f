//! Frames by physical address.

use core::ops::Range;

use nbbs::sync::{AtomicU64, Word};
use nbbs::{Buddy, Lane, Request, RequestError};

use crate::{FRAME_SIZE, RegionError};

/// An arena whose units are the frames of a stretch of physical memory: addresses in, addresses out. It touches no
/// memory, so nothing here is unsafe; [`Frames`](crate::Frames) and [`Mapped`](crate::Mapped) are.
///
/// Every method may be called where those of [`Buddy`] may, including interrupt handlers.
///
/// Frames can be aligned to any power of two, whatever the base is. A block that the base is not a multiple of is a
/// run, though, for which the arena is searched: for frames of 2 MiB or 1 GiB, choose a base that is a multiple of that
/// (0 is best) and reserve what lies below the memory ([`Buddy::new_reserved`], then [`add_map`](Self::add_map)).
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
/// use nbbs_adapters::Region;
///
/// static METADATA: Metadata<{ metadata_words(1024) }> = Metadata::new();
/// let memory = Region::new(Buddy::new(METADATA.words(), 1024)?, 0x8000_0000)?;
/// let block = memory.alloc_frames(512, 9)?; // 2 MiB, aligned to 2 MiB
/// assert_eq!(block % (2 << 20), 0);
/// memory.free(block, 512)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Region<'a, W = AtomicU64> {
    buddy: Buddy<'a, W>,
    base: u64,
    lane: usize,
}

impl<W> Clone for Region<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Region<'_, W> {}

impl<'a, W: Word> Region<'a, W> {
    /// Creates the region whose first frame, at `base`, is unit 0 of the arena.
    ///
    /// # Errors
    /// [`RegionError::Base`].
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0x10_0000)?;
    /// assert_eq!(memory.addresses(), 0x10_0000..0x14_0000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(buddy: Buddy<'a, W>, base: u64) -> Result<Self, RegionError> {
        // At most 2^40 units: the product fits.
        let end = base.checked_add(buddy.units() * FRAME_SIZE);
        match end {
            Some(end) if base.is_multiple_of(FRAME_SIZE) && end <= usize::MAX as u64 => {
                Ok(Self { buddy, base, lane: 0 })
            }
            _ => Err(RegionError::Base { base, frames: buddy.units() }),
        }
    }

    /// Returns the same region from the lane of a CPU: see [`Buddy::on`]. A new region is on lane 0.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// let frame = memory.on(3).alloc_frames(1, 0)?;
    /// memory.on(1).free(frame, 1)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn on(self, cpu: usize) -> Self {
        Self { lane: cpu, ..self }
    }

    /// Returns the arena, for statistics, audits, and everything that is not addressed physically.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// assert_eq!(memory.buddy().stats().free_units, 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn buddy(&self) -> Buddy<'a, W> {
        self.buddy
    }

    /// Returns its physical addresses.
    #[must_use]
    pub const fn addresses(&self) -> Range<u64> {
        self.base..self.base + self.buddy.units() * FRAME_SIZE
    }

    /// Allocates `frames` contiguous frames, the first at a multiple of `2^order` frames, and returns its address.
    ///
    /// Cost: that of [`Lane::request`](nbbs::Lane::request), and of [`Lane::alloc`](nbbs::Lane::alloc) for `2^order`
    /// frames, if the base is a multiple of them.
    ///
    /// # Errors
    /// [`RequestError::Units`] for no frames, or more than the region has; [`RequestError::Exhausted`] if none that are
    /// so aligned are free; [`RequestError::NoPlace`] if no such run lies in the region, or
    /// [`RequestError::OrderTooLarge`] if the arena does not even have the order.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0x4000)?;
    /// assert_eq!(memory.alloc_frames(5, 2)? % 0x4000, 0);
    /// assert_eq!(memory.alloc_frames(8, 5)?, 0x2_0000); // although the base is a multiple of 0x4000 only
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_frames(&self, frames: u64, order: u32) -> Result<u64, RequestError> {
        let first = self.base / FRAME_SIZE;
        let index = self.lane().request(Request::units(frames).aligned(order).offset(first))?;
        Ok(self.address_of(index))
    }

    /// Allocates the `frames` frames from `address` on. Cost: that of [`Lane::alloc_at`](nbbs::Lane::alloc_at).
    ///
    /// # Errors
    /// [`RegionError::Address`], or those of [`Lane::alloc_at`](nbbs::Lane::alloc_at).
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// memory.alloc_at(0x2000, 7)?;
    /// let refused = memory.alloc_at(0x8000, 1).unwrap_err();
    /// assert_eq!(refused.to_string(), "unit 8 is in use or reserved; unit 0 is the frame at 0x0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_at(&self, address: u64, frames: u64) -> Result<(), RegionError> {
        let index = self.index_of(address)?;
        let base = self.base;
        let claimed = self.lane().alloc_at(index, frames);
        claimed.map(|_| ()).map_err(|error| RegionError::Request { error, base })
    }

    /// Frees the `frames` frames from `address` on, which were allocated together. Cost: that of
    /// [`Lane::free_units`](nbbs::Lane::free_units).
    ///
    /// # Errors
    /// [`RegionError::Address`], or those of [`Lane::free_units`](nbbs::Lane::free_units).
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// # let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// # let memory = Region::new(Buddy::new(metadata.words(), 64)?, 0)?;
    /// let run = memory.alloc_frames(3, 0)?;
    /// memory.free(run, 3)?;
    /// assert!(memory.free(run, 3).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free(&self, address: u64, frames: u64) -> Result<(), RegionError> {
        let index = self.index_of(address)?;
        let base = self.base;
        self.lane().free_units(index, frames).map_err(|error| RegionError::Free { error, base })
    }

    fn lane(&self) -> Lane<'_, W> {
        self.buddy.on(self.lane)
    }

    pub(crate) const fn address_of(&self, index: u64) -> u64 {
        self.base + index * FRAME_SIZE
    }

    fn index_of(&self, address: u64) -> Result<u64, RegionError> {
        let Range { start, end } = self.addresses();
        if (start..end).contains(&address) && address.is_multiple_of(FRAME_SIZE) {
            Ok((address - start) / FRAME_SIZE)
        } else {
            Err(RegionError::Address { address, start, end })
        }
    }
}
