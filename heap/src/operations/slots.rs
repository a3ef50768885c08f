//! What is done to slots: by the caller's cache if it can, and otherwise past it.

use core::ptr::NonNull;

use super::Operations;
use crate::class::Class;
use crate::watch;

/// A heap, as one caller sees it who allocates and frees slots.
pub trait OfSlots<'h>: Operations<'h> {
    /// Returns whether the caller's cache keeps that slot, as [`Cache::keeps`](crate::cache::Cache::keeps) tells.
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
}

impl<'h, O: Operations<'h>> OfSlots<'h> for O {}
