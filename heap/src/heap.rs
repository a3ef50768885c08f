//! The heap.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::cache::Cache;
use crate::class::Class;
use crate::lanes::Lane;
use crate::region::Region;
use crate::regions::{Memory, Regions};
use crate::stats::Stats;

/// Says on which CPU the caller runs, for a heap with a cache for each CPU.
///
/// A wrong number, or one that is old when it is used, costs time and nothing else. Numbers from the heap's `CPUS` on share
/// caches.
///
/// ```
/// use nbbs_heap::{Cpu, Heap};
///
/// struct Current;
///
/// impl Cpu for Current {
///     fn number() -> Option<usize> {
///         Some(0) // from a register that says it
///     }
/// }
///
/// static HEAP: Heap<{ 1 << 20 }, 4, Current> = Heap::new();
/// # assert!(HEAP.alloc(std::alloc::Layout::new::<u64>()).is_some());
/// ```
pub trait Cpu: 'static {
    /// The number of the caller's CPU; none where caches go by thread.
    fn number() -> Option<usize>;
}

/// Caches by thread.
impl Cpu for () {
    #[inline]
    fn number() -> Option<usize> {
        None
    }
}

/// A heap with `BYTES` bytes of its own, which hold its bookkeeping too, and `CPUS` caches beside those of threads.
///
/// All of it is zero at first: a `static` of this type lies in `.bss` and needs no start-up code. As a static, or leaked,
/// is how a heap is to be used: threads keep slots of it until they end.
///
/// A global allocator is a static in any case; whoever calls [`GlobalAlloc`] by name sees to it.
///
/// No operation waits for another thread. All may be called from interrupt and signal handlers, whatever these interrupt.
///
/// With the feature `std` a thread's cache is emptied when the thread ends, which its first call has the C library note. On
/// Linux that takes no memory, as long as the program has fewer than 32 keys of `pthread_key_create`. Elsewhere it may take a
/// lock of the C library's `malloc`: there the first call is not for a handler that may interrupt that.
///
/// ```
/// use nbbs_heap::Heap;
///
/// #[global_allocator]
/// static HEAP: Heap<{ 64 << 20 }> = Heap::new();
///
/// let numbers: Vec<u64> = (0..1000).collect();
/// assert!(HEAP.contains(numbers.as_ptr().cast()));
/// ```
#[repr(C, align(4096))]
pub struct Heap<const BYTES: usize, const CPUS: usize = 1, C = ()> {
    bytes: UnsafeCell<[u8; BYTES]>,
    regions: Regions,
    lanes: [Lane; CPUS],
    cpu: PhantomData<fn() -> C>,
}

// SAFETY: the bytes are reached through a `Region`, whose bookkeeping is atomic, and through what it hands out.
unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> Sync for Heap<BYTES, CPUS, C> {}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// An empty heap.
    ///
    /// Where `C` says a CPU's number, callers use the cache of their CPU. Otherwise, with the feature `std`, each thread has a
    /// cache; without, all share one, and those who find it in use go past it.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(CPUS > 0, "a heap has a cache at least") }
        let lanes = [const { Lane::new() }; CPUS];
        Self {
            bytes: UnsafeCell::new([0; BYTES]),
            regions: Regions::new(),
            lanes,
            cpu: PhantomData,
        }
    }

    fn memory(&'static self) -> Memory<'static> {
        // SAFETY: the bytes are in the heap, which is aligned to a page and stays where it is; they were zero at first,
        // and nobody else reaches them.
        unsafe {
            Memory::new(&self.regions, NonNull::new_unchecked(self.bytes.get().cast()), BYTES)
        }
    }

    /// Whether an address lies in memory that the heap hands out.
    pub fn contains(&'static self, at: *const u8) -> bool {
        let at = NonNull::new(at.cast_mut());
        at.is_some_and(|at| self.memory().at(at, |_| ()).is_some())
    }

    /// Allocates memory of a layout; none if there is none.
    ///
    /// Cost: no read-modify-write if the caller's thread has a slot of this class, one if a CPU's cache has. Otherwise
    /// one for up to four slabs and one for each of these, or what the buddy allocator takes for a new slab. What is
    /// larger than 32 KiB is a run of units: see [`nbbs::Lane::alloc_units`]. If there is no memory, the heap is trimmed
    /// first.
    #[inline]
    pub fn alloc(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        match Class::of(layout) {
            Some(class) => self.alloc_slot(class),
            None => self.alloc_run(layout),
        }
    }

    /// Frees memory.
    ///
    /// A free that is seen to be wrong (a place where nothing of this layout can begin, or that is free) changes nothing,
    /// and is counted: see [`refused`](Self::refused).
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(&'static self, at: NonNull<u8>, layout: Layout) {
        match Class::of(layout) {
            Some(class) => self.free_slot(class, at),
            None => self.free_run(at, layout),
        }
    }

    /// Makes memory larger or smaller, and moves what it holds if it must; none if that cannot be had, and all is as it
    /// was.
    ///
    /// In place if the slot is of the right class for both, and for a run if the units behind it are free.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    pub unsafe fn resize(
        &'static self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        let stays = match (Class::of(layout), Class::of(new)) {
            (None, None) => self.resize_run(at, layout, new),
            (from, to) => from == to,
        };
        if stays {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        unsafe { relocate(self, at, layout, new) }
    }

    /// Adds memory, which the heap keeps.
    ///
    /// Its bookkeeping, 1.6 % of it, lies at its front, and is cleared.
    ///
    /// # Errors
    /// [`AddError`] if no unit fits into it, or the heap has eight regions.
    ///
    /// # Safety
    /// The memory is the heap's from now on.
    pub unsafe fn add(&'static self, start: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: the memory is the heap's.
        let region =
            unsafe { Region::new_cleared(start, bytes) }.ok_or(AddError::TooSmall { bytes })?;
        if self.memory().add(region) {
            Ok(())
        } else {
            Err(AddError::TooMany { most: crate::regions::MOST_REGIONS })
        }
    }

    /// Returns the memory of slabs of which no slot is in use, so that it may serve other sizes: how many bytes.
    ///
    /// The caller's cache gives back what it keeps at once; others do when they next take slots or give some back.
    pub fn trim(&'static self) -> usize {
        let memory = self.memory();
        self.with_cache(|cache, lane| cache.drain(&memory, lane));
        memory.trim(self.lane())
    }

    /// What the memory is used for: a walk over all units.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// assert!(HEAP.alloc(Layout::new::<[u8; 100_000]>()).is_some());
    /// let stats = HEAP.stats();
    /// assert_eq!(stats.runs, 98 << 10);
    /// assert_eq!(stats.bytes, stats.free + stats.runs + stats.slots + stats.free_slots);
    /// ```
    pub fn stats(&'static self) -> Stats {
        Stats::of(&self.memory())
    }

    /// How many frees were refused.
    pub fn refused(&'static self) -> usize {
        self.memory().refused()
    }

    #[inline]
    fn alloc_slot(&'static self, class: Class) -> Option<NonNull<u8>> {
        let found = self.with_cache(|cache, _| cache.pop(class)).flatten();
        found.or_else(|| self.alloc_slowly(class))
    }

    #[cold]
    fn alloc_slowly(&'static self, class: Class) -> Option<NonNull<u8>> {
        let memory = self.memory();
        match self.with_cache(|cache, lane| cache.alloc(class, &memory, lane)) {
            Some(found) => found,
            None => self.alloc_past_caches(class),
        }
    }

    /// Takes a slab's slots, or makes a slab, keeps a slot, and gives back the others.
    #[cold]
    fn alloc_past_caches(&'static self, class: Class) -> Option<NonNull<u8>> {
        let (memory, lane) = (self.memory(), self.lane());
        let alloc = || {
            memory
                .find(|region| region.alloc_slot(class, lane))
                .or_else(|| memory.find(|region| region.alloc_slot_of_new(class, lane)))
                .or_else(|| memory.find(|region| region.make_run(class, lane)))
        };
        alloc().or_else(|| {
            memory.trim(lane);
            alloc()
        })
    }

    #[inline]
    fn free_slot(&'static self, class: Class, at: NonNull<u8>) {
        if self.with_cache(|cache, _| cache.push(class, at)) != Some(true) {
            self.free_slowly(class, at);
        }
    }

    #[cold]
    fn free_slowly(&'static self, class: Class, at: NonNull<u8>) {
        let memory = self.memory();
        if self.with_cache(|cache, lane| cache.free(class, at, &memory, lane)).is_none() {
            self.free_past_caches(class, at);
        }
    }

    #[cold]
    fn free_past_caches(&'static self, class: Class, at: NonNull<u8>) {
        let (memory, lane) = (self.memory(), self.lane());
        let given = memory.at(at, |region| match region.slot_of(class, at) {
            Some((slab, slot)) => region.give_or_else(class, lane, slab, 1 << slot) == 0,
            None => region.give_run(class, lane, at),
        });
        if given != Some(true) {
            memory.refuse();
        }
    }

    #[cold]
    fn alloc_run(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        let (memory, lane) = (self.memory(), self.lane());
        let alloc = || memory.find(|region| region.alloc_run(layout, lane));
        alloc().or_else(|| {
            self.trim();
            alloc()
        })
    }

    #[cold]
    fn free_run(&'static self, at: NonNull<u8>, layout: Layout) {
        let (memory, lane) = (self.memory(), self.lane());
        let freed = memory.at(at, |region| region.free_run(at, layout.size(), lane));
        if freed != Some(true) {
            memory.refuse();
        }
    }

    fn resize_run(&'static self, at: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let (memory, lane) = (self.memory(), self.lane());
        let resize = |region: &Region<'static>| region.resize_run(at, from.size(), to.size(), lane);
        memory.at(at, resize) == Some(true)
    }

    /// Shows `visit` the caller's cache, unless that is in use, and the lane that goes with it.
    #[inline]
    fn with_cache<R>(&'static self, visit: impl FnOnce(&mut Cache, usize) -> R) -> Option<R> {
        if let Some(cpu) = C::number() {
            return self.lanes[cpu % CPUS].with(|cache| visit(cache, cpu));
        }
        #[cfg(feature = "std")]
        return crate::threads::with(&self.regions, || self.memory(), visit);
        #[cfg(not(feature = "std"))]
        return self.lanes[0].with(|cache| visit(cache, 0));
    }

    /// The caller's lane of the buddy allocator.
    fn lane(&'static self) -> usize {
        C::number().unwrap_or_else(nbbs::default_lane)
    }
}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Default for Heap<BYTES, CPUS, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> fmt::Debug for Heap<BYTES, CPUS, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("bytes", &BYTES).field("cpus", &CPUS).finish_non_exhaustive()
    }
}

// SAFETY: memory of a layout is handed out once, as the slot or run that its bookkeeping says, and stays where it is. It
// neither unwinds nor calls itself. A heap that implements this is used where it stays: as a static.
unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> GlobalAlloc for Heap<BYTES, CPUS, C> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for the type: it is a static, or leaked.
        let heap = unsafe { &*core::ptr::from_ref(self) };
        heap.alloc(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        let heap: &'static Self = unsafe { &*core::ptr::from_ref(self) };
        if let Some(at) = NonNull::new(at) {
            // SAFETY: as the caller promises.
            unsafe { heap.free(at, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let heap: &'static Self = unsafe { &*core::ptr::from_ref(self) };
        // SAFETY: as the caller promises.
        let moved = NonNull::new(at).and_then(|at| unsafe { heap.resize(at, layout, size) });
        moved.map_or(null_mut(), NonNull::as_ptr)
    }
}

/// Moves what memory holds to memory of another layout, as far as it fits; none if that cannot be had, and all is as it was.
///
/// # Safety
/// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
pub unsafe fn relocate(
    heap: &impl GlobalAlloc,
    at: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<u8>> {
    // SAFETY: heaps of this crate allocate memory of any size, 0 included.
    let moved = NonNull::new(unsafe { heap.alloc(new) })?;
    // SAFETY: both are held by the caller now, and have so many bytes.
    unsafe { moved.copy_from_nonoverlapping(at, old.size().min(new.size())) };
    // SAFETY: as the caller promises.
    unsafe { heap.dealloc(at.as_ptr(), old) };
    Some(moved)
}

/// Why memory was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddError {
    /// No unit fits into so many bytes, beside the bookkeeping.
    TooSmall {
        /// How many there are.
        bytes: usize,
    },
    /// The heap has as many regions as it can have.
    TooMany {
        /// So many.
        most: usize,
    },
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { bytes } => {
                write!(f, "{bytes} bytes hold no unit of 1024 beside the bookkeeping")
            }
            Self::TooMany { most } => write!(f, "a heap has at most {most} regions"),
        }
    }
}

impl core::error::Error for AddError {}
