//! The operations of a heap, whichever cache its caller uses.

mod by_address;

pub use by_address::ByAddress;

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use crate::cache::{Cache, KeptRuns};
use crate::class::{Class, GRAIN, LARGEST, UNIT, is_aligned};
use crate::error::FreeError;
use crate::look::AuditError;
use crate::region::{Held, Memory, Region, Runs};
use crate::watch;

/// A heap, as one caller sees it.
pub trait Operations<'h>: Copy {
    /// Returns all its memory.
    fn memory(self) -> Memory<'h>;

    /// Calls `visit` with the caller's cache, unless that is in use.
    fn with_cache<R>(self, visit: impl FnOnce(&mut Cache) -> R) -> Option<R>;

    /// Gives the caller a cache, if it has none: a number may be had, or the calling thread's cache, which is that of the
    /// first heap that asks.
    fn claim_cache(self) {}

    /// Returns the caller's lane of the buddy allocator.
    fn lane(self) -> usize;

    /// Has idle memory go back to where it came from, if somebody knows how: so many bytes, of so many that were touched.
    fn give_back(self, _idle: u64, _touched: u64) {}

    /// [Has idle memory go back](Self::give_back), if there is much.
    #[inline]
    fn give_back_idle(self) {
        if let Some((idle, touched)) = self.memory().idle() {
            self.give_back(idle, touched);
        }
    }

    #[inline]
    fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > GRAIN {
            return self.alloc_aligned(layout);
        }
        self.alloc_of(Class::of(layout), layout)
    }

    /// Allocates memory whose alignment takes a call to find the class, for which others need not save registers.
    #[cold]
    fn alloc_aligned(self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc_of(Class::of(layout), layout)
    }

    #[inline]
    fn alloc_of(self, class: Option<Class>, layout: Layout) -> Option<NonNull<u8>> {
        match class {
            Some(class) => self.alloc_slot(class),
            None => self.alloc_run(layout, false),
        }
    }

    /// Allocates memory that is all zero.
    fn alloc_zeroed(self, layout: Layout) -> Option<NonNull<u8>> {
        let Some(class) = Class::of(layout) else { return self.alloc_run(layout, true) };
        let at = self.alloc_slot(class)?;
        // SAFETY: the slot is the caller's, and holds the layout.
        unsafe { at.write_bytes(0, layout.size()) };
        Some(at)
    }

    /// Frees memory that was allocated with this layout.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up.
    #[inline]
    unsafe fn free(self, at: NonNull<u8>, layout: Layout) {
        if layout.align() > GRAIN {
            // SAFETY: as the caller promises.
            return unsafe { self.free_aligned(at, layout) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.free_of(Class::of(layout), at, layout) };
    }

    /// Frees memory, as [`alloc_aligned`](Self::alloc_aligned) allocates it.
    ///
    /// # Safety
    /// That of [`free`](Self::free).
    #[cold]
    unsafe fn free_aligned(self, at: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.free_of(Class::of(layout), at, layout) };
    }

    /// Frees memory whose layout is that of this class, or of none.
    ///
    /// # Safety
    /// That of [`free`](Self::free).
    #[inline]
    unsafe fn free_of(self, class: Option<Class>, at: NonNull<u8>, layout: Layout) {
        match class {
            // SAFETY: as the caller promises.
            Some(class) => unsafe { self.free_slot(class, at) },
            None => self.free_run(at, layout),
        }
    }

    /// Makes memory larger or smaller in place, if possible. Returns whether it was.
    #[inline]
    fn resize_in_place(self, at: NonNull<u8>, old: Layout, new: Layout) -> bool {
        match (Class::of(old), Class::of(new)) {
            (None, None) => self.resize_run(at, old.size(), new.size()),
            (from, to) => from == to,
        }
    }

    /// Makes memory larger or smaller, and moves its contents if necessary. Returns `None` if there is no memory; then
    /// nothing has changed.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with this layout, and gives it up for what is returned.
    unsafe fn resize(self, at: NonNull<u8>, layout: Layout, size: usize) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, layout.align()).ok()?;
        // SAFETY: as the caller promises.
        unsafe { self.resize_to(at, layout, new) }
    }

    /// Changes the layout of memory, as [`resize`](Self::resize) changes its size.
    ///
    /// # Safety
    /// The caller holds `at`, which this heap allocated with the layout `old`, and gives it up for what is returned.
    unsafe fn resize_to(self, at: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        let is_aligned = is_aligned(at.addr().get(), new.align());
        let stays = || is_aligned && self.resize_in_place(at, old, new);
        if !moves(old.size(), new) && stays() {
            return Some(at);
        }
        // SAFETY: as the caller promises.
        let free = || unsafe { self.free(at, old) };
        // SAFETY: as the caller promises.
        let moved = unsafe { relocate(at, old, new, |new| self.alloc(new), free) };
        moved.or_else(|| self.resize_refused(at, stays, new))
    }

    /// Changes a layout without more memory, which was refused: the refusal has emptied the cache, which may have kept
    /// what lies behind, so that the block `stays` where it is. Returns `at` if the layout is changed.
    #[cold]
    fn resize_refused(
        self,
        at: NonNull<u8>,
        stays: impl FnOnce() -> bool,
        new: Layout,
    ) -> Option<NonNull<u8>> {
        if stays() { Some(at) } else { self.shrink_to_slot(at, Class::of(new)?) }
    }

    /// Makes a run one that serves as a slot of this class, if it is longer than that: the last resort of a heap that is
    /// full. Returns `at` if it was made so.
    #[cold]
    fn shrink_to_slot(self, at: NonNull<u8>, class: Class) -> Option<NonNull<u8>> {
        let run = self.find(at).ok().filter(|run| run.may_hold(class))?;
        let shrinks = run.bytes() >= class.size();
        (shrinks && self.resize_run(at, run.bytes(), class.size())).then_some(at)
    }

    /// Finds what is allocated at an address.
    fn find(self, at: NonNull<u8>) -> Result<Held, FreeError> {
        let memory = self.memory();
        let foreign = || FreeError::Foreign { address: at.addr().get(), regions: memory.regions() };
        memory.at(at, |region| region.find(at)).ok_or_else(foreign)?
    }

    /// Returns whether the caller's cache keeps what was found there: a slot, or a run, which may serve as one.
    fn keeps_held(self, held: Held, at: NonNull<u8>) -> bool {
        match held {
            Held::Slot { class, .. } => self.is_kept(class, at),
            Held::Run { .. } if held.bytes() > LARGEST => self.keeps_run(at),
            Held::Run { .. } => Class::of_runs(held.bytes())
                .any(|class| held.holds(class) && self.is_kept(class, at)),
        }
    }

    /// Returns whether the caller's cache keeps that slot, as [`Cache::keeps`] tells.
    #[inline]
    fn is_kept(self, class: Class, at: NonNull<u8>) -> bool {
        self.with_cache(|cache| cache.keeps(class, at)) == Some(true)
    }

    #[inline]
    fn alloc_slot(self, class: Class) -> Option<NonNull<u8>> {
        if !watch::ON {
            // Last, so that a hit saves no registers for what follows.
            return self.take_slot(class);
        }
        loop {
            let at = self.take_slot(class)?;
            watch::open(at, class.size());
            // SAFETY: the slot is the caller's, and was closed when it was freed, or made.
            if unsafe { watch::is_intact(at, class.size()) } {
                watch::allocated(at, class.size(), false);
                return Some(at);
            }
            // The slot stays in use, and so is never handed out.
            self.memory().damage();
        }
    }

    #[inline]
    fn take_slot(self, class: Class) -> Option<NonNull<u8>> {
        let found = self.with_cache(|cache| cache.pop(class)).flatten();
        found.or_else(|| self.alloc_slowly(class))
    }

    #[cold]
    fn alloc_slowly(self, class: Class) -> Option<NonNull<u8>> {
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        match self.with_cache(|cache| cache.alloc(class, &memory, lane)) {
            Some(found) => found,
            None => self.alloc_past_caches(class),
        }
    }

    /// Takes a slab's slots, or makes a slab, keeps one slot, and gives back the others.
    #[cold]
    fn alloc_past_caches(self, class: Class) -> Option<NonNull<u8>> {
        let (memory, lane, mut refused) = (self.memory(), self.lane(), 0);
        let mut alloc = || {
            let old = memory.find(|region| region.alloc_slot(class, lane, &mut refused));
            old.or_else(|| {
                let memory = memory.swept(lane);
                memory.find(|region| region.alloc_slot_of_new(class, lane, &mut refused))
            })
            .or_else(|| memory.find(|region| region.make_run(class, lane)))
        };
        let found = alloc().or_else(|| {
            memory.trim(lane);
            alloc()
        });
        memory.refuse_all(refused);
        found
    }

    /// Frees a slot of this class. A free that is found to be wrong is counted.
    ///
    /// # Safety
    /// The caller holds it, and gives it up.
    #[inline]
    unsafe fn free_slot(self, class: Class, at: NonNull<u8>) {
        if !watch::ON {
            if self.with_cache(|cache| cache.push(class, at)) != Some(true) {
                self.free_slowly(class, at);
            }
            return;
        }
        // Only what is known to be a slot can be closed. A run may be kept as a slot of another size.
        let is_freed = self.find(at).is_ok_and(|held| held.is_of(class) && !self.keeps_held(held, at))
            // SAFETY: as the caller promises.
            && unsafe { self.try_free_slot(class, at) };
        if !is_freed {
            self.memory().refuse();
        }
    }

    /// Frees a slot for which the caller's cache had no room. A free that is found to be wrong is counted. Never inlined,
    /// so that a hit saves no registers for it.
    #[cold]
    #[inline(never)]
    fn free_slowly(self, class: Class, at: NonNull<u8>) {
        if !self.try_free_slowly(class, at) {
            self.memory().refuse();
        }
    }

    /// Frees a slot of this class, unless the caller's cache keeps it. It is closed first: after the free it may be
    /// somebody else's. Returns whether the free was not found wrong.
    ///
    /// # Safety
    /// The caller holds the slot, and gives it up.
    #[inline]
    unsafe fn try_free_slot(self, class: Class, at: NonNull<u8>) -> bool {
        if watch::ON {
            if self.is_kept(class, at) {
                return false;
            }
            watch::freed(at);
            // SAFETY: as the caller promises.
            unsafe { watch::close(at, class.size()) };
        }
        match self.with_cache(|cache| !cache.keeps(class, at) && cache.push(class, at)) {
            Some(true) => true,
            _ => self.try_free_slowly(class, at),
        }
    }

    /// Frees a slot for which the caller's cache had no room, unless the cache keeps it: the cache makes room, or is
    /// bypassed if it is in use. Returns whether the free was not found wrong.
    #[cold]
    fn try_free_slowly(self, class: Class, at: NonNull<u8>) -> bool {
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        let is_freed = !self.is_kept(class, at)
            && (self.with_cache(|cache| cache.free(class, at, &memory, lane)).is_some()
                || self.try_free_past_caches(class, at));
        self.give_back_idle();
        is_freed
    }

    /// Gives a slot back to its slab, or frees it if it is a run. Returns whether it was either.
    #[cold]
    fn try_free_past_caches(self, class: Class, at: NonNull<u8>) -> bool {
        let lane = self.lane();
        let given = self.memory().at(at, |region| match region.slot_of(class, at) {
            Some((slab, slot)) => region.give_any(class, lane, slab, 1 << slot).0 == 0,
            None => region.give_run(class, lane, at).is_some(),
        });
        given == Some(true)
    }

    /// Allocates a run of units, all zero if `zeroed`.
    #[cold]
    fn alloc_run(self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        if let Some(kept) = self.take_run(layout) {
            if zeroed {
                // SAFETY: the run is the caller's, and holds the layout.
                unsafe { kept.write_bytes(0, layout.size()) };
            }
            return Some(kept);
        }
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        let alloc = |region: &Region<'static>| region.alloc_run(layout, zeroed, lane);
        let found = memory.swept(lane).find(alloc).or_else(|| {
            // What no region could ever hold need not empty everybody's caches.
            memory.find(|region| region.is_as_large_as(layout.size()).then_some(()))?;
            self.trim();
            memory.find(alloc)
        });
        found.inspect(|&at| watch::allocated(at, layout.size().next_multiple_of(UNIT), zeroed))
    }

    /// Allocates a run that the caller's cache keeps, if it keeps one for this layout.
    fn take_run(self, layout: Layout) -> Option<NonNull<u8>> {
        let is_ever_kept = KeptRuns::ON && layout.size() > LARGEST;
        let units = Runs::<UNIT>::units_of(layout.size());
        let take = |cache: &mut Cache| cache.take_run(units, layout.align());
        is_ever_kept.then(|| self.with_cache(take).flatten())?
    }

    /// Returns whether the caller's cache keeps a run there.
    fn keeps_run(self, at: NonNull<u8>) -> bool {
        KeptRuns::ON && self.with_cache(|cache| cache.keeps_run(at)) == Some(true)
    }

    #[cold]
    fn free_run(self, at: NonNull<u8>, layout: Layout) {
        if !self.try_free_run(at, layout.size(), &(0..0)) {
            self.memory().refuse();
        }
    }

    /// Frees a run, of which some bytes are `zero`: to the caller's cache, unless that has no room. Returns whether there
    /// was one, which the cache does not keep already.
    fn try_free_run(self, at: NonNull<u8>, bytes: usize, zero: &Range<usize>) -> bool {
        let free = |region: &Region<'_>| {
            self.free_run_to_cache(region, at, bytes).unwrap_or_else(|| {
                // Not of what the cache keeps: it does not record that whoever gets that writes to it.
                region.renew(at, zero);
                region.free_held_run(at, bytes, self.lane())
            })
        };
        let is_freed = self.memory().at(at, free) == Some(true);
        self.give_back_idle();
        is_freed
    }

    /// Frees a run to the caller's cache. Returns `None` if the cache does not keep it, and otherwise whether it did not
    /// keep it already.
    fn free_run_to_cache(self, region: &Region<'_>, at: NonNull<u8>, bytes: usize) -> Option<bool> {
        if !KeptRuns::ON || bytes <= LARGEST {
            return None;
        }
        self.claim_cache();
        let (memory, lane) = (self.memory(), self.lane());
        self.with_cache(|cache| cache.free_run(at, bytes, region, &memory, lane)).flatten()
    }

    fn resize_run(self, at: NonNull<u8>, from: usize, to: usize) -> bool {
        // The cache hands it out as long as it was.
        if self.keeps_run(at) {
            return false;
        }
        let lane = self.lane();
        let resize = |region: &Region<'_>| region.resize_run(at, from, to, lane);
        self.memory().at(at, resize) == Some(true)
    }

    /// Empties the caller's cache, asks others to empty theirs, and returns the memory of slabs of which no slot is in
    /// use. Returns how many bytes these are.
    fn trim(self) -> usize {
        let memory = self.memory();
        self.drain() + memory.trim(self.lane())
    }

    /// Empties the caller's cache. Returns how many bytes of runs and whole slabs went back.
    fn drain(self) -> usize {
        let (memory, lane) = (self.memory(), self.lane());
        self.with_cache(|cache| cache.drain(&memory, lane)).unwrap_or(0)
    }

    /// Checks the bookkeeping and the caller's cache. Nothing else may be running.
    fn audit(self) -> Result<(), AuditError> {
        let memory = self.memory();
        memory.audit()?;
        self.with_cache(|cache| memory.audit_cache(cache, |_, _| 0)).unwrap_or(Ok(()))
    }
}

/// Returns whether memory of so many bytes moves to get the layout `new`, if there is memory: what becomes a run of less
/// than half. What it leaves in place would lie in a hole as long as it was, which nothing as long fits into again; and
/// the copy is shorter than that.
fn moves(old: usize, new: Layout) -> bool {
    let units = Runs::<UNIT>::units_of;
    units(new.size()) < units(old) / 2 && Class::of(new).is_none()
}

/// Allocates memory of the layout `new`, copies to it what fits of the contents of `at`, of the layout `old`, and frees
/// that. Returns `None` if there is no memory; then nothing has changed.
///
/// # Safety
/// The caller holds `at`, and what `alloc` returns.
pub unsafe fn relocate(
    at: NonNull<u8>,
    old: Layout,
    new: Layout,
    alloc: impl FnOnce(Layout) -> Option<NonNull<u8>>,
    free: impl FnOnce(),
) -> Option<NonNull<u8>> {
    let moved = alloc(new)?;
    // SAFETY: the caller holds both, and they have this many bytes.
    unsafe { moved.copy_from_nonoverlapping(at, old.size().min(new.size())) };
    free();
    Some(moved)
}
