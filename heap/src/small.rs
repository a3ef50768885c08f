//! The small shape of the heap: nothing but runs of fine units.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::{NonNull, null_mut};

use nbbs::sync::AtomicU64;
use nbbs::{Buddy, metadata_words};

use crate::heap::relocate;
use crate::runs::Runs;

/// A heap for little memory: `BYTES` bytes with their bookkeeping, each block a run of units of `UNIT` bytes.
///
/// There are no caches, no slabs and no headers: a KiB and a half of bookkeeping for 64 KiB, and a few KiB of code. Each
/// allocation and each free takes one read-modify-write if it has fewer than 32 units, and makes nobody wait: an interrupt
/// handler may allocate in the middle of an allocation. `UNIT` is 16, 32 or 64.
///
/// ```
/// use nbbs_heap::Small;
///
/// #[global_allocator]
/// static HEAP: Small<{ 256 << 10 }> = Small::new();
///
/// let numbers: Vec<u64> = (0..1000).collect();
/// assert!(HEAP.contains(numbers.as_ptr().cast()));
/// ```
#[repr(C, align(64))]
pub struct Small<const BYTES: usize, const UNIT: usize = 32> {
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the bytes are reached through `Runs`, whose bookkeeping is atomic, and through what it hands out.
unsafe impl<const BYTES: usize, const UNIT: usize> Sync for Small<BYTES, UNIT> {}

impl<const BYTES: usize, const UNIT: usize> Small<BYTES, UNIT> {
    /// The most units that fit beside their bookkeeping.
    const UNITS: u64 = {
        assert!(UNIT == 16 || UNIT == 32 || UNIT == 64, "a unit has 16, 32 or 64 bytes");
        let mut units = (BYTES / UNIT) as u64;
        while units > 0 && Self::begin(units) + units as usize * UNIT > BYTES {
            units -= 1;
        }
        assert!(units > 0, "no unit fits beside the bookkeeping");
        units
    };

    /// Where the first of so many units begins.
    const fn begin(units: u64) -> usize {
        (8 * metadata_words(units)).next_multiple_of(64)
    }

    /// An empty heap: all zero.
    #[must_use]
    pub const fn new() -> Self {
        _ = Self::UNITS;
        Self { bytes: UnsafeCell::new([0; BYTES]) }
    }

    fn runs(&self) -> Option<Runs<'_, UNIT>> {
        let start: NonNull<u8> = NonNull::new(self.bytes.get().cast())?;
        // SAFETY: the words lie in the heap, which is aligned for them; they are zero at first, and reached as atomics only.
        let words = unsafe {
            core::slice::from_raw_parts(
                start.cast::<AtomicU64>().as_ptr(),
                metadata_words(Self::UNITS),
            )
        };
        let buddy = Buddy::new(words, Self::UNITS).ok()?;
        // SAFETY: units lie behind the bookkeeping, and end with the bytes.
        Some(unsafe { Runs::new(buddy, start.add(Self::begin(Self::UNITS))) })
    }

    /// Whether an address lies in memory that the heap hands out.
    pub fn contains(&self, at: *const u8) -> bool {
        let at = NonNull::new(at.cast_mut());
        self.runs().zip(at).is_some_and(|(runs, at)| runs.contains(at))
    }

    /// The bytes of units, and how many of them are free: a walk over all units.
    pub fn free_bytes(&self) -> (usize, usize) {
        let bytes = |units: u64| units as usize * UNIT;
        self.runs()
            .map_or((0, 0), |runs| (bytes(Self::UNITS), bytes(runs.buddy.stats().free_units)))
    }

    /// Allocates memory of a layout; none if there is none, in one piece.
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.runs()?.alloc(layout, nbbs::default_lane())
    }

    /// Frees memory. Whether there was a block of this size at `at`: otherwise nothing has changed.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    pub unsafe fn free(&self, at: NonNull<u8>, layout: Layout) -> bool {
        self.runs().is_some_and(|runs| runs.free(at, layout.size(), nbbs::default_lane()))
    }

    /// Makes memory larger or smaller: in place if it gets smaller, or the units behind it are free; otherwise what it
    /// holds is moved. None if that cannot be had, and all is as it was.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    pub unsafe fn resize(
        &self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        if self.runs()?.resize(at, layout.size(), size, nbbs::default_lane()) {
            return Some(at);
        }
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises.
        unsafe { relocate(self, at, layout, new) }
    }
}

impl<const BYTES: usize, const UNIT: usize> Default for Small<BYTES, UNIT> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize, const UNIT: usize> fmt::Debug for Small<BYTES, UNIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Small").field("bytes", &BYTES).field("unit", &UNIT).finish_non_exhaustive()
    }
}

// SAFETY: memory of a layout is handed out once, as the run that its bookkeeping says. It neither unwinds nor calls itself.
// What it handed out is its own memory: a heap that has handed out some stays where it is, as a static does.
unsafe impl<const BYTES: usize, const UNIT: usize> GlobalAlloc for Small<BYTES, UNIT> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.alloc(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if let Some(at) = NonNull::new(at) {
            // SAFETY: as the caller promises.
            unsafe { self.free(at, layout) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let moved = NonNull::new(at).and_then(|at| unsafe { self.resize(at, layout, size) });
        moved.map_or(null_mut(), NonNull::as_ptr)
    }
}
