//! A heap in memory that is given at run time.

mod on;

use core::ptr::NonNull;

use crate::cache::{Cache, SharedCache};
use crate::error::AddError;
use crate::look::{AuditError, LiveBlock, Profile, Stats};
use crate::region::{Content, Memory, Region, Regions, bytes_for};
use crate::watch;
pub use on::On;

/// A heap at the front of memory that is given at run time, with a number of caches, which callers name.
///
/// It hands out the rest of that memory, and what is added. [`on`](Self::on) says which cache a caller uses: best that
/// of its CPU, as a cache serves one caller at a time. Taking it costs a read-modify-write, and none where operations
/// on a CPU only interrupt each other: [`on_nested`](Self::on_nested). A caller that finds it in use bypasses it and
/// goes to the slabs; nobody waits. All operations may be called from interrupt and signal handlers, whatever these
/// interrupt.
///
/// ```
/// use nbbs_heap::Placed;
/// use std::alloc::Layout;
/// use std::ptr::NonNull;
///
/// const BYTES: usize = Placed::bytes_for(2, 1 << 20).unwrap();
/// let memory = Box::leak(Box::new([0xff_u8; BYTES])); // whatever it holds
/// // SAFETY: nobody else ever uses the memory.
/// let heap = unsafe { Placed::new(NonNull::from(memory).cast(), BYTES, 2)? };
/// let block = heap.on(1).alloc(Layout::new::<u64>()).unwrap();
/// // SAFETY: the block is ours.
/// assert_eq!(unsafe { heap.on(0).free_at(block) }, Ok(16));
/// # Ok::<(), nbbs_heap::AddError>(())
/// ```
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Placed {
    regions: Regions,
    caches: NonNull<SharedCache>,
    count: usize,
}

// SAFETY: the regions and the caches may be used by all threads, and the caches never move.
unsafe impl Sync for Placed {}
// SAFETY: as above.
unsafe impl Send for Placed {}

impl Placed {
    /// Returns how many bytes of memory, at any address, make a heap with this many caches that hands out `bytes`
    /// bytes, rounded up to units of 1 KiB; `None` if there is no such heap: `bytes` is 0, or more than 4 TiB less
    /// 2 KiB (on 32 bits, than 1 GiB), or there are more caches than addresses. A cache takes 24 KiB; there is at least
    /// one. Cost: some arithmetic, none in a constant.
    ///
    /// ```
    /// assert_eq!(nbbs_heap::Placed::bytes_for(2, 0), None);
    /// ```
    #[must_use]
    pub const fn bytes_for(caches: usize, bytes: usize) -> Option<usize> {
        let (Some(front), Some(region)) = (Self::front(caches), bytes_for(bytes)) else {
            return None;
        };
        // What the region skips to begin at a page includes what the heap skips: together they are less than a page.
        match front.checked_add(region) {
            Some(all) if all <= isize::MAX as usize => Some(all),
            _ => None,
        }
    }

    /// Returns the bytes of the heap itself and its caches.
    const fn front(caches: usize) -> Option<usize> {
        let caches = if caches == 0 { 1 } else { caches };
        match size_of::<SharedCache>().checked_mul(caches) {
            Some(bytes) => bytes.checked_add(size_of::<Self>()),
            None => None,
        }
    }

    /// Makes a heap of `bytes` bytes at `start`, which may have any content, with this many caches, at least one.
    ///
    /// Cost: a store for each word of the caches, 24 KiB each, and of the bookkeeping, 1.6 % of the rest.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// // SAFETY: nobody else ever uses the memory.
    /// assert!(unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1) }.is_ok());
    /// ```
    ///
    /// # Errors
    /// [`AddError::TooSmall`] if there is no room for them and a unit. The memory has not changed then.
    ///
    /// # Safety
    /// The memory belongs to the heap for as long as the heap is used, or anything refers to memory that it handed out
    /// (a box in it, leaked, for `'m`). All of it may be written to.
    pub unsafe fn new<'m>(
        start: NonNull<u8>,
        bytes: usize,
        caches: usize,
    ) -> Result<&'m Self, AddError> {
        const { assert!(size_of::<Self>().is_multiple_of(align_of::<SharedCache>())) }
        let skip = start.addr().get().wrapping_neg() % align_of::<Self>();
        let needed = Self::bytes_for(caches, 1).unwrap_or(usize::MAX);
        let too_small = AddError::TooSmall { bytes, needed };
        let front = Self::front(caches).ok_or(too_small)?;
        let taken = front.checked_add(skip).filter(|&taken| taken < bytes).ok_or(too_small)?;
        // SAFETY: within the memory.
        let rest = unsafe { start.add(taken) };
        Region::place_in(rest, bytes - taken).map_err(|_| too_small)?;
        // A former heap may have closed some of it.
        watch::open(start, taken);
        // SAFETY: the memory has this many bytes, and behind them room for the heap and its caches.
        let place = unsafe { start.add(skip) }.cast::<Self>();
        // SAFETY: as above, so the caches lie behind the heap.
        let first = unsafe { place.add(1) }.cast::<SharedCache>();
        let count = caches.max(1);
        // An all-zero cache keeps nothing, and is not in use.
        // SAFETY: there is room for so many, aligned.
        unsafe { first.write_bytes(0, count) };
        // SAFETY: there is room for the heap, aligned.
        unsafe { place.write(Self { regions: Regions::new(), caches: first, count }) };
        // SAFETY: it was just made, stays for `'m`, and is reached by shared references only.
        let heap: &Self = unsafe { place.as_ref() };
        // SAFETY: the rest of the memory belongs to the heap, too.
        unsafe { heap.add(rest, bytes - taken) }.map(|()| heap)
    }

    fn memory(&self) -> Memory<'_> {
        // SAFETY: the heap has no memory of its own.
        unsafe { Memory::new(&self.regions, NonNull::dangling(), 0) }
    }

    /// Adds memory, which the heap keeps, while threads may use it. Cost: a store for each word of the bookkeeping at
    /// its front, 1.6 % of it.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 128 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// // SAFETY: nobody else ever uses the other half.
    /// assert!(unsafe { heap.add(memory.add(64 << 10), 64 << 10) }.is_ok());
    /// ```
    ///
    /// # Errors
    /// [`AddError`] if no unit fits into it, the heap has eight regions, or one of them has some of this memory.
    /// Nothing has changed then.
    ///
    /// # Safety
    /// The memory belongs to the heap for as long as the heap is used, or anything refers to memory that it handed out.
    pub unsafe fn add(&self, start: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().add(start, bytes, Content::Any) }
    }

    /// [Adds](Self::add) memory that is all zero. Cost: a few stores, however much it is; none of them goes there.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 128 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// // SAFETY: nobody else ever uses the other half, which is zero.
    /// assert!(unsafe { heap.add_zeroed(memory.add(64 << 10), 64 << 10) }.is_ok());
    /// ```
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    ///
    /// # Safety
    /// That of [`add`](Self::add), and the memory is all zero.
    pub unsafe fn add_zeroed(&self, start: NonNull<u8>, bytes: usize) -> Result<(), AddError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory().add(start, bytes, Content::Zero) }
    }

    /// Returns the heap as seen from a CPU, whose cache it then uses. Numbers from the number of caches on share
    /// caches.
    ///
    /// A wrong number costs time and nothing else, unless its cache is that of [`on_nested`](Self::on_nested), too.
    /// With the feature `allocator-api2` or `nightly` it is an `Allocator`, for collections. Cost: none, it is a
    /// pointer and a number.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert!(heap.on(0).alloc(std::alloc::Layout::new::<u64>()).is_some());
    /// ```
    #[must_use]
    #[inline]
    pub fn on(&self, cpu: usize) -> On<'_> {
        On { heap: self, cpu, is_nested: false }
    }

    /// Returns the heap as seen from a CPU on which operations overlap only if one interrupts the other. Using the
    /// CPU's cache then takes no read-modify-write; a handler that interrupts an operation bypasses it. So do
    /// operations with numbers from the number of caches on. Cost: none.
    ///
    /// ```
    /// # use nbbs_heap::Placed;
    /// # use std::alloc::Layout;
    /// # use std::ptr::NonNull;
    /// # const BYTES: usize = Placed::bytes_for(2, 1 << 20).unwrap();
    /// # let memory = Box::leak(Box::new([0_u8; BYTES]));
    /// # // SAFETY: nobody else ever uses the memory.
    /// # let heap = unsafe { Placed::new(NonNull::from(memory).cast(), BYTES, 2)? };
    /// let cpu = 1; // preemption is off
    /// // SAFETY: nothing else uses the heap on this CPU, except handlers that interrupt this.
    /// let on = unsafe { heap.on_nested(cpu) };
    /// let block = on.alloc(Layout::new::<u64>()).unwrap();
    /// // SAFETY: the block is ours.
    /// assert_eq!(unsafe { on.free_at(block) }, Ok(16));
    /// # Ok::<(), nbbs_heap::AddError>(())
    /// ```
    ///
    /// # Safety
    /// Of two operations that use this cache, one by what this method returns and one by that or by what
    /// [`on`](Self::on) returns, or [`audit`](Self::audit), which uses all, either one happens before the other, or one
    /// interrupts the other, in its thread or on its CPU, and ends before that continues. So interrupts may stay
    /// enabled, but a thread must not be preempted or moved to another CPU from reading the number to the return of the
    /// operation: a kernel disables preemption, a program gives each of its threads a number of its own. A collection
    /// in what this method returns operates on this cache whenever it grows, shrinks or is dropped. If this rule is
    /// broken, memory may be handed out twice.
    #[must_use]
    #[inline]
    pub unsafe fn on_nested(&self, cpu: usize) -> On<'_> {
        On { heap: self, cpu, is_nested: true }
    }

    /// Returns whether an address lies in memory that the heap hands out. Cost: two loads for each region, at most.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert!(!heap.contains(memory.as_ptr())); // the heap itself
    /// ```
    #[must_use]
    pub fn contains(&self, at: *const u8) -> bool {
        let at = NonNull::new(at.cast_mut());
        at.is_some_and(|at| self.memory().at(at, |_| ()).is_some())
    }

    /// Returns what the memory is used for. Cost: a walk over all units.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert_eq!(heap.stats().free, heap.stats().bytes);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.memory())
    }

    /// Calls `visit` for every block that is in use, as [`Heap::walk`](crate::Heap::walk) does. Cost: a walk over all
    /// units.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// heap.walk(|live| panic!("{live:?} is in use"));
    /// ```
    pub fn walk(&self, visit: impl FnMut(LiveBlock)) {
        self.memory().walk(visit);
    }

    /// Returns what is in use by size, as [`Heap::profile`](crate::Heap::profile) does. Cost: a walk over all units.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert!(heap.profile().to_string().starts_with("{\"dhatFileVersion\":2"));
    /// ```
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile::of(&self.memory())
    }

    /// Checks that the bookkeeping is in order, and what all caches keep. Nobody else may be using the heap. Cost: a
    /// walk over all units.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert_eq!(heap.audit(), Ok(()));
    /// ```
    ///
    /// # Errors
    /// Those of [`Heap::audit`](crate::Heap::audit).
    pub fn audit(&self) -> Result<(), AuditError> {
        let memory = self.memory();
        memory.audit()?;
        for number in 0..self.count {
            // What this cache keeps is not counted again: it is in use.
            let others = |kept, at| {
                let of = |other| self.cache(other)?.with(|cache| cache.count(kept, at));
                (0..self.count).filter_map(of).sum()
            };
            let audit = |cache: &mut Cache| memory.audit_cache(cache, others);
            self.cache(number).and_then(|cache| cache.with(audit)).unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Returns the cache of this number, if there is one.
    #[inline]
    fn cache(&self, number: usize) -> Option<&SharedCache> {
        (number < self.count).then(|| {
            // SAFETY: this many caches were made.
            let cache = unsafe { self.caches.add(number) };
            // SAFETY: they are only reached by shared references.
            unsafe { cache.as_ref() }
        })
    }

    /// Returns how many slots were found written to while they were free, before they were to be handed out, with the
    /// feature `poison`. These slots are never handed out again. Once no slot of a slab is in use and its memory is
    /// given back, what was written there goes unnoticed. Cost: a load.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert_eq!(heap.damaged(), 0);
    /// ```
    #[must_use]
    pub fn damaged(&self) -> usize {
        self.memory().damaged()
    }

    /// Returns how many frees were refused. Cost: a load.
    ///
    /// ```
    /// # let memory = std::ptr::NonNull::from(Box::leak(Box::new([0_u8; 64 << 10]))).cast();
    /// # let heap = unsafe { nbbs_heap::Placed::new(memory, 64 << 10, 1).unwrap() }; // SAFETY: it is leaked
    /// assert!(unsafe { heap.on(0).free_at(memory) }.is_err() && heap.refused() == 1); // SAFETY: refused
    /// ```
    #[must_use]
    pub fn refused(&self) -> usize {
        self.memory().refused()
    }
}
