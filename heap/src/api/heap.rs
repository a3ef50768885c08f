//! The heap in a static.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use crate::api::Cpu;
use crate::cache::{Cache, SharedCache};
use crate::error::AddError;
use crate::operations::{Operations, Resize};
use crate::region::{Content, Memory, Regions};
use crate::unwind::aborting;

/// A heap with `BYTES` bytes of its own, which also hold its bookkeeping, and `CPUS` caches beside those of threads.
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
///
/// All of it is zero at first: a `static` of this type lies in `.bss` and needs no start-up code. A heap must be a
/// static, or leaked: threads keep slots and runs of it until they end. The global allocator is a static in any case; a
/// caller that uses [`GlobalAlloc`] by name must ensure this itself. A heap must not lie in memory that processes
/// share: see [`trim`](Self::trim).
///
/// # Cost
/// The worst single operation when no other thread is in its way, in loads of the bookkeeping and read-modify-writes
/// (`heap/src/checks/loads.rs` counts them); n is the MiB of the region, below 1024:
///
/// | operation | loads | read-modify-writes |
/// |---|---|---|
/// | in a cache: a slot that it keeps, or the free of one for which it has room | 0 | 0 |
/// | a slot that it does not keep, or a free for which it makes room, by slabs that have free slots | 400 | 64 |
/// | the first of these after anybody's trim or refusal gives back all that the cache keeps: in addition | 20,000 | 5000 |
/// | a run that it keeps; the free of a run to it | 0; 250 | 0; 48 |
/// | past the caches: a slot of a slab that has free ones; its free; that of the last slot of its slab | 11; 5; 16 | 4; 3; 4 |
/// | a slot of a new slab | 80 + 140n | 8 + 5n |
/// | a run of any alignment, also one that is a slot; its free | 100 + 1000n; 120 | 12 + 5n; 24 |
/// | a trim, which an allocation makes before it is refused; twice as much for each slab that another's has half done | 170 + 12288n | 8 + 3400n |
///
/// A cache that was refused a slot trims once more before it takes one of that size or a larger one from anything but a
/// slab that has free slots.
///
/// # Handlers
/// No operation waits for another thread, and all may be called from interrupt and signal handlers, whatever these
/// interrupt. There is one exception: in a Rust library that is loaded by `dlopen`, a thread's first use of the heap
/// takes the thread-local of its cache from `malloc`, so a handler that may interrupt `malloc` must not make it.
///
/// # Threads that end
/// With the feature `std` a thread's cache is emptied when the thread ends. The thread's first call that allocates or
/// frees a slot, of up to 32 KiB, or frees anything larger, registers this with the C library:
///
/// - With glibc this takes no memory, as long as the program has fewer than 32 keys of `pthread_key_create`.
/// - With musl `pthread_key_create`, which the program's first such call calls, takes a lock: make that call before
///   there are handlers that use the heap.
/// - Elsewhere it may take a lock of the C library's `malloc`, so a handler that may interrupt `malloc` must not make
///   that call; and as the global allocator the heap needs a Rust whose thread-locals with destructors do not allocate
///   from that, which those up to 1.92 do.
/// - Where thread-locals are keys of the C library, as on Android and OpenBSD, what the cache has may be lost when the
///   thread ends.
///
/// Without `std`, or with a [`Cpu`] that has a number for each caller, none of this matters.
#[repr(C, align(4096))]
pub struct Heap<const BYTES: usize, const CPUS: usize = 1, C = ()> {
    bytes: UnsafeCell<[u8; BYTES]>,
    regions: Regions,
    caches: [SharedCache; CPUS],
    // Invariant, as in `Overlap`: all see the heap with the same numbers.
    cpu: PhantomData<fn(C) -> C>,
}

// SAFETY: regions and caches are `Sync` by themselves. The bytes are reached only through a `Region`, whose bookkeeping
// is atomic, and by the holders of what it handed out.
unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> Sync for Heap<BYTES, CPUS, C> {}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// Creates an empty heap.
    ///
    /// If `C` tells a CPU's number, callers use the cache of their CPU. Otherwise each thread has a cache with the
    /// feature `std`; without it all share one, and callers that find it in use bypass it.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let stats = HEAP.stats();
    /// assert_eq!(stats.free, stats.bytes);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(CPUS > 0, "a heap has a cache at least") }
        let caches = [const { SharedCache::new() }; CPUS];
        Self {
            bytes: UnsafeCell::new([0; BYTES]),
            regions: Regions::new(),
            caches,
            cpu: PhantomData,
        }
    }

    /// Returns whether an address lies in memory that the heap hands out. Cost: two loads for each region, at most.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<u64>()).unwrap();
    /// assert!(HEAP.contains(block.as_ptr()));
    /// assert!(!HEAP.contains((&raw const block).cast()));
    /// ```
    #[must_use]
    pub fn contains(&'static self, at: *const u8) -> bool {
        let at = NonNull::new(at.cast_mut());
        at.is_some_and(|at| self.memory().at(at, |_| ()).is_some())
    }

    /// Allocates memory of a layout; returns `None` if there is none.
    ///
    /// Cost: no read-modify-write if the caller's thread has a slot of this class, or its CPU and operations only nest
    /// ([`Overlap::nested`](crate::Overlap::nested)); one if the cache is a CPU's in any other way, or the heap's only
    /// one. Otherwise one for up to four slabs and one for each of these, or what the buddy allocator takes for a new
    /// slab. Anything larger than 32 KiB is a run of units, one of as many that the cache keeps, or a new one: see
    /// [`nbbs::Lane::alloc_units`]. Before a new slab or run, slabs that have become whole may go back: a look at all
    /// slabs of their classes that have free slots, once 4 MiB have become whole, and a quarter of what the last look
    /// passed in vain. If there is no memory, the heap is trimmed first. This misses the slabs that others have in hand
    /// at that moment, four at most for each thread, and as many for each caller that a handler has interrupted. Beside
    /// others that trim, or make slabs whole, again and again, it may miss more: a caller looks for slots three times,
    /// and tries 1000 times to begin a trim.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::{Layout, LayoutError};
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let page = HEAP.alloc(Layout::from_size_align(4096, 4096)?).unwrap();
    /// assert!(page.addr().get().is_multiple_of(4096));
    /// assert_eq!(HEAP.alloc(Layout::from_size_align(2 << 20, 1)?), None); // more than there is
    /// # Ok::<(), LayoutError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        Operations::alloc(self, layout)
    }

    /// Allocates memory of a layout that is all zero; returns `None` if there is none.
    ///
    /// Cost: that of [`alloc`](Self::alloc), and a store for each word. Of a new run, the stretches of 64 KiB of which
    /// nothing was handed out since they were zero are not written to: at first, or since they were
    /// [discarded](Self::discard) or [freed as zero](Self::free_at_after).
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 64 << 20 }> = Heap::new();
    ///
    /// // No page of it is touched.
    /// let table = HEAP.alloc_zeroed(Layout::new::<[u64; 4 << 20]>()).unwrap();
    /// # // SAFETY: the memory is ours.
    /// # assert_eq!(unsafe { table.cast::<u64>().add(1 << 20).read() }, 0);
    /// ```
    #[must_use]
    pub fn alloc_zeroed(&'static self, layout: Layout) -> Option<NonNull<u8>> {
        Operations::alloc_zeroed(self, layout)
    }

    /// Frees memory. The cache keeps up to 32 slots of a class, and of slots of up to 1 KiB also those of eight slabs
    /// that it has set aside, as long as the slabs of all classes have at most a 64th of their region and 1 MiB, and
    /// memory is not short. Of what is larger than 32 KiB it keeps up to eight runs, together at most a 64th of their
    /// region and 1 MiB, none that is freed while memory is short, and few where more than four of five were kept in
    /// vain.
    ///
    /// A free that is found to be wrong changes nothing, and is counted: see [`refused`](Self::refused). What is found,
    /// and when:
    ///
    /// - At once: the second free of the slot that was freed last through the caller's cache, as long as that keeps it,
    ///   among those of its size (with the feature `quarantine`, among those of any size; with `shuffle` of any slot
    ///   that the cache keeps); any wrong free whose layout is larger than 32 KiB, except of what the cache of another
    ///   thread or CPU keeps; any by a caller that bypasses the caches, except of what a cache keeps or another
    ///   operation has in hand; and with one of the features `poison`, `asan` and `valgrind` any of what is not
    ///   allocated, except of what the cache of another thread or CPU keeps.
    /// - When the cache sets slots aside or gives them back, at the latest in [`trim`](Self::trim) or when the thread
    ///   ends: any other free of an address that is not the heap's, or lies inside a block, or has a slot of another
    ///   size (a slot that is a run of its own is accepted as any size of as many units), or one that is free. Until
    ///   then **the cache may hand that address out**, once for each free, though somebody else may be using it.
    /// - Never: a second free of memory that has been allocated again since, be it while that free runs.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100_000]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// assert_eq!(HEAP.stats().runs, 0);
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    pub unsafe fn free(&'static self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { Operations::free(self, at, layout) };
    }

    /// Makes memory larger or smaller, and moves its contents if necessary. Returns `None` if there is no memory; then
    /// nothing has changed.
    ///
    /// It happens in place if the slot is of the right class for both sizes, and for a run if the units behind it are
    /// free, or it keeps half of its units. A run that lies at a page can be made smaller, to more than 128 bytes, also
    /// when the heap is full, unless another thread's allocation is just then passing below the run, or has died there.
    /// What would move, and finds no memory, has caches emptied first, as an allocation does that finds none.
    ///
    /// Cost: nothing within the class of a slot; in place that of [`nbbs::Lane::shrink`] or [`nbbs::Lane::grow`];
    /// otherwise an allocation, a copy and a free.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 40]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours, and so is what replaces it.
    /// unsafe {
    ///     block.write(7);
    ///     let larger = HEAP.resize(block, layout, 1000).unwrap();
    ///     assert_eq!(larger.read(), 7);
    /// }
    /// ```
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    #[must_use = "the memory may have moved"]
    pub unsafe fn resize(
        &'static self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as the caller promises.
        unsafe { Resize::resize(self, at, layout, size) }
    }

    /// Adds memory, which the heap keeps.
    ///
    /// The bookkeeping for it, 1.6 % of it, lies at its front, and is cleared: a store for each word. Threads may use
    /// the heap meanwhile.
    ///
    /// ```
    /// # use nbbs_heap::{AddError, Heap};
    /// # use std::{alloc::Layout, ptr::NonNull};
    /// static HEAP: Heap<{ 64 << 10 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100_000]>();
    /// assert_eq!(HEAP.alloc(layout), None);
    /// let more = NonNull::from(Box::leak(Box::new([0_u8; 1 << 18]))).cast();
    /// // SAFETY: nobody else ever uses the memory.
    /// unsafe { HEAP.add(more, 1 << 18)? };
    /// assert!(HEAP.alloc(layout).is_some());
    /// # Ok::<(), AddError>(())
    /// ```
    ///
    /// # Errors
    /// [`AddError`] if no unit fits into it, the heap has eight regions, or one of them has some of this memory.
    /// Nothing has changed then.
    ///
    /// # Safety
    /// The memory belongs to the heap from now on.
    pub unsafe fn add(&'static self, start: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().add(start, bytes, Content::Any) }
    }

    /// [Adds](Self::add) memory that is all zero, as `mmap` returns it. Nothing of it is written to, however much it
    /// is: pages that are never handed out take no memory.
    ///
    /// ```
    /// # use nbbs_heap::{AddError, Heap};
    /// # use std::{alloc::{Layout, System, GlobalAlloc}, ptr::NonNull};
    /// static HEAP: Heap<0> = Heap::new();
    ///
    /// let layout = Layout::from_size_align(64 << 30, 4096)?;
    /// # let layout = if cfg!(miri) { Layout::from_size_align(64 << 10, 4096)? } else { layout };
    /// // SAFETY: it is not empty.
    /// if let Some(start) = NonNull::new(unsafe { System.alloc_zeroed(layout) }) {
    ///     // SAFETY: nobody else ever uses the memory, which is zero.
    ///     unsafe { HEAP.add_zeroed(start, layout.size())? };
    ///     assert!(HEAP.alloc(Layout::new::<u64>()).is_some());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    ///
    /// # Safety
    /// That of [`add`](Self::add), and the memory is all zero.
    pub unsafe fn add_zeroed(
        &'static self,
        start: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().add(start, bytes, Content::Zero) }
    }
}

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Operations<'static>
    for &'static Heap<BYTES, CPUS, C>
{
    #[inline]
    fn memory(self) -> Memory<'static> {
        // SAFETY: the bytes are in the heap, which is aligned to a page and stays where it is; they were zero at first,
        // and nobody else reaches them.
        let memory =
            unsafe { Memory::new(&self.regions, NonNull::from(&self.bytes).cast(), BYTES) };
        memory.counting(C::GIVES_BACK)
    }

    #[inline]
    fn with_cache<R>(self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        if let Some(cpu) = aborting(C::number) {
            if !C::OVERLAP.is_nested() {
                return self.caches[cpu % CPUS].with(visit);
            }
            // SAFETY: all calls for this cache get this number, and nest, as whoever said so promised.
            return self.caches.get(cpu).and_then(|cache| unsafe { cache.with_nested(visit) });
        }
        #[cfg(feature = "std")]
        return crate::cache::threads::with(&self.regions, visit);
        // Where operations nest, the first cache is for those that get its number.
        #[cfg(not(feature = "std"))]
        return if C::OVERLAP.is_nested() { None } else { self.caches[0].with(visit) };
    }

    fn claim_cache(self) {
        aborting(C::claim_number);
        #[cfg(feature = "std")]
        if aborting(C::number).is_none() {
            crate::cache::threads::claim(&self.regions, self.memory());
        }
    }

    #[cold]
    fn give_back(self, idle: u64, touched: u64) {
        aborting(|| C::give_back(idle, touched));
    }

    fn lane(self) -> usize {
        let lane = aborting(C::number).map(|number| aborting(|| C::lane(number)));
        #[cfg(feature = "std")]
        return lane.unwrap_or_else(crate::cache::threads::lane);
        #[cfg(not(feature = "std"))]
        return lane.unwrap_or(0);
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

/// The heap must be a static, or leaked: a thread's cache refers to it as long as the thread runs. Who calls these
/// methods promises so, as the trait cannot.
// SAFETY: memory of a layout is handed out once, as the slot or run that its bookkeeping says, and stays where it is.
// It does not unwind, as `aborting` sees to. `Cpu` may not call it but in `give_back`, at the end of a free, when nothing
// is in hand.
unsafe impl<const BYTES: usize, const CPUS: usize, C: Cpu> GlobalAlloc for Heap<BYTES, CPUS, C> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: it is a static, or leaked, as the caller promises.
        let heap = unsafe { &*core::ptr::from_ref(self) };
        heap.alloc(layout).map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let heap: &'static Self = unsafe { &*core::ptr::from_ref(self) };
        heap.alloc_zeroed(layout).map_or(null_mut(), NonNull::as_ptr)
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
