//! The frame allocator of the crate `frame-alloc`: its core, and its depot, which keeps frames for each CPU in front of
//! it.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::ptr::{NonNull, with_exposed_provenance_mut};

use frame_alloc::{
    CpuId, DepotAllocator, InitError, PageSize, PhysRange, PhysicalAllocator, Provenance,
    RegionInit, SummaryBuddyAllocator,
};
use testkit::BackEnd;

use super::cached::number;
use super::heap::region::Region;
use crate::args::UNIT_BYTES;

/// The largest order, as in the crate's examples.
const MAX_ORDER: u32 = 10;

/// The most units of an arena.
pub(crate) const MAX_UNITS: u64 = 1 << 32;

const FRAME: PageSize = PageSize::from_log2(UNIT_BYTES.ilog2() as u8);

/// The crate's core.
pub(crate) type Core = SummaryBuddyAllocator<{ MAX_ORDER as usize + 1 }, Exposed>;

/// The crate's core behind its depot: 128 frames for each of 64 CPUs, 512 for all.
pub(crate) type Depot = DepotAllocator<Core, Threads, 64>;

/// Maps physical addresses to themselves: only the bitmap is written to, and it is at its own address.
pub(crate) struct Exposed;

// SAFETY: the core asks for its bitmap only, which lies in a region whose provenance has been exposed.
unsafe impl Provenance for Exposed {
    unsafe fn create(phys: usize) -> NonNull<u8> {
        NonNull::new(with_exposed_provenance_mut(phys)).expect("no region is at address 0")
    }

    unsafe fn destroy<T>(at: NonNull<T>) -> usize {
        at.addr().get()
    }
}

/// A thread is a CPU.
pub(crate) struct Threads;

impl CpuId for Threads {
    fn current_cpu() -> usize {
        number()
    }
}

/// Either of the two, over frames that are nothing but addresses.
pub(crate) struct FrameAlloc<A> {
    inner: Box<A>,
    /// The address of the first frame.
    first: usize,
    units: u64,
    bitmap_bytes: usize,
    /// Dropped after the allocator, whose bitmap it holds.
    _bitmap: Region,
}

impl FrameAlloc<Core> {
    /// Creates the core.
    pub(crate) fn core(units: u64) -> Self {
        Self::over(Core::new(FRAME), units)
    }
}

impl FrameAlloc<Depot> {
    /// Creates the core behind the depot.
    pub(crate) fn depot(units: u64) -> Self {
        Self::over(Depot::new(FRAME, Core::new(FRAME)), units)
    }
}

impl<A: RegionInit> FrameAlloc<A> {
    /// Puts the bitmap before the frames. The crate would take it from usable memory; this way all frames are free.
    fn over(inner: A, units: u64) -> Self {
        let inner = Box::new(inner);
        // Two bits for each frame and some more, also for those before the first frame that is aligned to the largest
        // block.
        let bitmap = Region::new((units as usize / 3 + (1 << 13)).next_multiple_of(FRAME.bytes()));
        let begin = bitmap.begin().as_ptr().expose_provenance();
        let first = (begin + bitmap.bytes()).next_multiple_of(FRAME.bytes() << MAX_ORDER);
        let frames = units as usize * FRAME.bytes();
        let span = first + frames - begin;
        // SAFETY: no memory is usable, so this fails, and reports how large the bitmap is.
        let asked = unsafe { inner.try_init(begin, span, &[]) };
        let Err(InitError::MetadataWontFit { required_bytes: bitmap_bytes }) = asked else {
            panic!("{units} frames: {asked:?}");
        };
        assert!(bitmap_bytes <= bitmap.bytes(), "a bitmap of {bitmap_bytes} bytes");
        // SAFETY: the region is ours alone and exposed, and no other thread has the allocator yet.
        unsafe { inner.init(begin, span, &[PhysRange { base: begin, len: bitmap_bytes }]) };
        // SAFETY: the frames are in the span, aligned and not free yet; nobody touches what is at their addresses.
        unsafe { inner.add_usable(first, frames) };
        Self { inner, first, units, bitmap_bytes, _bitmap: bitmap }
    }
}

fn frames(order: u32) -> NonZeroUsize {
    NonZeroUsize::new(1 << order).expect("an order that frames have")
}

impl<A: PhysicalAllocator + Sync> BackEnd for FrameAlloc<A> {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        MAX_ORDER.min(self.units.ilog2())
    }

    fn metadata_bytes(&self) -> usize {
        size_of::<A>() + self.bitmap_bytes
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        if order > MAX_ORDER {
            return None;
        }
        let address = self.inner.allocate_physical(FRAME, frames(order)).ok()?;
        Some((address - self.first) as u64 / UNIT_BYTES)
    }

    /// The crate trusts the caller in everything; something that is not a block of the arena cannot be right.
    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        let fits = order <= MAX_ORDER
            && index < self.units
            && self.units - index >= 1 << order
            && index.is_multiple_of(1 << order);
        if !fits {
            return Err(format!("no block of order {order} is at {index}"));
        }
        let address = self.first + index as usize * FRAME.bytes();
        // SAFETY: a block of the arena, for which there are bits; the workloads free what they hold.
        unsafe { self.inner.deallocate_physical(FRAME, frames(order), address) };
        Ok(())
    }
}
