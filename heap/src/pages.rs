//! Free memory that goes back to where it came from, page by page, and stays the heap's.

use core::ops::Range;
use core::ptr::NonNull;

use nbbs::Piece;

use crate::class::UNIT;
use crate::region::Region;

/// The most units that are kept from others at a time: 1 MiB.
const MOST_UNITS: u64 = 1 << 10;

impl Region<'_> {
    /// Shows `discard` whole pages of free memory that was handed out since they were last zero, while nobody can have them:
    /// it says whether they are zero now. How many bytes it said so of.
    ///
    /// Cost: a walk over all units, and for each piece, of 1 MiB at most, two read-modify-writes.
    pub fn discard(
        &self,
        page: usize,
        lane: usize,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> usize {
        let mut bytes = 0;
        self.buddy().walk(|piece| {
            let Piece::Free { index, order } = piece else { return };
            let end = index + (1 << order);
            for first in (index..end).step_by(MOST_UNITS as usize) {
                bytes +=
                    self.discard_units(first..end.min(first + MOST_UNITS), page, lane, discard);
            }
        });
        bytes
    }

    fn discard_units(
        &self,
        units: Range<u64>,
        page: usize,
        lane: usize,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> usize {
        let pages = self.pages_in(units.clone(), page);
        if pages.is_empty() || !self.fresh.is_touched(pages.clone()) {
            return 0;
        }
        let (lane, len) = (self.buddy().on(lane), units.end - units.start);
        if lane.alloc_at(units.start, len).is_err() {
            return 0;
        }
        let bytes = (pages.end - pages.start) as usize * UNIT;
        let is_zero = discard(self.runs.pointer(pages.start), bytes);
        if is_zero {
            self.fresh.renew(pages);
        } else {
            // Those that were zero may not be any more.
            self.fresh.touch(pages);
        }
        // They are the caller's: it is not refused.
        _ = lane.free_units(units.start, len);
        if is_zero { bytes } else { 0 }
    }

    /// Those of the units that are whole pages.
    fn pages_in(&self, units: Range<u64>, page: usize) -> Range<u64> {
        let (page, base) = ((page / UNIT).max(1) as u64, (self.address_of(0) / UNIT) as u64);
        let first = (base + units.start).next_multiple_of(page) - base;
        let end = (base + units.end) / page * page;
        first..end.saturating_sub(base).max(first)
    }
}

/// The operating system's pages.
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod system {
    use core::ffi::{c_int, c_long, c_void};
    use core::ptr::NonNull;

    unsafe extern "C" {
        fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
        fn sysconf(name: c_int) -> c_long;
    }

    /// The numbers of Linux, on all that Rust has a standard library for.
    const MADV_DONTNEED: c_int = 4;
    const SC_PAGESIZE: c_int = 30;

    /// The bytes of a page.
    pub fn page() -> usize {
        // SAFETY: it reads a number.
        usize::try_from(unsafe { sysconf(SC_PAGESIZE) }).map_or(1 << 16, |page| page.max(4096))
    }

    /// Gives whole pages back; if they are of anonymous memory of this process's own, they are zero from then on.
    ///
    /// # Safety
    /// What the memory holds is nobody's.
    pub unsafe fn discard(at: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: as the caller promises.
        unsafe { madvise(at.as_ptr().cast(), bytes, MADV_DONTNEED) == 0 }
    }
}
