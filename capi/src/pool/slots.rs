//! The slots of a pool, and what is in each: a byte says so, which only who has the slot changes.
//!
//! ```text
//! NONE  no object: the slot is to be had, or just being claimed or given back, or a local keeps it
//! USED  an object is there
//! ```
//!
//! Whoever makes an object marks its slot; `nbbs_pool_free` takes the mark off by a compare-and-swap, of which one
//! succeeds, and gives the slot back. A local does both by plain stores: the object is its caller's, and the slot is
//! its own. So two threads that free the same object at the same time are told apart only if neither has a local.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU8, Ordering};

use super::Pool;
use crate::error::{Code, Error};
use crate::lane::thread_lane;

pub(super) const NONE: u8 = 0;
pub(super) const USED: u8 = 1;

/// Slots of a word.
pub(super) const WORD: usize = 64;

/// The slots of a chunk, as they are named: see `source`.
pub(super) type Slots<'a> = nbbs_pool::Slots<'a, ()>;

/// A slot whose object would begin at an address that was asked for.
pub(super) struct Found<'a> {
    pub slots: Slots<'a>,
    pub slot: usize,
    /// The name of the chunk's first slot, when it was looked up.
    pub begin: usize,
}

impl Found<'_> {
    fn mark(&self) -> &AtomicU8 {
        &self.slots.marks()[self.slot]
    }

    /// Whether there is an object. It has to be where it was looked for still: the chunk may have got other memory
    /// since, and keeps it as long as there is an object.
    pub(super) fn is_used(&self) -> bool {
        // Acquire pairs with the Release in `Pool::claim`: and with it came the memory.
        self.mark().load(Ordering::Acquire) == USED && self.slots.begin().addr() == self.begin
    }
}

impl Pool {
    /// Where the chunk of an address begins.
    #[inline]
    fn chunk_of(&self, address: usize) -> usize {
        self.base.wrapping_add(address.wrapping_sub(self.base) & self.mask)
    }

    /// The object in a slot of a chunk whose first slot's name is `begin`.
    #[inline]
    pub(super) fn object(&self, begin: *mut (), slot: usize) -> *mut c_void {
        let (number, stride) = (begin.addr() - self.chunk_of(begin.addr()), self.shape.stride);
        // Inside the memory that the name leads to.
        begin.cast::<c_void>().wrapping_byte_add(number * (stride - 1) + slot * stride)
    }

    /// Claims a slot for an object.
    #[inline]
    pub(super) fn claim(&self) -> Result<*mut c_void, Error> {
        let claimed = self.inner.claim_slot_on(thread_lane());
        let (slots, slot) = claimed.map_err(|reason| self.shape.refusal(reason))?;
        // Release pairs with the Acquire in `Found::is_used`.
        slots.marks()[slot].store(USED, Ordering::Release);
        Ok(self.object(slots.begin(), slot))
    }

    /// The slot whose object would begin at an address.
    #[inline]
    pub(super) fn find(&self, object: *const c_void) -> Result<Found<'_>, Error> {
        let chunk = self.chunk_of(object.addr());
        let offset = object.addr().wrapping_sub(chunk);
        let number = offset / self.shape.stride;
        let name = chunk.wrapping_add(number);
        let slots = self.inner.slots_at(name).ok_or_else(|| self.foreign(object))?;
        // The memory may have gone since: then the mark says that there is no object.
        let begin = slots.begin().addr();
        let found = Found { slots, slot: name.wrapping_sub(begin), begin };
        if begin == 0 || found.slot >= slots.len() {
            return Err(self.foreign(object));
        }
        if number * self.shape.stride == offset {
            Ok(found)
        } else if found.is_used() {
            let begin = chunk + number * self.shape.stride;
            Err(Error::of(Code::InsideUnit, object.addr() as u64, begin as u64))
        } else {
            Err(Error::of(Code::NoObject, object.addr() as u64, 0))
        }
    }

    #[cold]
    pub(super) fn foreign(&self, object: *const c_void) -> Error {
        let chunks = self.inner.capacity().div_ceil(self.shape.chunk_slots) as u64;
        Error::of(Code::ForeignAddress, object.addr() as u64, chunks)
    }

    pub(super) fn free(&self, object: *const c_void) -> Result<(), Error> {
        let found = self.find(object)?;
        let no_object = Error::of(Code::NoObject, object.addr() as u64, 0);
        // Acquire pairs with the Release in `claim`: the memory is there. A failure: there is no object.
        let freed = found.mark().compare_exchange(USED, NONE, Ordering::AcqRel, Ordering::Relaxed);
        if freed.is_err() {
            return Err(no_object);
        }
        // The object of the slot is ours now. If it is elsewhere, somebody else has freed this one since.
        if found.slots.begin().addr() != found.begin {
            found.mark().store(USED, Ordering::Release);
            return Err(no_object);
        }
        // SAFETY: whoever takes the mark off has the slot, which was claimed for the object.
        unsafe { found.slots.release_slot(found.slot) };
        Ok(())
    }

    /// Calls `visit` for each slot that is marked as used, word by word; where it returns true, the slot is given back.
    fn each_used(&self, mut visit: impl FnMut(Slots<'_>, usize) -> bool) {
        for slots in self.inner.all_slots() {
            for word in 0..slots.len().div_ceil(WORD) {
                let (mut claimed, mut go) = (slots.claimed(word), 0);
                while claimed != 0 && !slots.begin().is_null() {
                    let slot = word * WORD + claimed.trailing_zeros() as usize;
                    claimed &= claimed - 1;
                    // Acquire pairs with the Release in `claim`.
                    let used = slots.marks()[slot].load(Ordering::Acquire) == USED;
                    if used && visit(slots, slot) {
                        go |= 1 << (slot % WORD);
                    }
                }
                if go != 0 {
                    // SAFETY: `visit` has taken the marks off.
                    unsafe { slots.release(word, go) };
                }
            }
        }
    }

    /// Calls `visit` with each object.
    pub(super) fn each(&self, mut visit: impl FnMut(*mut c_void)) {
        self.each_used(|slots, slot| {
            let begin = slots.begin();
            // The chunk may have gone since the mark was read, and have come back elsewhere.
            if !begin.is_null() && (Found { slots, slot, begin: begin.addr() }).is_used() {
                visit(self.object(begin, slot));
            }
            false
        });
    }

    /// Objects that there are.
    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        self.each_used(|_, _| {
            len += 1;
            false
        });
        len
    }

    /// Frees every object. Nobody else is using the pool.
    pub(super) fn clear(&self) {
        self.each_used(|slots, slot| {
            slots.marks()[slot].store(NONE, Ordering::Relaxed);
            true
        });
    }
}
