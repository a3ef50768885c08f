//! What is done to memory of which only the address is known.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use super::Operations;
use super::resize::{Resize, moves};
use super::runs::OfRuns;
use super::slots::OfSlots;
use crate::class::{Class, GRAIN, LARGEST, UNIT};
use crate::error::FreeError;
use crate::region::{Held, Region};
use crate::unwind::aborting;
use crate::watch;

/// A heap, as one caller sees it who knows no layouts.
pub trait ByAddress<'h>: Operations<'h> {
    /// Allocates memory that is freed and resized by its address alone: as long as a layout says, or a run that is longer.
    #[inline]
    fn alloc_at_least(self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() > LARGEST { self.alloc_run_at_least(layout) } else { self.alloc(layout) }
    }

    /// Frees what is allocated at an address, and returns how many bytes it had. Calls `last` with the bytes of what is
    /// larger than any slot, before it is given up, which returns those of them that are zero now.
    ///
    /// # Safety
    /// The caller holds what is allocated there, if anything, and gives it up. What `last` says is zero, is.
    #[inline]
    unsafe fn free_at(
        self,
        at: NonNull<u8>,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<usize, FreeError> {
        // What most frees are: a slot, for which the cache has room. Everything else goes the slow way, which says why.
        if !watch::ON
            && let Some(slot) = self.memory().at(at, |region| region.slot_at(at)).flatten()
            && self.with_cache(|cache| cache.push_slot(slot, at)) == Some(true)
        {
            return Ok(slot.class.size());
        }
        // SAFETY: as the caller promises.
        unsafe { self.free_at_slowly(at, last) }
    }

    /// Frees what is allocated at an address, whatever it is and whether or not the caller's cache has room.
    ///
    /// # Safety
    /// That of [`free_at`](Self::free_at).
    #[cold]
    unsafe fn free_at_slowly(
        self,
        at: NonNull<u8>,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<usize, FreeError> {
        let freed = self.find(at).and_then(|held| {
            let bytes = held.bytes();
            let is_freed = match held {
                // SAFETY: as the caller promises.
                Held::Slot { class, .. } => unsafe { self.try_free_slot(class, at) },
                // A cache that is given one looks itself.
                Held::Run { .. } if bytes > LARGEST => {
                    let zero = aborting(|| last(bytes));
                    self.try_free_run(at, bytes, &zero)
                }
                Held::Run { .. } => {
                    !self.keeps_held(held, at) && self.try_free_run(at, bytes, &(0..0))
                }
            };
            is_freed.then_some(bytes).ok_or(FreeError::NotAllocated { address: at.addr().get() })
        });
        if freed.is_err() {
            self.memory().refuse();
        }
        freed
    }

    /// Makes what is allocated at an address larger or smaller. Returns `None` if there is no memory; then nothing has
    /// changed.
    ///
    /// # Safety
    /// The caller holds what is allocated there, if anything, and gives it up for what is returned. What `last` says is
    /// zero, is.
    unsafe fn resize_at(
        self,
        at: NonNull<u8>,
        size: usize,
        last: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        let held = self.find(at)?;
        if self.keeps_held(held, at) {
            self.memory().refuse();
            return Err(FreeError::NotAllocated { address: at.addr().get() });
        }
        let Ok(new) = Layout::from_size_align(size, GRAIN) else { return Ok(None) };
        let stays = || match (held, Class::of(new)) {
            (Held::Slot { class, .. }, to) => to == Some(class),
            (Held::Run { .. }, None) => self.resize_run_at(at, held.bytes(), size),
            (Held::Run { .. }, Some(class)) => held.holds(class),
        };
        if !moves(held.bytes(), new) && stays() {
            return Ok(Some(at));
        }
        let Some(moved) = self.alloc_at_least(new) else {
            let stays = self.resize_refused(at, stays, new);
            // Nobody needs to know how long it is, so that it may stay longer than it has to be.
            return Ok(stays.or_else(|| (size <= held.bytes()).then_some(at)));
        };
        // SAFETY: the caller holds both, and they have this many bytes.
        unsafe { moved.copy_from_nonoverlapping(at, held.bytes().min(size)) };
        // SAFETY: the caller gives it up.
        let freed = unsafe { self.free_at(at, last) };
        // By its address, as it may be longer than its layout. SAFETY: nobody has been told of it.
        freed.map(|_| Some(moved)).inspect_err(|_| _ = unsafe { self.free_at(moved, |_| 0..0) })
    }

    /// Makes a run of `bytes` bytes longer or shorter in place, if possible. Returns whether it has at least `size` bytes
    /// now, and little more: one that grows gets [room](Region::with_room) for the next steps.
    fn resize_run_at(self, at: NonNull<u8>, bytes: usize, size: usize) -> bool {
        let with_room = |region: &Region<'_>| region.with_room(at, size);
        let Some(most) = self.memory().at(at, with_room) else { return false };
        // Without room `most` is what the last line asks for, which need not be asked for twice.
        let exact = size.next_multiple_of(UNIT);
        (size..=most).contains(&bytes)
            || size > bytes && most > exact && self.resize_run(at, bytes, most)
            || self.resize_run(at, bytes, size)
    }
}

impl<'h, O: Operations<'h>> ByAddress<'h> for O {}
