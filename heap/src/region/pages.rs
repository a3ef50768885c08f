//! Giving free memory back to where it came from, page by page, while it remains the heap's.

use core::ops::Range;
use core::ptr::NonNull;

use crate::class::UNIT;
use crate::region::Region;
use crate::region::fresh::STRETCH_LOG2;
use crate::region::idle::Part;
use crate::watch;

/// The most units that are withheld from others at a time: 1 MiB.
const MOST_UNITS: u64 = 1 << 10;

/// The most bytes of a page: of larger ones too few would lie in so many units.
pub const MOST_PAGE: usize = 64 << 10;

/// What a part of a discard has done, as [`Heap::discard_next`](crate::Heap::discard_next) returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discarded {
    /// The bytes that were made zero.
    pub bytes: usize,
    /// Whether no part is left.
    pub is_last: bool,
}

/// Free units that nobody else can allocate while their pages are discarded.
struct Withheld<'r> {
    region: &'r Region<'r>,
    lane: usize,
    units: Range<u64>,
    pages: Range<u64>,
    is_zero: bool,
}

impl Drop for Withheld<'_> {
    /// Gives them back, even if `discard` panics.
    fn drop(&mut self) {
        let bytes = (self.pages.end - self.pages.start) as usize * UNIT;
        watch::close_run(self.region.runs.pointer(self.pages.start), bytes);
        if self.is_zero {
            self.region.renew_units(self.pages.clone());
        } else {
            // Pages that were zero may not be zero any more.
            self.region.touch_free(self.pages.clone());
        }
        let (lane, len) = (self.region.buddy().on(self.lane), self.units.end - self.units.start);
        // They are the caller's, so this is not refused.
        _ = lane.free_units(self.units.start, len);
    }
}

impl Region<'_> {
    /// Records that some bytes of a run, which the caller holds, are zero.
    pub fn renew(&self, at: NonNull<u8>, bytes: &Range<usize>) {
        let first = self.unit_of(at);
        let unit = |byte: usize| first + (byte / UNIT) as u64;
        self.renew_units(unit(bytes.start.next_multiple_of(UNIT))..unit(bytes.end));
    }

    /// Calls `discard` for whole pages of free memory that was handed out since they were last zero, while nobody can
    /// allocate them. `discard` returns whether they are zero now. Returns the number of bytes for which it returned
    /// that.
    ///
    /// Cost: a walk over all units, a load for each 4 MiB of free memory, and for each piece that goes back, of 1 MiB at
    /// most, two read-modify-writes.
    ///
    /// # Safety
    /// What `discard` says is zero, is.
    pub unsafe fn discard(
        &self,
        page: usize,
        lane: usize,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> usize {
        // SAFETY: as the caller promises.
        let (bytes, left) =
            unsafe { self.discard_in(0..self.buddy().units(), page, lane, discard) };
        self.settle_idle(left);
        bytes
    }

    /// Does a part of what [`discard`](Self::discard) does: for so many bytes of the region, from where the part before
    /// ended on, or from what first may be other than zero. Before the first part, it returns slabs of which no slot is
    /// in use, as many at most as these bytes have units. If another takes a part just now, it does nothing. Adds to
    /// `refused` as [`trim`](Self::trim) does.
    ///
    /// Cost: a walk over these units, a load for each 4 MiB of the region, and what `discard` takes; or what `trim` takes
    /// for each slab.
    ///
    /// # Safety
    /// That of [`discard`](Self::discard).
    pub unsafe fn discard_next(
        &self,
        most: usize,
        page: usize,
        lane: usize,
        refused: &mut u32,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Discarded {
        // By whole stretches, as what is zero is remembered; and so many that they contain whole pages.
        let units = ((most / UNIT) as u64).max(MOST_UNITS) >> STRETCH_LOG2 << STRETCH_LOG2;
        let has_trimmed = self.trim_next(units as usize, lane, refused);
        let part = if has_trimmed { None } else { self.take_part(units) };
        let Some(Part { units, is_last }) = part else {
            return Discarded { bytes: 0, is_last: false };
        };
        // SAFETY: as the caller promises.
        let (bytes, left) = unsafe { self.discard_in(units, page, lane, discard) };
        self.settle_part(left, is_last);
        Discarded { bytes, is_last }
    }

    /// Calls `discard` for whole pages of free memory in these units. Returns the number of bytes for which it returned
    /// `true`, and how many of the units are idle still.
    ///
    /// # Safety
    /// That of [`discard`](Self::discard).
    unsafe fn discard_in(
        &self,
        units: Range<u64>,
        page: usize,
        lane: usize,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> (usize, u64) {
        let (mut bytes, mut left) = (0, 0);
        // Refused if there are no units.
        _ = self.buddy().walk_free(units, |free| {
            let mut first = free.start;
            while let Some(touched) = self.fresh.first_touched(first..free.end) {
                // A page may begin in front of the stretch. Both begin at multiples of a stretch from here on.
                let stretch = touched & !((1 << STRETCH_LOG2) - 1);
                first = first.max(stretch.saturating_sub((MOST_PAGE / UNIT) as u64));
                let last = free.end.min(first + MOST_UNITS);
                bytes += self.discard_units(first..last, page, lane, discard);
                first = last;
            }
            left += self.idle_units(free);
        });
        (bytes, left)
    }

    fn discard_units(
        &self,
        units: Range<u64>,
        page: usize,
        lane: usize,
        discard: &mut impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> usize {
        let pages = self.pages_in(units.clone(), page);
        if !self.fresh.is_touched(pages.clone()) {
            return 0;
        }
        if self.buddy().on(lane).alloc_at(units.start, units.end - units.start).is_err() {
            return 0;
        }
        let at = self.runs.pointer(pages.start);
        let bytes = (pages.end - pages.start) as usize * UNIT;
        let mut withheld = Withheld { region: self, lane, units, pages, is_zero: false };
        watch::open(at, bytes);
        withheld.is_zero = discard(at, bytes);
        if withheld.is_zero { bytes } else { 0 }
    }

    /// Returns those of the units that are whole pages.
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
        fn __errno_location() -> *mut c_int;
    }

    /// The numbers of Linux, on all its targets for which Rust has a standard library.
    const MADV_DONTNEED: c_int = 4;
    const SC_PAGESIZE: c_int = 30;
    const SC_NPROCESSORS_ONLN: c_int = 84;

    /// Returns how many processors the system uses. `errno` stays: this may be part of a free.
    pub fn processors() -> usize {
        // SAFETY: it only answers.
        let errno = unsafe { __errno_location() };
        // SAFETY: it is the thread's own.
        let error = unsafe { *errno };
        // SAFETY: it reads a number.
        let processors = unsafe { sysconf(SC_NPROCESSORS_ONLN) };
        // SAFETY: as above.
        unsafe { *errno = error };
        usize::try_from(processors).unwrap_or(1)
    }

    /// Returns the bytes of a page.
    pub fn page() -> usize {
        // SAFETY: it reads a number.
        usize::try_from(unsafe { sysconf(SC_PAGESIZE) }).map_or(1 << 16, |page| page.max(4096))
    }

    /// The bytes of the smallest huge page that Linux has, on any processor.
    const LEAST_HUGE: usize = 64 << 10;

    /// Gives whole pages of `page` bytes back. If they are private anonymous memory of this process, they are zero from
    /// then on.
    ///
    /// Returns `false` for memory in huge pages, which Linux gives back, or not, in whole huge pages: it rounds the
    /// end of what is advised. It refuses an address at which no huge page begins, so that is where this begins.
    ///
    /// # Safety
    /// Nobody needs the contents of the memory.
    pub unsafe fn discard(at: NonNull<u8>, bytes: usize, page: usize) -> bool {
        let first = first_apart(at.addr().get(), page);
        if bytes <= first {
            return false;
        }
        // SAFETY: there are more bytes than these.
        let rest = unsafe { at.add(first) };
        // SAFETY: as the caller promises.
        let is_gone = unsafe { advise(rest, bytes - first) };
        // SAFETY: as the caller promises.
        is_gone && (first == 0 || unsafe { advise(at, first) })
    }

    /// Returns how many bytes at an address are to be advised after the others: a page, if a huge page may begin there.
    fn first_apart(address: usize, page: usize) -> usize {
        if address.is_multiple_of(LEAST_HUGE.max(2 * page)) { page } else { 0 }
    }

    /// # Safety
    /// That of [`discard`].
    unsafe fn advise(at: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: as the caller promises.
        unsafe { madvise(at.as_ptr().cast(), bytes, MADV_DONTNEED) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::first_apart;

        #[test]
        fn what_is_advised_first_begins_no_huge_page() {
            for page in [4 << 10, 16 << 10, 64 << 10] {
                let huge = if page == 64 << 10 { 2 << 20 } else { 64 << 10 };
                for address in (0..4 << 20).step_by(page) {
                    let first = address + first_apart(address, page);
                    assert!(!first.is_multiple_of(huge), "{address:#x}");
                }
            }
        }
    }
}
