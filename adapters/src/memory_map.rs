//! Memory maps: what the firmware or the boot loader says is memory.

use core::ops::Range;

use nbbs::RangeError;
use nbbs::sync::Word;
#[cfg(feature = "uefi-raw")]
use uefi_raw::table::boot::{MemoryAttribute, MemoryDescriptor, MemoryType};

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

/// Usable: conventional memory, unless it is set aside for a special purpose (`EFI_MEMORY_SP`), such as memory of an
/// accelerator, which drivers hand out; add that as ranges if nobody does. The memory of boot services and of the
/// loader often still holds the page tables, the stack and the program in use; add it as ranges once it does not.
#[cfg(feature = "uefi-raw")]
impl MapEntry for MemoryDescriptor {
    fn usable(&self) -> Option<Range<u64>> {
        let end = self.phys_start.saturating_add(self.page_count.saturating_mul(4096));
        let usable = self.ty == MemoryType::CONVENTIONAL
            && !self.att.contains(MemoryAttribute::SPECIAL_PURPOSE);
        usable.then_some(self.phys_start..end)
    }
}

impl<W: Word> Region<'_, W> {
    /// Gives the arena the whole frames of each usable entry, as far as they lie in the region, and returns how many.
    /// They must still be reserved: see [`Buddy::new_reserved`](nbbs::Buddy::new_reserved).
    ///
    /// The frame at address 0 is not added, whatever the map says: where physical memory is mapped at its own
    /// addresses, a pointer to it is null. `memory.buddy().release(0..1)` adds it to a region that begins there.
    ///
    /// Cost: that of [`Buddy::release`](nbbs::Buddy::release) for each entry.
    ///
    /// # Errors
    /// [`RegionError::Map`]: a frame of an entry is not reserved, for instance because entries overlap. The entries
    /// before it have been added, and nothing of it.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::Region;
    /// let metadata = Metadata::<{ metadata_words(64) }>::new();
    /// let memory = Region::new(Buddy::new_reserved(metadata.words(), 64)?, 0)?;
    /// assert_eq!(memory.add_map([0x1800..0x5000_u64, 0x3_f000..0x10_0000])?, 3 + 1);
    /// let refused = memory.add_map([0x8000..0x9000_u64, 0x4000..0x6000]).unwrap_err();
    /// assert_eq!(refused.to_string(), "entry 1 of the map, counted from 0: the frame at 0x4000 is not reserved");
    /// assert_eq!(memory.add_map([0..0x2000_u64])?, 1); // not the frame at 0
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_map<E: MapEntry>(
        &self,
        map: impl IntoIterator<Item = E>,
    ) -> Result<u64, RegionError> {
        let Range { start: base, end } = self.addresses();
        let mut added = 0;
        // The first byte that may be added.
        let first = base.max(FRAME_SIZE);
        for (number, entry) in map.into_iter().enumerate() {
            let Some(usable) = entry.usable() else { continue };
            let first = (usable.start.max(first) - base).div_ceil(FRAME_SIZE);
            let behind = (usable.end.min(end)).saturating_sub(base) / FRAME_SIZE;
            if first < behind {
                let released = self.buddy().release(first..behind);
                released.map_err(|error| self.not_added(number, first, error))?;
                added += behind - first;
            }
        }
        Ok(added)
    }

    fn not_added(&self, entry: usize, first: u64, error: RangeError) -> RegionError {
        let unit = match error {
            RangeError::NotReserved { unit } => unit,
            // The range is the region's, and is only released.
            _ => first,
        };
        RegionError::Map { entry, address: self.address_of(unit) }
    }
}
