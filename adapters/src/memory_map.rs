//! Memory maps: what the firmware or the boot loader says is memory.

use core::ops::Range;

use nbbs::sync::Word;

use crate::{FRAME_SIZE, Region, RegionError};

/// An entry of a memory map.
///
/// ```
/// use nbbs_adapters::MapEntry;
///
/// assert_eq!((0x1000..0x2000).usable(), Some(0x1000..0x2000));
/// ```
pub trait MapEntry {
    /// Returns the physical addresses of the entry, if it is memory that is free for use.
    fn usable(&self) -> Option<Range<u64>>;
}

/// Memory that is free for use, from a map that this crate does not know.
impl MapEntry for Range<u64> {
    fn usable(&self) -> Option<Range<u64>> {
        Some(self.clone())
    }
}

/// Usable: what the boot loader calls so.
#[cfg(feature = "bootloader_api")]
impl MapEntry for bootloader_api::info::MemoryRegion {
    fn usable(&self) -> Option<Range<u64>> {
        let usable = self.kind == bootloader_api::info::MemoryRegionKind::Usable;
        usable.then_some(self.start..self.end)
    }
}

/// Usable: conventional memory. The memory of boot services and of the loader often still holds the page tables, the
/// stack and the program in use; add it as ranges once it does not.
#[cfg(feature = "uefi-raw")]
impl MapEntry for uefi_raw::table::boot::MemoryDescriptor {
    fn usable(&self) -> Option<Range<u64>> {
        let end = self.phys_start.saturating_add(self.page_count.saturating_mul(4096));
        let usable = self.ty == uefi_raw::table::boot::MemoryType::CONVENTIONAL;
        usable.then_some(self.phys_start..end)
    }
}

impl<W: Word> Region<'_, W> {
    /// Gives the arena the whole frames of each usable entry, as far as they lie in the region, and returns how many.
    /// They must still be reserved: see [`Buddy::new_reserved`](nbbs::Buddy::new_reserved).
    ///
    /// Cost: that of [`Buddy::release`](nbbs::Buddy::release) for each entry.
    ///
    /// # Errors
    /// [`RegionError::Map`]: a frame of an entry is not reserved, for instance because entries overlap. The entries
    /// before it have been added.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// let memory = Region::new(Buddy::new_reserved(metadata.words(), 64)?, 0)?;
    /// assert_eq!(memory.add_map([0x1800..0x5000_u64, 0x3_f000..0x10_0000])?, 3 + 1);
    /// assert!(memory.add_map([0x4000..0x6000_u64]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_map<E: MapEntry>(
        &self,
        map: impl IntoIterator<Item = E>,
    ) -> Result<u64, RegionError> {
        let Range { start: base, end } = self.addresses();
        let mut added = 0;
        for usable in map.into_iter().filter_map(|entry| entry.usable()) {
            let first = (usable.start.max(base) - base).div_ceil(FRAME_SIZE);
            let behind = (usable.end.min(end)).saturating_sub(base) / FRAME_SIZE;
            if first < behind {
                self.buddy().release(first..behind).map_err(RegionError::Map)?;
                added += behind - first;
            }
        }
        Ok(added)
    }
}
