//! nbbs as OSTD's frame allocator: in place of `osdk_frame_allocator::FrameAllocator`, which turns interrupts off
//! around each operation, and takes a lock where its caches do not help.

use core::alloc::Layout;

use nbbs::{Buddy, FreeError, Lane, Metadata, Request, metadata_words};
use nbbs_adapters::{FRAME_SIZE, Region};
use ostd::cpu::CpuId;
use ostd::mm::Paddr;
use ostd::mm::frame::GlobalFrameAllocator;
use spin::Once;

/// Frames of 16 GiB. A kernel that has more takes the words from the memory map: see `examples/kernel`.
const FRAMES: u64 = 1 << 22;
static METADATA: Metadata<{ metadata_words(FRAMES) }> = Metadata::new();

/// The frames of the machine, by physical address.
pub struct Frames(Once<Region<'static>>);

impl Frames {
    /// None yet.
    pub const fn new() -> Self {
        Self(Once::new())
    }

    /// The region; the first call, of the first CPU at boot, reserves all of it.
    fn region(&self) -> &Region<'static> {
        self.0.call_once(|| {
            let frames = Buddy::new_reserved(METADATA.words(), FRAMES).expect("as many words");
            Region::new(frames, 0).expect("frames from address 0 on")
        })
    }
}

/// The lane of this CPU. The thread may be on another one when it uses it, which costs speed only.
fn with_lane<T>(region: &Region<'static>, act: impl FnOnce(Lane<'_>) -> T) -> T {
    act(region.buddy().on(u32::from(CpuId::current_racy()) as usize))
}

impl GlobalFrameAllocator for Frames {
    fn alloc(&self, layout: Layout) -> Option<Paddr> {
        let frames = layout.size() as u64 / FRAME_SIZE;
        let order = (layout.align() as u64 / FRAME_SIZE).max(1).trailing_zeros();
        with_lane(self.region(), |lane| {
            let run = lane.request(Request::units(frames).aligned(order)).ok()?;
            // OSTD gives frames back one by one, in any order.
            if frames > 1 && lane.split(run, 0).is_err() {
                // Another CPU looks for memory just there. Rare, and a refusal is an answer.
                let _ = lane.free(run);
                return None;
            }
            Some((run * FRAME_SIZE) as Paddr)
        })
    }

    fn dealloc(&self, addr: Paddr, size: usize) {
        let (region, first) = (self.region(), addr as u64 / FRAME_SIZE);
        with_lane(region, |lane| {
            for frame in first..first + size as u64 / FRAME_SIZE {
                match lane.free_sized(frame, 0) {
                    // Of OSTD's early allocator, which was there before this one.
                    Err(FreeError::Reserved { .. }) => {
                        region.buddy().release(frame..frame + 1).expect("a reserved frame");
                    }
                    freed => freed.expect("a frame that was allocated"),
                }
            }
        });
    }

    fn add_free_memory(&self, addr: Paddr, size: usize) {
        let memory = addr as u64..(addr + size) as u64;
        self.region().add_map([memory]).expect("memory that was not added before");
    }
}
