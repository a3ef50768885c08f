//! Inspecting a heap, and giving memory back.

use core::ptr::NonNull;

use crate::api::{Cpu, Heap};
use crate::error::PageError;
use crate::look::{AuditError, LiveBlock, Profile, Stats};
use crate::operations::Operations;
use crate::region::Discarded;

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// Returns the memory of slabs of which no slot is in use, so that it can serve other sizes. Returns how many bytes
    /// these are, and the runs that the caller's cache gives back.
    ///
    /// The caller's cache gives back what it keeps at once; other caches do when they next take slots or give some
    /// back, or are given a run. The slabs that others have in hand are missed, four at most for each thread and for
    /// each caller that a handler has interrupted. So are all slabs of a size if one of them becomes empty whenever the
    /// trim is about to begin with them, 1000 times in a row.
    ///
    /// With the feature `std`, on Linux, whole pages of the heap's own memory that are free, and were in use since the
    /// last time, go back to the operating system. This takes a system call for each piece of at most 1 MiB, which
    /// nobody else can allocate in the meantime. For added memory, and on other systems, there is
    /// [`discard`](Self::discard). The heap's own memory must be private to the process, as a static is: shared pages
    /// that go back are not zero, which [`alloc_zeroed`](Self::alloc_zeroed) takes them for. Of memory in huge pages
    /// (`MAP_HUGETLB`) nothing goes back to the system.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// assert!(HEAP.trim() > 0); // the bytes of its slab
    /// assert_eq!(HEAP.stats().free, HEAP.stats().bytes);
    /// ```
    pub fn trim(&'static self) -> usize {
        let bytes = Operations::trim(self);
        #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
        {
            use crate::region::pages::system;
            let page = system::page();
            // SAFETY: the pages are free, and nobody else can allocate them now.
            let discard = |at, bytes| unsafe { system::discard(at, bytes, page) };
            // The system's pages are a power of two, and no larger than 64 KiB.
            // SAFETY: it returns that they are zero if the system has taken them.
            _ = unsafe { self.memory().discard(false, page, self.lane(), discard) };
        }
        bytes
    }

    /// Empties the caller's cache: before its thread ends, or its CPU is taken off. Threads whose caches the heap gives
    /// them (feature `std`) need not call it. Returns the bytes of the runs that were given back, and of the slabs
    /// whose slots all were in one piece. Slabs that become whole in several are returned by the next
    /// [`trim`](Self::trim).
    ///
    /// Cost: a read-modify-write for each slab of which the cache keeps slots, one or two more for each that has to be
    /// listed, and what freeing a run takes for each run and each slab that is returned.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 16 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100_000]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// HEAP.drain(); // the cache may keep it
    /// assert_eq!(HEAP.stats().runs, 0);
    /// ```
    pub fn drain(&'static self) -> usize {
        let bytes = Operations::drain(self);
        self.give_back_idle();
        bytes
    }

    /// Calls `discard` for whole pages of `page` bytes, a power of two, of free memory that was in use since it was
    /// last zero, with their address and their number of bytes, at most 1 MiB. Nobody else can allocate them in the
    /// meantime: an allocation that finds nothing else is refused. `discard` may have a hypervisor or an operating
    /// system take them back, as long as they can be written to later, and returns whether they are zero from then on.
    /// Returns the number of bytes for which it returned that. Pages for which it did are passed again once they, or
    /// others of the same piece of free memory, were in use. What is zero is remembered by 64 KiB, counted from the
    /// region's first unit: pages are passed again the next time if the rest of their 64 KiB was not passed with them.
    /// Pages of more than 4 KiB that lie across two of the pieces that it is called with are not passed.
    ///
    /// Cost: a walk over all units, and for each call an allocation and a free of what is passed, and a
    /// read-modify-write for each 4 MiB that it touches.
    ///
    /// # Errors
    /// [`PageError`] if `page` is no power of two, or more than 64 KiB; then `discard` is not called.
    ///
    /// # Safety
    /// If `discard` returns `true`, the memory that it was called with is zero: from then on it serves
    /// [`alloc_zeroed`](Self::alloc_zeroed) as it is.
    ///
    /// ```
    /// use nbbs_heap::{Heap, PageError};
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 200 << 10]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// // Here they are made zero instead.
    /// // SAFETY: nobody else has the pages.
    /// let zero = |pages: std::ptr::NonNull<u8>, bytes| unsafe { pages.write_bytes(0, bytes) };
    /// // SAFETY: they are zero.
    /// let bytes = unsafe {
    ///     HEAP.discard(4096, |pages, bytes| {
    ///         zero(pages, bytes);
    ///         true
    ///     })?
    /// };
    /// assert!(bytes >= 200 << 10);
    /// // SAFETY: nothing is said to be zero.
    /// assert!(unsafe { HEAP.discard(1000, |_, _| false) }.is_err_and(|refused| refused.page == 1000));
    /// # Ok::<(), PageError>(())
    /// ```
    pub unsafe fn discard(
        &'static self,
        page: usize,
        discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Result<usize, PageError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().discard(true, page, self.lane(), discard) }
    }

    /// Does a part of what [`discard`](Self::discard) does, so that memory goes back without a call that takes long: for
    /// at most `bytes` bytes of the memory, and at least 1 MiB, from where the part before ended. Pages of more than 4 KiB
    /// that lie across two parts are not passed. Before the first part of a region, calls return slabs of which no slot
    /// is in use, as [`trim`](Self::trim) does, each as many at most as the part has KiB.
    ///
    /// A turn begins in the regions in which so much is idle that [`Cpu::give_back`] is called, and has a last part; until
    /// then `give_back` is called again for each free that is more than a hit in a cache. So it does nothing in a heap
    /// whose `Cpu` does not [give back](crate::Cpu::GIVES_BACK). If another call takes a part at the same moment, this one
    /// does nothing, and says that it was not the last.
    ///
    /// Cost: a walk over the units of the part, a load for each 4 MiB of the region, and for each call of `discard` what
    /// that costs; or for each slab what a trim costs.
    ///
    /// # Errors
    /// Those of [`discard`](Self::discard).
    ///
    /// # Safety
    /// That of [`discard`](Self::discard).
    ///
    /// ```
    /// use nbbs_heap::{Cpu, Heap};
    /// use std::alloc::Layout;
    ///
    /// struct Thread;
    ///
    /// impl Cpu for Thread {
    ///     fn number() -> Option<usize> {
    ///         None
    ///     }
    ///
    ///     const GIVES_BACK: bool = true;
    /// }
    ///
    /// static HEAP: Heap<{ 64 << 20 }, 1, Thread> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 40 << 20]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// let mut parts = 0;
    /// loop {
    ///     // A system call, elsewhere. Here nothing is said to be zero.
    ///     // SAFETY: so nothing has to be.
    ///     let part = unsafe { HEAP.discard_next(8 << 20, 4096, |_, _| false)? };
    ///     parts += 1; // other work, elsewhere
    ///     if part.is_last {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(parts, 5);
    /// # Ok::<(), nbbs_heap::PageError>(())
    /// ```
    pub unsafe fn discard_next(
        &'static self,
        bytes: usize,
        page: usize,
        discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> Result<Discarded, PageError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().discard_next(bytes, page, self.lane(), discard) }
    }

    /// Returns what the memory is used for. Cost: a walk over all units.
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
    #[must_use]
    pub fn stats(&'static self) -> Stats {
        Stats::of(&self.memory())
    }

    /// Calls `visit` for every block that is in use, in no order, with its address, its bytes and its size class.
    /// Blocks that others allocate and free in the meantime may or may not be included.
    ///
    /// Slots and runs that a cache keeps are included, too: [`trim`](Self::trim) empties the caller's cache. `visit`
    /// may free the block.
    ///
    /// Cost: a walk over all units.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let block = HEAP.alloc(Layout::new::<[u8; 100]>()).unwrap();
    /// HEAP.trim();
    /// HEAP.walk(|live| assert_eq!((live.at, live.size), (block, 112)));
    /// ```
    pub fn walk(&'static self, visit: impl FnMut(LiveBlock)) {
        self.memory().walk(visit);
    }

    /// Returns what is in use, by size. Its text is a file that `dh_view.html` of Valgrind opens.
    ///
    /// To the heap, slots and runs that a cache keeps are in use. Cost: a walk over all units.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let text = HEAP.profile().to_string();
    /// # assert!(text.starts_with("{\"dhatFileVersion\":2"));
    /// ```
    #[must_use]
    pub fn profile(&'static self) -> Profile {
        Profile::of(&self.memory())
    }

    /// Checks that the bookkeeping is in order, and what the caller's cache keeps. Nobody else may be using the heap.
    ///
    /// Cost: a walk over all units.
    ///
    /// # Errors
    /// [`AuditError`], which says what is wrong: something has written to the heap's bookkeeping, or something that
    /// the cache keeps was freed twice.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// assert_eq!(HEAP.audit(), Ok(()));
    /// ```
    pub fn audit(&'static self) -> Result<(), AuditError> {
        Operations::audit(self)
    }

    /// Returns how many slots were found written to while they were free, before they were to be handed out, with the
    /// feature `poison`. These slots are never handed out again. Once no slot of a slab is in use and its memory is
    /// given back, what was written there goes unnoticed. Cost: a load.
    ///
    /// ```
    /// # use nbbs_heap::Heap;
    /// # use std::alloc::Layout;
    /// # if cfg!(any(feature = "asan", feature = "quarantine", feature = "shuffle")) { return }
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// // SAFETY: none, the block is free: this is the mistake that is found.
    /// unsafe { block.write(7) };
    /// assert!(HEAP.alloc(layout).is_some());
    /// assert_eq!(HEAP.damaged(), if cfg!(feature = "poison") { 1 } else { 0 });
    /// ```
    #[must_use]
    pub fn damaged(&'static self) -> usize {
        self.memory().damaged()
    }

    /// Returns how many frees were refused. Cost: a load.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    /// use std::alloc::Layout;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let layout = Layout::new::<[u8; 100_000]>();
    /// let block = HEAP.alloc(layout).unwrap();
    /// // SAFETY: the block is ours.
    /// unsafe { HEAP.free(block, layout) };
    /// // SAFETY: it is not any more, which the heap sees.
    /// unsafe { HEAP.free(block, layout) };
    /// assert_eq!(HEAP.refused(), 1);
    /// ```
    #[must_use]
    pub fn refused(&'static self) -> usize {
        self.memory().refused()
    }
}
