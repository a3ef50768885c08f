//! Feature `ax-allocator`: pages for kernels made of ArceOS' parts.

use ax_allocator::{AllocError, AllocResult, BaseAllocator, PageAllocator};
use nbbs::RequestError;
use nbbs::sync::Word;

use crate::{FRAME_SIZE, Region, RegionError};

/// The arena of the region begins reserved ([`Buddy::new_reserved`](nbbs::Buddy::new_reserved)); memory within it is
/// added, but not the page at address 0. `init` does the same as `add_memory`, but cannot report a refusal: check
/// `total_pages`.
impl<W: Word> BaseAllocator for Region<'_, W> {
    fn init(&mut self, start: usize, size: usize) {
        let _ = self.add_memory(start, size);
    }

    fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
        let memory = start as u64..(start as u64).saturating_add(size as u64);
        let addresses = self.addresses();
        if memory.start < addresses.start || memory.end > addresses.end {
            return Err(AllocError::InvalidParam);
        }
        self.add_map(Some(memory)).map(|_| ()).map_err(of)
    }
}

/// Pages at addresses of the region, at any alignment of a page or more. The counts are
/// [`Buddy::stats`](nbbs::Buddy::stats): a look at every word that is in use.
///
/// Pages are given back as they were allocated, in one piece. `dealloc_pages` of a part, or of anything else, frees
/// nothing, and cannot say so: kernels that give back parts use [`Lane::free_part`](nbbs::Lane::free_part) of the
/// [`buddy`](Region::buddy).
impl<W: Word> PageAllocator for Region<'_, W> {
    const PAGE_SIZE: usize = FRAME_SIZE as usize;

    fn alloc_pages(&mut self, num_pages: usize, align: usize) -> AllocResult<usize> {
        let frames = self.alloc_frames(num_pages as u64, order_of(align)?);
        frames.map(|address| address as usize).map_err(of_request)
    }

    fn dealloc_pages(&mut self, pos: usize, num_pages: usize) {
        let _ = self.free(pos as u64, num_pages as u64);
    }

    fn alloc_pages_at(
        &mut self,
        base: usize,
        num_pages: usize,
        align: usize,
    ) -> AllocResult<usize> {
        order_of(align)?;
        if !base.is_multiple_of(align) {
            return Err(AllocError::InvalidParam);
        }
        let claimed = self.alloc_at(base as u64, num_pages as u64);
        claimed.map(|()| base).map_err(|error| match error {
            // The address is a page's, but not the region's.
            RegionError::Address { .. } if num_pages > 0 => AllocError::NoMemory,
            error => of(error),
        })
    }

    fn total_pages(&self) -> usize {
        let stats = self.buddy().stats();
        (stats.units - stats.reserved_units) as usize
    }

    fn used_pages(&self) -> usize {
        self.buddy().stats().used_units as usize
    }

    fn available_pages(&self) -> usize {
        self.buddy().stats().free_units as usize
    }
}

/// Returns the order of blocks of `align` bytes.
fn order_of(align: usize) -> AllocResult<u32> {
    let aligned = align.is_power_of_two() && align as u64 >= FRAME_SIZE;
    if aligned {
        Ok((align as u64 / FRAME_SIZE).trailing_zeros())
    } else {
        Err(AllocError::InvalidParam)
    }
}

fn of(error: RegionError) -> AllocError {
    match error {
        RegionError::Request { error, .. } => of_request(error),
        RegionError::Map { .. } => AllocError::MemoryOverlap,
        _ => AllocError::InvalidParam,
    }
}

fn of_request(error: RequestError) -> AllocError {
    match error {
        RequestError::Units { units: 0, .. } => AllocError::InvalidParam,
        // Neither size nor alignment is wrong: such pages are in use, or the region does not have them.
        _ => AllocError::NoMemory,
    }
}
