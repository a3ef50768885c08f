//! A thread's own slots of a pool.
//!
//! `nbbs.hpp` works on the same structure; what it does is described there, and must agree with this.

use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use super::Pool;
use super::slots::{Found, NONE, Slots, USED, WORD};
use crate::error::{Code, Error, Reporter};
use crate::function::{Told, told};
use crate::handle::run;
use crate::lane::thread_lane;
use crate::pointer;
use crate::setting::Setting;

/// The most slots that an `nbbs_pool_local` keeps.
pub const LOCAL_SLOTS: usize = 128;
/// Chunks that an `nbbs_pool_local` knows.
pub const LOCAL_CHUNKS: usize = 8;

/// Of a pool with a limit a local keeps one of so many parts, unless told otherwise.
const SHARES: usize = 64;

/// A place to allocate from and to free to, for one thread at a time: it takes free slots of the pool, as many as 64 at
/// a time by one read-modify-write, hands them out without any, and keeps what is freed to it.
///
/// It lies where you put it, is made by `nbbs_pool_local_create`, and has to be ended by `nbbs_pool_local_destroy`
/// before its pool; it must not be copied. The fields are the functions' own, and those of `nbbs.hpp`.
#[repr(C)]
#[derive(Debug)]
pub struct PoolLocal {
    /// Whose slots they are; null: none.
    pub pool: *const Pool,
    /// Slots that are kept.
    pub kept: usize,
    /// The most that may be.
    pub most: usize,
    /// log2 of the distance between chunks, by which they are found in `chunks`.
    pub shift: u32,
    /// Where the pool counts the chunks whose memory it gives back, and what that was when `chunks` was right.
    pub withdrawn: *const usize,
    /// As said at `withdrawn`.
    pub seen: usize,
    /// Chunks whose objects have been freed here.
    pub chunks: [PoolChunk; LOCAL_CHUNKS],
    /// What is kept, what was freed last at the end.
    pub slots: [PoolSlot; LOCAL_SLOTS],
}

/// A chunk of a pool, as a local knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolChunk {
    /// Where its first object is.
    pub begin: usize,
    /// How many objects it has room for; 0: no chunk.
    pub objects: usize,
    /// A byte for each slot: 1 if there is an object.
    pub marks: *mut u8,
    /// The pool's name for it.
    pub name: *const c_void,
}

/// A slot that a local keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolSlot {
    /// Where its object is.
    pub object: *mut c_void,
    /// Its byte.
    pub mark: *mut u8,
}

const NO_CHUNK: PoolChunk = PoolChunk { begin: 0, objects: 0, marks: null_mut(), name: null() };
const NO_SLOT: PoolSlot = PoolSlot { object: null_mut(), mark: null_mut() };

impl PoolLocal {
    /// One that keeps nothing, and may keep nothing.
    const NONE: Self = Self {
        pool: null(),
        kept: 0,
        most: 0,
        shift: 0,
        withdrawn: null(),
        seen: 0,
        chunks: [NO_CHUNK; LOCAL_CHUNKS],
        slots: [NO_SLOT; LOCAL_SLOTS],
    };

    /// A slot that was kept, for an object.
    #[inline]
    fn alloc(&mut self, pool: &Pool) -> Result<*mut c_void, Error> {
        if self.kept == 0 {
            self.refill(pool)?;
        }
        self.kept -= 1;
        let PoolSlot { object, mark } = self.slots[self.kept];
        // SAFETY: a mark of the pool, which keeps them to its end.
        // Release pairs with the Acquire in `Found::is_used`.
        unsafe { AtomicU8::from_ptr(mark) }.store(USED, Ordering::Release);
        Ok(object)
    }

    /// Takes free slots of a word. The lowest comes first.
    #[cold]
    fn refill(&mut self, pool: &Pool) -> Result<(), Error> {
        let claimed = pool.inner.claim_slots_on(thread_lane(), self.most as u32);
        let (slots, word, mut bits) = claimed.map_err(|reason| pool.shape.refusal(reason))?;
        let marks = marks_of(&slots).wrapping_add(word * WORD);
        let (first, stride) = (pool.object(slots.begin(), word * WORD), pool.shape.stride);
        while bits != 0 {
            let highest = bits.ilog2() as usize;
            let run = (bits << (WORD - 1 - highest)).leading_ones() as usize;
            let lowest = highest + 1 - run;
            let mut object = first.wrapping_byte_add(highest * stride);
            let mut mark = marks.wrapping_add(highest);
            for place in &mut self.slots[self.kept..][..run] {
                *place = PoolSlot { object, mark };
                (object, mark) = (object.wrapping_byte_sub(stride), mark.wrapping_sub(1));
            }
            self.kept += run;
            bits &= (1 << lowest) - 1;
        }
        Ok(())
    }

    /// Keeps the slot of an object, and remembers its chunk.
    fn free(&mut self, pool: &Pool, object: *mut c_void) -> Result<(), Error> {
        let mark = match self.known(pool, object) {
            Some(mark) => mark,
            None => self.look_up(pool, object)?,
        };
        if self.kept == self.most {
            self.give_back(pool, self.most.div_ceil(2));
        }
        // Relaxed: nobody is told anything by it but that there is no object.
        mark.store(NONE, Ordering::Relaxed);
        self.slots[self.kept] = PoolSlot { object, mark: mark.as_ptr() };
        self.kept += 1;
        Ok(())
    }

    /// The mark of an object in a chunk that is remembered.
    #[inline]
    fn known<'a>(&self, pool: &'a Pool, object: *mut c_void) -> Option<&'a AtomicU8> {
        let chunk = &self.chunks[(object.addr() >> self.shift) % LOCAL_CHUNKS];
        let number = pool.shape.number_at(object.addr().wrapping_sub(chunk.begin));
        if number >= chunk.objects {
            return None;
        }
        // SAFETY: `remember` noted the marks of the chunk, which has one for each of its objects.
        let mark = unsafe { chunk.marks.add(number) };
        // SAFETY: the pool keeps them, and reaches them as atomics only.
        let mark = unsafe { AtomicU8::from_ptr(mark) };
        // A chunk that has gone may have come back elsewhere, with the same marks. Acquire pairs with the Release of
        // who marked an object there, after the chunk was counted: so the count, looked at after the mark, says to a
        // second free here, too, that the chunk has gone. Relaxed for that: see `remember`.
        let used = mark.load(Ordering::Acquire) == USED;
        (used && pool.withdrawn().load(Ordering::Relaxed) == self.seen).then_some(mark)
    }

    /// The mark of any object; its chunk is remembered.
    #[cold]
    fn look_up<'a>(&mut self, pool: &'a Pool, object: *mut c_void) -> Result<&'a AtomicU8, Error> {
        let found = pool.find(object)?;
        if !found.is_used() {
            return Err(Error::of(Code::NoObject, object.addr() as u64, 0));
        }
        self.remember(pool, &found, object);
        Ok(&found.slots.marks()[found.slot])
    }

    /// Has the next free of an object of this chunk find it at once.
    fn remember(&mut self, pool: &Pool, found: &Found<'_>, object: *mut c_void) {
        // Relaxed: whoever has an object in a chunk has heard of those that went before it came, and while there is an
        // object it does not go.
        let withdrawn = pool.withdrawn().load(Ordering::Relaxed);
        if self.seen != withdrawn {
            (self.seen, self.chunks) = (withdrawn, [NO_CHUNK; LOCAL_CHUNKS]);
        }
        let begin = object.addr() - found.slot * pool.shape.stride;
        let (objects, marks) = (found.slots.len(), marks_of(&found.slots));
        self.chunks[(object.addr() >> self.shift) % LOCAL_CHUNKS] =
            PoolChunk { begin, objects, marks, name: found.slots.into_raw().as_ptr() };
    }

    /// Gives so many of the slots that have been kept longest back: one read-modify-write for those that follow each
    /// other in a word.
    fn give_back(&mut self, pool: &Pool, count: usize) {
        let mut rest = &self.slots[..count];
        while let Some(slot) = rest.first() {
            let Some((slots, number)) = self.slot_of(pool, slot) else { break };
            let word = number / WORD;
            let (mark, len) =
                (slot.mark.addr() - number % WORD, (slots.len() - word * WORD).min(WORD));
            let (mut bits, mut run) = (0, 0);
            for slot in rest {
                let at = slot.mark.addr().wrapping_sub(mark);
                if at >= len {
                    break;
                }
                (bits, run) = (bits | 1 << at, run + 1);
            }
            // SAFETY: claimed, kept by this local, and kept no more.
            unsafe { slots.release(word, bits) };
            rest = &rest[run..];
        }
        self.slots.copy_within(count..self.kept, 0);
        self.kept -= count;
    }

    /// Returns the chunk of a slot that is kept, and its number there.
    fn slot_of<'a>(&self, pool: &'a Pool, slot: &PoolSlot) -> Option<(Slots<'a>, usize)> {
        let chunk = &self.chunks[(slot.object.addr() >> self.shift) % LOCAL_CHUNKS];
        if let Some(name) = NonNull::new(chunk.name.cast_mut()) {
            // SAFETY: the name came from `Slots::into_raw` in `remember`, of a chunk of this pool, which keeps the
            // chunk's bookkeeping to its end.
            let slots = unsafe { Slots::from_raw(name) };
            // Marks stay where they are, whatever becomes of the chunk's memory.
            let number = slot.mark.addr().wrapping_sub(chunk.marks.addr());
            if number < slots.len() {
                return Some((slots, number));
            }
        }
        pool.find(slot.object).ok().map(|found| (found.slots, found.slot))
    }
}

/// The bytes of a chunk's slots.
fn marks_of(slots: &Slots<'_>) -> *mut u8 {
    slots.marks().as_ptr().cast_mut().cast()
}

/// Runs `work` on a local and its pool; what it refuses goes to `error` and the pool's hook.
///
/// # Safety
/// Both pointers are null, misaligned, or lead to a local that nobody else uses, with its pool, and to memory for an
/// `Error`.
#[inline(always)]
unsafe fn on(
    local: *mut PoolLocal,
    error: Told,
    work: impl FnOnce(&mut PoolLocal, &Pool) -> Result<(), Error>,
) -> Code {
    match pointer::checked(local, 1) {
        Ok(mut local) => {
            // SAFETY: by the contract.
            let local = unsafe { local.as_mut() };
            // SAFETY: by the contract. A local that has ended has a null pointer, which is refused.
            unsafe { run(local.pool, error, |pool| work(local, pool)) }
        }
        // SAFETY: by the contract.
        Err(refused) => unsafe { Reporter::NOBODY.answer(Err(refused), error) },
    }
}

/// Makes a local of a pool, which keeps at most `most` free slots, 128 at most. 0 stands for 128, or for a 64th of the
/// pool's limit if that is less. The local takes no slot yet.
///
/// Nobody else can allocate what a local keeps: while `n` locals keep `most` slots each, others may be refused with
/// `FULL` although `n * most` slots are free. Refuses with `NULL`, `SETTING` (`most`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_create(
    local: *mut PoolLocal,
    pool: *const Pool,
    most: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_local_create, error);
    let make = || {
        let place = pointer::checked(local, 1)?;
        // SAFETY: the caller's promise about pointers.
        let pool = unsafe { pointer::checked(pool, 2)?.as_ref() };
        if most > LOCAL_SLOTS {
            return Err(Setting::Most.refused(most as u64, 0..=LOCAL_SLOTS as u64));
        }
        let usual = (pool.inner.max_len() / SHARES).clamp(1, LOCAL_SLOTS);
        let withdrawn = pool.withdrawn();
        let made = PoolLocal {
            pool,
            most: if most == 0 { usual } else { most },
            shift: pool.shift(),
            withdrawn: withdrawn.as_ptr(),
            seen: withdrawn.load(Ordering::Relaxed),
            ..PoolLocal::NONE
        };
        // SAFETY: memory for a local, by the caller's promise.
        unsafe { place.write(made) };
        Ok(())
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(make(), error) }
}

/// Gives back the slots that a local keeps, and ends it: every function refuses it from then on (`NULL`). Null, or a
/// local that has ended: does nothing.
///
/// A local that is never ended costs the pool the slots that it keeps. Once its pool has ended, a local must not be
/// used, and need not be ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_destroy(local: *mut PoolLocal) {
    // SAFETY: the caller's promise about pointers.
    let flushed = unsafe { nbbs_pool_local_flush(local, null_mut()) };
    if flushed == Code::Ok
        && let Ok(local) = pointer::checked(local, 1)
    {
        // SAFETY: a local that nobody else uses.
        unsafe { local.write(PoolLocal::NONE) };
    }
}

/// Allocates an object from a local and writes its address to `object`: `nbbs_pool_alloc`, mostly without a
/// read-modify-write. The object is like any other: any thread may free it, with a local or without.
///
/// A few loads and stores, and one read-modify-write for up to 64 slots of a word. Refuses with `FULL`, `SOURCE_EMPTY`
/// if no slot was free but those that other locals keep. Not callable from a handler that may have interrupted a call
/// with the same local.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_alloc(
    local: *mut PoolLocal,
    object: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_local_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        on(local, error, |local, pool| {
            let place = pointer::checked(object, 2)?;
            place.write(local.alloc(pool)?);
            Ok(())
        })
    }
}

/// Frees an object, whoever allocated it, and keeps its slot. A local that keeps as many as it may gives half of them
/// back to the pool first. Null: does nothing.
///
/// Mostly takes no read-modify-write. Not callable from a handler that may have interrupted a call with the same local.
/// Refuses with `FOREIGN_ADDRESS`, `INSIDE_UNIT`, `NO_OBJECT`. A double free is refused as long as the slot has not been
/// allocated again, whichever local keeps it. But if two threads free the same object at the very same time, perhaps
/// neither is refused: then its slot may be handed out twice, and even after its chunk has gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_free(
    local: *mut PoolLocal,
    object: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_local_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        on(
            local,
            error,
            |local, pool| {
                if object.is_null() { Ok(()) } else { local.free(pool, object) }
            },
        )
    }
}

/// Gives all slots that a local keeps back to the pool.
///
/// One read-modify-write for those that follow each other in a word of 64. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_flush(local: *mut PoolLocal, error: *mut Error) -> Code {
    let error = told!(nbbs_pool_local_flush, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        on(local, error, |local, pool| {
            local.give_back(pool, local.kept);
            Ok(())
        })
    }
}

/// Slots that a local keeps: free for it, and for nobody else. `nbbs_pool_len` does not count them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_local_kept(local: *const PoolLocal) -> usize {
    // SAFETY: the caller's promise about pointers.
    pointer::checked(local, 1).map_or(0, |local: NonNull<PoolLocal>| unsafe { local.as_ref() }.kept)
}

/// C reads the pool's count of withdrawn chunks as a plain `size_t`.
const _: () = assert!(size_of::<AtomicUsize>() == size_of::<usize>());
