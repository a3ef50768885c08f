//! The operations of a heap, whichever cache its caller uses.
//!
//! ```text
//! slots       of a size class: most allocations and frees     resize      both, in place or elsewhere
//! runs        what is larger                                  by_address  all, without a layout
//! ```

mod by_address;
mod resize;
mod runs;
mod slots;

pub use by_address::ByAddress;
pub use resize::{Resize, relocate};
use runs::OfRuns;
use slots::OfSlots;

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::cache::Cache;
use crate::class::{Class, GRAIN, LARGEST};
use crate::error::FreeError;
use crate::look::AuditError;
use crate::region::{Held, Memory};

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
