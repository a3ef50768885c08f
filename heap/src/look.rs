//! Looking at a heap, and giving memory back.

use core::ptr::NonNull;

use crate::audit::AuditError;
use crate::heap::{Cpu, Heap};
use crate::profile::{LiveBlock, Profile};
use crate::stats::Stats;
use crate::steps::Steps;

impl<const BYTES: usize, const CPUS: usize, C: Cpu> Heap<BYTES, CPUS, C> {
    /// Returns the memory of slabs of which no slot is in use, so that it may serve other sizes: how many bytes.
    ///
    /// The caller's cache gives back what it keeps at once; others do when they next take slots or give some back. With the
    /// feature `std`, on Linux, whole pages of the heap's own memory that are free, and were in use since the last time, go back
    /// to the operating system: a system call for each piece of them, of 1 MiB at most, which nobody else can have meanwhile.
    /// For what was added, and elsewhere, there is [`discard`](Self::discard).
    pub fn trim(&'static self) -> usize {
        let bytes = Steps::trim(self);
        #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
        {
            use crate::pages::system;
            // SAFETY: the pages are free, and kept from others meanwhile.
            let discard = |at, bytes| unsafe { system::discard(at, bytes) };
            self.memory().discard(false, system::page(), self.lane(), discard);
        }
        bytes
    }

    /// Shows `discard` whole pages of `page` bytes, a power of two, of free memory that was in use since it was last zero: where
    /// they begin, and how many bytes they have, 1 MiB at most. Nobody else can have them meanwhile. It may have a hypervisor
    /// or an operating system take them back, as long as they can be written to later, and says whether they are zero from
    /// then on. Returns how many bytes it said so of.
    ///
    /// Cost: a walk over all units, and two read-modify-writes for each call.
    ///
    /// ```
    /// use nbbs_heap::Heap;
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
    /// let bytes = HEAP.discard(4096, |pages, bytes| {
    ///     zero(pages, bytes);
    ///     true
    /// });
    /// assert!(bytes >= 200 << 10);
    /// ```
    pub fn discard(
        &'static self,
        page: usize,
        discard: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> usize {
        self.memory().discard(true, page, self.lane(), discard)
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

    /// Shows `visit` every block that is in use, in no order: where it begins, its bytes and its size class. What others
    /// allocate and free meanwhile may be shown or not.
    ///
    /// Slots that a cache keeps are shown, too: [`trim`](Self::trim) empties the caller's. `visit` may free the block.
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

    /// What is in use by size: its text is a file that `dh_view.html` of Valgrind opens.
    ///
    /// Slots that a cache keeps are in use, to the heap. Cost: a walk over all units.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let text = HEAP.profile().to_string();
    /// # assert!(text.starts_with("{\"dhatFileVersion\":2"));
    /// ```
    pub fn profile(&'static self) -> Profile {
        Profile::of(&self.memory())
    }

    /// Checks that the bookkeeping is in order, and what the caller's cache keeps. Only while nobody else uses the heap.
    ///
    /// Cost: a walk over all units.
    ///
    /// # Errors
    /// [`AuditError`], which says what is wrong: something has written to the heap's bookkeeping, or a slot that the cache
    /// keeps was freed twice.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// assert_eq!(HEAP.audit(), Ok(()));
    /// ```
    pub fn audit(&'static self) -> Result<(), AuditError> {
        Steps::audit(self)
    }

    /// How many slots were found written to while they were free, before they were to be handed out: with the feature `poison`.
    /// Nobody gets these slots any more.
    pub fn damaged(&'static self) -> usize {
        self.memory().damaged()
    }

    /// How many frees were refused.
    pub fn refused(&'static self) -> usize {
        self.memory().refused()
    }
}
