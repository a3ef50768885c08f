//! Frames that are mapped, so that they can be zeroed and handed out as pointers.

use core::ops::Range;
use core::ptr::NonNull;

use nbbs::sync::{AtomicU64, Word};
use nbbs::{RequestError, Stats};

use crate::{FRAME_SIZE, Frames, Region, RegionError};

/// [`Frames`] whose memory is mapped in one piece, such as a kernel's direct map.
///
/// With feature `aarch64-paging` it is a `Translation`: the page tables come from the arena. With `virtio-drivers`
/// it is where DMA memory comes from.
///
/// ```
/// use nbbs::{Buddy, Metadata, metadata_words};
/// use nbbs_adapters::{Frames, Mapped, Region};
/// use std::ptr::NonNull;
///
/// #[repr(align(4096))]
/// struct Memory([u8; 16 * 4096]);
///
/// let mut memory = Memory([1; 16 * 4096]);
/// let metadata = Metadata::<{ metadata_words(16) }>::new();
/// let region = Region::new(Buddy::new(metadata.words(), 16)?, 0x4000_0000)?;
/// // SAFETY: the memory stands in for the frames, and only the arena's users use it.
/// let mapped = unsafe { Mapped::new(Frames::new(region), NonNull::from(&mut memory.0).cast()) };
/// let (address, pointer) = mapped.alloc_zeroed(2)?;
/// // SAFETY: just allocated, and zeroed.
/// assert_eq!(unsafe { pointer.add(8191).read() }, 0);
/// assert_eq!(mapped.pointer_to(address), Some(pointer));
/// // SAFETY: allocated above, and no longer used.
/// unsafe { mapped.free(address, 2)? };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mapped<'a, W = AtomicU64> {
    frames: Frames<'a, W>,
    memory: NonNull<u8>,
}

impl<W> Clone for Mapped<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Mapped<'_, W> {}

// SAFETY: by the contract of `new` the memory is at the pointer for every holder of frames, on any thread; the arena is
// shared as `Frames` are.
unsafe impl<W: Sync> Send for Mapped<'_, W> {}

// SAFETY: as above; only the arena, and memory that the caller has allocated, is changed through a reference.
unsafe impl<W: Sync> Sync for Mapped<'_, W> {}

impl<'a, W: Word> Mapped<'a, W> {
    /// Creates the frames, the first of which is mapped at `memory`.
    ///
    /// # Safety
    /// As long as the arena or anything allocated from it is in use:
    /// - each frame that is not reserved is mapped, for reading and writing, as far behind `memory` as its address
    ///   is behind the region's first; `memory` is valid for all of them, and aligned to [`FRAME_SIZE`];
    /// - nothing else is mapped from the first frame to the last, not even where frames are reserved: a device would be
    ///   told the address of a frame that is not there;
    /// - no reference to the memory exists but those of its holders.
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Mapped, Region};
    /// # let metadata = Metadata::<{ metadata_words(16) }>::new();
    /// # let region = Region::new(Buddy::new_reserved(metadata.words(), 16)?, 0)?;
    /// // SAFETY: all frames are reserved, and stay so.
    /// let mapped = unsafe { Mapped::new(Frames::new(region), std::ptr::NonNull::dangling()) };
    /// assert!(mapped.alloc_zeroed(1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const unsafe fn new(frames: Frames<'a, W>, memory: NonNull<u8>) -> Self {
        Self { frames, memory }
    }

    /// Returns the region, which can free frames and add memory.
    ///
    /// # Safety
    /// That of [`Frames::region`].
    #[must_use]
    pub const unsafe fn region(&self) -> Region<'a, W> {
        *self.inner()
    }

    /// Returns the region, for adapters, which keep the contract of [`Frames::new`].
    pub(crate) const fn inner(&self) -> &Region<'a, W> {
        self.frames.inner()
    }

    /// Returns the same frames from the lane of a CPU: see [`Region::on`].
    ///
    /// ```
    /// # use nbbs::{Buddy, Metadata, metadata_words};
    /// # use nbbs_adapters::{Frames, Mapped, Region};
    /// # let metadata = Metadata::<{ metadata_words(16) }>::new();
    /// # let region = Region::new(Buddy::new_reserved(metadata.words(), 16)?, 0)?;
    /// // SAFETY: all frames are reserved, and stay so.
    /// let mapped = unsafe { Mapped::new(Frames::new(region), std::ptr::NonNull::dangling()) };
    /// let of_cpu = [0, 1, 2, 3].map(|cpu| mapped.on(cpu));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn on(self, cpu: usize) -> Self {
        Self { frames: self.frames.on(cpu), ..self }
    }

    /// Returns the physical addresses of the region.
    #[must_use]
    pub const fn addresses(&self) -> Range<u64> {
        self.frames.addresses()
    }

    /// Returns how many frames are free, in use and reserved: see [`Frames::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.frames.stats()
    }

    /// Allocates `frames` contiguous frames and fills them with zeros. Returns their address for devices and page
    /// tables, and their address for the caller.
    ///
    /// Cost: that of [`Region::alloc_frames`], and the writing.
    ///
    /// # Errors
    /// Those of [`Region::alloc_frames`].
    pub fn alloc_zeroed(&self, frames: u64) -> Result<(u64, NonNull<u8>), RequestError> {
        let address = self.inner().alloc_frames(frames, 0)?;
        let pointer = self.at(address);
        // SAFETY: the frames are mapped at the pointer, by the contract of `new`, and were just allocated: nobody
        // else uses them.
        unsafe { pointer.write_bytes(0, (frames * FRAME_SIZE) as usize) };
        Ok((address, pointer))
    }

    /// Frees the `frames` frames from `address` on, which were allocated together.
    ///
    /// # Errors
    /// Those of [`Region::free`].
    ///
    /// # Safety
    /// The caller holds the frames, and nobody uses them any more.
    pub unsafe fn free(&self, address: u64, frames: u64) -> Result<(), RegionError> {
        self.inner().free(address, frames)
    }

    /// Returns where the byte at a physical address is mapped. `None`: it is not part of the region.
    #[must_use]
    pub fn pointer_to(&self, address: u64) -> Option<NonNull<u8>> {
        self.addresses().contains(&address).then(|| self.at(address))
    }

    /// Returns the physical address of a byte. `None`: it is not mapped here.
    #[must_use]
    pub fn address_of(&self, pointer: NonNull<u8>) -> Option<u64> {
        let behind = pointer.addr().get().checked_sub(self.memory.addr().get())? as u64;
        let addresses = self.addresses();
        (behind < addresses.end - addresses.start).then_some(addresses.start + behind)
    }

    /// Returns where an address of the region is mapped.
    fn at(&self, address: u64) -> NonNull<u8> {
        let behind = address - self.addresses().start;
        // The memory is one piece only as far as there are frames in it: so no `add`.
        NonNull::new(self.memory.as_ptr().wrapping_add(behind as usize)).unwrap_or(self.memory)
    }
}

/// The region frees what others use, so safe code must not get it.
///
/// ```compile_fail,E0133
/// fn freed(mapped: nbbs_adapters::Mapped<'_>) {
///     let _ = mapped.region().free(0, 1);
/// }
/// ```
#[cfg(doctest)]
struct RegionIsUnsafe;
