//! Feature `x86_64`: frames for page tables and mappings.

use nbbs::sync::Word;
use x86_64::PhysAddr;
use x86_64::structures::paging::{FrameAllocator, FrameDeallocator, PageSize, PhysFrame};

use crate::{FRAME_SIZE, Frames};

/// Frames of any page size, from the lane of the region: see [`Region::alloc_frames`](crate::Region::alloc_frames) for
/// what they cost where the region's base is not a multiple of the size.
// SAFETY: the arena hands a unit to nobody else until it is freed, and by the contract of `Frames::new` it is memory
// that nobody else uses.
unsafe impl<S: PageSize, W: Word> FrameAllocator<S> for Frames<'_, W> {
    fn allocate_frame(&mut self) -> Option<PhysFrame<S>> {
        let frames = S::SIZE / FRAME_SIZE;
        let address = self.inner().alloc_frames(frames, frames.trailing_zeros()).ok()?;
        let frame = PhysAddr::try_new(address).ok().map(PhysFrame::from_start_address);
        match frame {
            Some(Ok(frame)) => Some(frame),
            // Beyond the 52 bits of a physical address: it could not be mapped.
            _ => {
                let _ = self.inner().free(address, frames);
                None
            }
        }
    }
}

/// A frame that is not an allocated one of the region is left alone: the trait has no way to report it.
impl<S: PageSize, W: Word> FrameDeallocator<S> for Frames<'_, W> {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame<S>) {
        let _ = self.inner().free(frame.start_address().as_u64(), S::SIZE / FRAME_SIZE);
    }
}
