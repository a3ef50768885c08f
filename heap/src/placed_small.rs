//! The small form of the heap, in memory that is given at run time.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::words::HeapWord;
use nbbs::{Buddy, metadata_words};

use crate::error::AddError;
use crate::runs::Runs;
use crate::steps::relocate;

/// The alignment of the heap.
const ALIGN: usize = 64;

/// How a heap lies in its memory.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    units: u64,
    /// The words of the arena's metadata.
    words: usize,
    /// Where the first unit begins.
    begin: usize,
}

/// A [`Small`](crate::Small) heap in memory that is given at run time. Copies are the same heap.
///
/// ```
/// use nbbs_heap::PlacedSmall;
/// use std::alloc::Layout;
/// use std::ptr::NonNull;
///
/// let memory = Box::leak(Box::new([0xff_u8; 16 << 10])); // whatever it holds
/// // SAFETY: nobody else ever uses the memory.
/// let heap = unsafe { PlacedSmall::<32>::new(NonNull::from(memory).cast(), 16 << 10)? };
/// let block = heap.alloc(Layout::new::<[u8; 100]>()).unwrap();
/// // SAFETY: the block is ours.
/// assert!(unsafe { heap.free(block, Layout::new::<[u8; 100]>()) });
/// # Ok::<(), nbbs_heap::AddError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlacedSmall<'m, const UNIT: usize = 32> {
    runs: Runs<'m, UNIT>,
    memory: PhantomData<&'m [HeapWord]>,
}

// SAFETY: the bookkeeping is atomic, and memory is handed out once.
unsafe impl<const UNIT: usize> Send for PlacedSmall<'_, UNIT> {}
// SAFETY: as above.
unsafe impl<const UNIT: usize> Sync for PlacedSmall<'_, UNIT> {}

impl<'m, const UNIT: usize> PlacedSmall<'m, UNIT> {
    /// Makes a heap of `bytes` bytes at `start`, which may have any content. Its bookkeeping lies at their front.
    ///
    /// # Errors
    /// [`AddError::TooSmall`] if there is no room for a unit.
    ///
    /// # Safety
    /// The memory belongs to the heap for as long as any copy of the heap is used, or anything refers to memory that it
    /// handed out (a box in it, leaked, for `'m`). All of it may be written to.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize) -> Result<Self, AddError> {
        let skip = start.addr().get().wrapping_neg() % ALIGN;
        let units = Self::units_in(bytes.saturating_sub(skip));
        let too_small = AddError::TooSmall { bytes, needed: skip + Self::begin(1) + UNIT };
        if units == 0 {
            return Err(too_small);
        }
        let plan = Self::plan(units);
        // SAFETY: fewer bytes are skipped than there are, and the bookkeeping fits behind them.
        unsafe {
            let start = start.add(skip);
            start.write_bytes(0, plan.begin);
            Self::of(start, plan).ok_or(too_small)
        }
    }

    /// Creates the heap that is planned so at `start`.
    ///
    /// # Safety
    /// `start` is aligned to 64 bytes, and the units and their bookkeeping belong to the heap for as long as any copy
    /// of it is used. The bookkeeping is zero, or that of this same heap.
    #[inline]
    pub(crate) unsafe fn of(start: NonNull<u8>, plan: Plan) -> Option<Self> {
        // SAFETY: the words lie in the memory, which is aligned for them, and are reached as atomics only.
        let words =
            unsafe { core::slice::from_raw_parts(start.cast::<HeapWord>().as_ptr(), plan.words) };
        let buddy = Buddy::new(words, plan.units).ok()?;
        // SAFETY: units lie behind the bookkeeping, and belong to the heap.
        let runs = unsafe { Runs::new(buddy, start.add(plan.begin)) };
        Some(Self { runs, memory: PhantomData })
    }

    /// Returns the most units that fit into this many bytes, beside their bookkeeping.
    pub(crate) const fn units_in(bytes: usize) -> u64 {
        assert!(UNIT == 16 || UNIT == 32 || UNIT == 64, "a unit has 16, 32 or 64 bytes");
        let (mut fit, mut above) = (0, (bytes / UNIT) as u64 + 1);
        while above - fit > 1 {
            let units = fit + (above - fit) / 2;
            if Self::begin(units) + units as usize * UNIT <= bytes {
                fit = units;
            } else {
                above = units;
            }
        }
        fit
    }

    /// Plans a heap of this many units.
    pub(crate) const fn plan(units: u64) -> Plan {
        Plan { units, words: metadata_words(units), begin: Self::begin(units) }
    }

    /// Returns where the first of this many units begins.
    const fn begin(units: u64) -> usize {
        (8 * metadata_words(units)).next_multiple_of(ALIGN)
    }

    /// Returns whether an address lies in memory that the heap hands out.
    pub fn contains(&self, at: *const u8) -> bool {
        NonNull::new(at.cast_mut()).is_some_and(|at| self.runs.contains(at))
    }

    /// Returns the bytes of all units, and the bytes of the free ones. Cost: a walk over all units.
    pub fn free_bytes(&self) -> (usize, usize) {
        let bytes = |units: u64| units as usize * UNIT;
        (bytes(self.runs.buddy.units()), bytes(self.runs.buddy.stats().free_units))
    }

    /// Allocates memory of a layout; returns `None` if there is none in one piece.
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.runs.alloc_first(layout, nbbs::default_lane())
    }

    /// Frees memory. Returns whether there was a block of this size at `at`; if not, nothing has changed.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(&self, at: NonNull<u8>, layout: Layout) -> bool {
        self.runs.free(at, layout.size(), nbbs::default_lane())
    }

    /// Makes memory larger or smaller, as [`Small::resize`](crate::Small::resize) does.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    pub unsafe fn resize(
        &self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, layout, new) }
    }

    /// Changes the layout of memory, as [`resize`](Self::resize) does.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    pub(crate) unsafe fn resize_to(
        &self,
        at: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        let lane = nbbs::default_lane();
        if old.align() == new.align() && self.runs.resize(at, old.size(), new.size(), lane) {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        let free = || _ = unsafe { self.free(at, old) };
        // SAFETY: as the caller promises.
        unsafe { relocate(at, old, new, |new| self.alloc(new), free) }
    }
}

// SAFETY: memory of a layout is handed out once, as the run that its bookkeeping says. It neither unwinds nor calls
// itself. The memory that it hands out is outside of it, so the heap may be moved.
unsafe impl<const UNIT: usize> GlobalAlloc for PlacedSmall<'_, UNIT> {
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
