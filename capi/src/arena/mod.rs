//! Handles to arenas.
//!
//! ```text
//! mod     making handles            alloc    blocks and runs, anywhere or at a given place
//! free    giving them back          resize   changing what is held
//! stats   looking on                bytes    the same by address and size
//! lanes   a lane for each CPU       mend     what the dead have left
//! ```

mod alloc;
mod bytes;
mod free;
mod lanes;
mod mend;
mod resize;
mod stats;

use core::ffi::c_void;
use core::ptr;

use nbbs::sync::AtomicU64;
use nbbs::{Buddy, Caches, Caps, Lane, metadata_words};

use crate::error::{Code, Error, Hook, Reporter};
use crate::function::{Told, told};
use crate::lane::thread_lane;
use crate::pointer;
pub use alloc::*;
pub use bytes::*;
pub use free::*;
pub use lanes::*;
pub use mend::*;
pub use resize::*;
pub use stats::*;

/// A handle to an arena, in memory of the caller's.
///
/// Made by `nbbs_create`, `nbbs_create_reserved` or `nbbs_attach`; needs no end. It may be copied, and any number
/// of handles may work on the same metadata. Its contents are the library's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    opaque: [u64; 32],
}

/// What is in an `Arena`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    /// [`MAGIC`] in a handle that was made.
    magic: u64,
    /// Where to start from; [`THREAD_LANE`]: the calling thread decides.
    lane: usize,
    /// The arena, and the CPUs' caches in front of it: none, unless `nbbs_cache_create` gave it some.
    pub(crate) caches: Caches<'static>,
    pub(crate) reporter: Reporter,
    /// Where unit 0 is; null if the arena has not been told.
    base: *mut u8,
    /// log2 of the bytes of a unit.
    unit_shift: u32,
}

const _: () = assert!(size_of::<Handle>() <= size_of::<Arena>());
const _: () = assert!(align_of::<Handle>() <= align_of::<Arena>());

const MAGIC: u64 = u64::from_le_bytes(*b"nbbs 0.1");
const THREAD_LANE: usize = usize::MAX;

impl Handle {
    pub(crate) fn new(buddy: Buddy<'static>) -> Self {
        let (lane, base, unit_shift) = (THREAD_LANE, ptr::null_mut(), 0);
        let caches = Caches::new(buddy, &[]);
        Self { magic: MAGIC, lane, caches, reporter: Reporter::NOBODY, base, unit_shift }
    }

    /// The handle at a caller's pointer.
    ///
    /// # Safety
    /// The pointer is null, misaligned, or leads to an `Arena` that nobody writes to during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(arena: *const Arena) -> Result<&'a Self, Error> {
        let arena = pointer::checked(arena, 1)?;
        // SAFETY: an Arena begins with an u64, whatever its state.
        if unsafe { arena.cast::<u64>().read() } != MAGIC {
            return Err(Error::of(Code::NoArena, arena.addr().get() as u64, 0));
        }
        // SAFETY: the magic number is only written as a part of a whole Handle, and nobody writes to it during 'a.
        Ok(unsafe { arena.cast::<Self>().as_ref() })
    }

    /// Puts caches in `words` in front.
    pub(crate) fn with_caches(self, words: &'static [AtomicU64], caps: Caps) -> Self {
        Self { caches: Caches::new(*self.buddy(), words).with_caps(caps), ..self }
    }

    #[inline(always)]
    pub(crate) fn buddy(&self) -> &Buddy<'static> {
        self.caches.buddy()
    }

    /// The CPU whose cache a handle of `nbbs_on` goes through.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> Option<usize> {
        if self.caches.cpus() == 0 || self.lane == THREAD_LANE { None } else { Some(self.lane) }
    }

    /// The arena as seen from the handle's lane, or the calling thread's.
    #[inline(always)]
    pub(crate) fn lane(&self) -> Lane<'_> {
        self.buddy().on(if self.lane == THREAD_LANE { thread_lane() } else { self.lane })
    }
}

/// Runs `work` on the arena of a handle; what it refuses goes to `error` and the arena's hook.
///
/// # Safety
/// Both pointers are null, misaligned, or lead to an `Arena` that nobody is writing to, and to memory for an
/// `Error`.
#[inline(always)]
pub(crate) unsafe fn run(
    arena: *const Arena,
    error: Told,
    work: impl FnOnce(&Handle) -> Result<(), Error>,
) -> Code {
    // SAFETY: by the contract.
    let (outcome, reporter) = match unsafe { Handle::at(arena) } {
        Ok(handle) => (work(handle), handle.reporter),
        Err(refused) => (Err(refused), Reporter::NOBODY),
    };
    // SAFETY: by the contract.
    unsafe { reporter.answer(outcome, error) }
}

/// Makes a handle at `arena` of what `make` makes of the metadata.
///
/// # Safety
/// `arena` and `error` are null, misaligned, or lead to memory for what they name. `metadata` is null, misaligned
/// or leads to `bytes` bytes, which are only used as metadata as long as a handle is.
unsafe fn open(
    arena: *mut Arena,
    (metadata, bytes, units): (*mut c_void, usize, u64),
    error: Told,
    make: impl FnOnce(&'static [AtomicU64]) -> Result<Buddy<'static>, Error>,
) -> Code {
    let made = || {
        let arena = pointer::checked(arena, 1)?;
        if units == 0 || units > nbbs::MAX_UNITS {
            return Err(Error::of(Code::Units, units, nbbs::MAX_UNITS));
        }
        // On 32 bits perhaps more than there are addresses, which no memory is long enough for.
        let needed = metadata_words(units);
        // SAFETY: by the contract.
        let words = unsafe { pointer::words(metadata, bytes, needed, 2) }?;
        let handle = Handle::new(make(words)?);
        // SAFETY: memory for an Arena, which is no smaller than a Handle.
        unsafe { arena.cast::<Handle>().write(handle) };
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { Reporter::NOBODY.answer(made(), error) }
}

/// Bytes of metadata that an arena of `units` units needs: 2.3 bits a unit from 2^18 units on. 0 if there can be
/// no such arena: no units, or more than 2^40. For static arrays there is `NBBS_METADATA_BYTES`.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_metadata_bytes(units: u64) -> usize {
    metadata_words(units).checked_mul(8).unwrap_or(0)
}

/// Makes an arena of `units` units, all free, with its bookkeeping in `metadata`, whatever that holds.
///
/// `metadata` is `bytes` long, at least `nbbs_metadata_bytes(units)`, on an 8-byte boundary, better on one of 64.
/// It is the arena's until the last handle is done with it. No other handle may be using it now. Costs a store
/// for each word of metadata: metadata that is zero already can be attached to instead, for nothing.
///
/// Refuses with `NULL`, `POINTER_MISALIGNED`, `UNITS`, `TOO_SHORT`, `SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_create(
    arena: *mut Arena,
    metadata: *mut c_void,
    bytes: usize,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_create, error);
    let make = |words: &'static [AtomicU64]| Ok(Buddy::new_cleared(words, units)?);
    // SAFETY: the caller's promise about pointers.
    unsafe { open(arena, (metadata, bytes, units), error, make) }
}

/// Makes an arena in which every unit is reserved: it hands out only what `nbbs_release` gives it. This suits a
/// boot-time memory map. Otherwise as `nbbs_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_create_reserved(
    arena: *mut Arena,
    metadata: *mut c_void,
    bytes: usize,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_create_reserved, error);
    let make = |words| Ok(Buddy::new_reserved(words, units)?);
    // SAFETY: the caller's promise about pointers.
    unsafe { open(arena, (metadata, bytes, units), error, make) }
}

/// Makes a further handle to an arena of `units` units that is in use, from another thread, process or mapping; or
/// the first one to metadata that is all zero, which is an arena with all units free (a `static` array, fresh
/// pages).
///
/// Costs a few dozen loads. Refuses as `nbbs_create`, and with `FOREIGN_METADATA` if a word that an arena of so
/// many units never writes is not zero; a mismatch that shows in no such word goes unnoticed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_attach(
    arena: *mut Arena,
    metadata: *mut c_void,
    bytes: usize,
    units: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_attach, error);
    let make = |words| Ok(Buddy::attach(words, units)?);
    // SAFETY: the caller's promise about pointers.
    unsafe { open(arena, (metadata, bytes, units), error, make) }
}

/// Makes a handle at `place` of the one at `arena`, which may be the same.
///
/// # Safety
/// As for [`run`]; `place` is null, misaligned, or memory for an `Arena` that nobody else is using.
pub(crate) unsafe fn derive(
    arena: *const Arena,
    (place, argument): (*mut Arena, u64),
    error: Told,
    change: impl FnOnce(Handle) -> Result<Handle, Error>,
) -> Code {
    // SAFETY: by the contract. A copy, so that no reference is left when the handle is written.
    let found = unsafe { Handle::at(arena) }.copied();
    let made = found.and_then(change).and_then(|made| {
        let place = pointer::checked(place, argument)?;
        // SAFETY: memory for an Arena, which is no smaller than a Handle.
        unsafe { place.cast::<Handle>().write(made) };
        Ok(())
    });
    let reporter = found.map_or(Reporter::NOBODY, |handle| handle.reporter);
    // SAFETY: by the contract.
    unsafe { reporter.answer(made, error) }
}

/// Tells the arena where its memory is: unit 0 is at `base`, and a unit has `unit_bytes` bytes, a power of two. From
/// then on the handle, and copies made of it, take and return addresses too: `nbbs_alloc_bytes` and its kin. The memory
/// itself is never touched.
///
/// For a handle that nobody else is using yet. Refuses with `NULL`, `NO_ARENA`, `SIZE` (not a power of two, or
/// more than the address space has room for).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_set_memory(
    arena: *mut Arena,
    base: *mut c_void,
    unit_bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_set_memory, error);
    let told = |handle: Handle| {
        let base = pointer::checked(base.cast::<u8>(), 2)?.as_ptr();
        let most = (usize::MAX - base.addr()) as u64 / handle.buddy().units();
        if !unit_bytes.is_power_of_two() || unit_bytes as u64 > most {
            let most = most.checked_ilog2().map_or(0, |log2| 1 << log2);
            return Err(Error::of(Code::Size, unit_bytes as u64, most).and(1));
        }
        Ok(Handle { base, unit_shift: unit_bytes.ilog2(), ..handle })
    };
    // SAFETY: the caller's promise about pointers.
    unsafe { derive(arena, (arena, 1), error, told) }
}

/// Has `hook` told of misuse of this handle and of copies made of it from now on; null: nobody is told. `context` is
/// passed on to the hook.
///
/// For a handle that nobody else is using yet. Refuses with `NULL`, `NO_ARENA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_set_hook(
    arena: *mut Arena,
    hook: Hook,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_set_hook, error);
    let set = |handle| Ok(Handle { reporter: Reporter { hook, context }, ..handle });
    // SAFETY: the caller's promise about pointers.
    unsafe { derive(arena, (arena, 1), error, set) }
}

/// Makes a handle to the same arena, as seen from `lane`: a CPU or thread number, any value.
///
/// A lane remembers where it last allocated, so callers with different lanes keep off each other's cache lines. A
/// wrong or shared lane costs speed, never safety. A handle that was not made by this function uses a lane for
/// each thread; in the freestanding library, where there is no thread to ask, lane 0.
///
/// If the arena has caches, `nbbs_alloc`, `nbbs_free` and `nbbs_free_sized` go through the cache of the CPU `lane`, if
/// there is one; then callers with this handle must keep to what `nbbs_cache_alloc` says of CPU numbers.
///
/// `lane_arena` may be `arena` itself. Refuses with `NULL`, `NO_ARENA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_on(
    arena: *const Arena,
    lane: usize,
    lane_arena: *mut Arena,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_on, error);
    // Any value but the one that means the thread's. No other is changed, as it may be a CPU without a cache.
    let lane = lane.min(THREAD_LANE - 1);
    // SAFETY: the caller's promise about pointers.
    unsafe { derive(arena, (lane_arena, 3), error, |handle| Ok(Handle { lane, ..handle })) }
}

/// Returns the number of units in the arena; 0 if the handle is of none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_units(arena: *const Arena) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.map_or(0, |handle| handle.buddy().units())
}

/// Returns the largest order of which a block fits into the arena: log2 of its units, rounded down.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_max_order(arena: *const Arena) -> u32 {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.map_or(0, |handle| handle.buddy().max_order())
}

/// The library's version, such as "0.1.0": to compare with `NBBS_VERSION`, which is the header's.
#[unsafe(no_mangle)]
pub extern "C" fn nbbs_version() -> *const core::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
