//! The frame allocator of the crate `buddy_system_allocator`, behind a spin lock as its
//! `LockedFrameAllocator` is.

use buddy_system_allocator::FrameAllocator;

use baselines::guarded::{Guarded, Sequential};

/// The crate's largest order, by default.
pub(crate) const MAX_ORDER: u32 = 32;

/// The most units of an arena.
pub(crate) const MAX_UNITS: u64 = 1 << 32;

/// The crate's frame allocator behind a lock.
pub(crate) type LockedFrames = Guarded<Frames>;

/// The crate's frame allocator: an ordered set of free blocks per order.
pub(crate) struct Frames {
    inner: FrameAllocator,
    free_units: u64,
    units: u64,
}

impl Sequential for Frames {
    fn new(units: u64, _max_order: u32) -> Self {
        let mut inner = FrameAllocator::new();
        inner.add_frame(0, units as usize);
        Self { inner, free_units: units, units }
    }

    fn alloc(&mut self, order: u32) -> Option<u64> {
        let index = self.inner.alloc(1 << order)?;
        self.free_units -= 1 << order;
        Some(index as u64)
    }

    /// The crate trusts the caller in everything; freeing more than was allocated cannot be right.
    fn free(&mut self, index: u64, order: u32) -> bool {
        let plausible = self.units - self.free_units >= 1 << order;
        if plausible {
            self.inner.dealloc(index as usize, 1 << order);
            self.free_units += 1 << order;
        }
        plausible
    }

    /// The sets do not report their size: at least one key for each free block, and up to half of the units may be free
    /// blocks.
    fn heap_bytes(&self) -> usize {
        self.units as usize / 2 * size_of::<usize>()
    }
}
