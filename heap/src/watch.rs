//! Detection of uses of free memory: by a pattern, which the feature `poison` checks before a slot is handed out; by
//! AddressSanitizer, which the feature `asan` tells what is free; and by Valgrind, which `valgrind` tells which blocks
//! there are.

use core::ptr::NonNull;

/// Whether one of them is on: then a slot is known to be one before it is freed.
pub const ON: bool = cfg!(any(feature = "poison", feature = "asan", feature = "valgrind"));

/// What free slots are filled with under `poison`.
#[cfg(feature = "poison")]
const PATTERN: u8 = 0xdf;

#[cfg(feature = "asan")]
unsafe extern "C" {
    fn __asan_poison_memory_region(at: *const core::ffi::c_void, bytes: usize);
    fn __asan_unpoison_memory_region(at: *const core::ffi::c_void, bytes: usize);
}

/// Records that a block belongs to its holder from now on; it is all zero or may hold anything.
#[inline]
pub fn allocated(at: NonNull<u8>, bytes: usize, zeroed: bool) {
    #[cfg(feature = "valgrind")]
    crabgrind::valgrind::malloclike_block(at.as_ptr().cast(), bytes, 0, zeroed);
    _ = (at, bytes, zeroed);
}

/// Records that a block belongs to nobody from now on.
#[inline]
pub fn freed(at: NonNull<u8>) {
    #[cfg(feature = "valgrind")]
    crabgrind::valgrind::freelike_block(at.as_ptr().cast(), 0);
    _ = at;
}

/// Records that a block has become larger or smaller in place.
#[inline]
pub fn resized(at: NonNull<u8>, from: usize, to: usize) {
    // Valgrind is told of a free and an allocation: a resize would have to name the size that Valgrind knows, which
    // differs from `from` where a run serves as a slot, and is 0 where nothing was asked for.
    #[cfg(feature = "valgrind")]
    {
        crabgrind::valgrind::freelike_block(at.as_ptr().cast(), 0);
        crabgrind::valgrind::malloclike_block(at.as_ptr().cast(), to, 0, false);
        mark(at, from.min(to), crabgrind::memcheck::MemState::Defined);
    }
    _ = (at, from, to);
}

/// Turns memory into free slots.
///
/// # Safety
/// It belongs to nobody, and is this many bytes of the heap's memory.
#[inline]
pub unsafe fn close(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "poison")]
    {
        // It may be closed to the diagnostic tools: as a run that was freed, or a slot that is.
        open(at, bytes);
        // SAFETY: as the caller promises.
        unsafe { at.write_bytes(PATTERN, bytes) };
    }
    close_run(at, bytes);
}

/// Records that a run of units is free from now on: its bytes stay as they are.
#[inline]
pub fn close_run(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "asan")]
    // SAFETY: the runtime's function records addresses, and touches nothing of the program's.
    unsafe {
        __asan_poison_memory_region(at.as_ptr().cast(), bytes);
    }
    #[cfg(feature = "valgrind")]
    mark(at, bytes, crabgrind::memcheck::MemState::NoAccess);
    _ = (at, bytes);
}

/// Records that memory belongs to somebody from now on.
#[inline]
pub fn open(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "asan")]
    // SAFETY: as `close_run`.
    unsafe {
        __asan_unpoison_memory_region(at.as_ptr().cast(), bytes);
    }
    // The heap may read its contents, too.
    #[cfg(feature = "valgrind")]
    mark(at, bytes, crabgrind::memcheck::MemState::Defined);
    _ = (at, bytes);
}

/// Tells Valgrind, if the program runs under it, what may be done to memory.
#[cfg(feature = "valgrind")]
fn mark(at: NonNull<u8>, bytes: usize, state: crabgrind::memcheck::MemState) {
    _ = crabgrind::memcheck::mark_memory(at.as_ptr().cast(), bytes, state);
}

/// Returns whether nobody has written to a free slot, as far as its bytes tell.
///
/// # Safety
/// It is the caller's, and was closed with this many bytes.
#[inline]
pub unsafe fn is_intact(at: NonNull<u8>, bytes: usize) -> bool {
    #[cfg(feature = "poison")]
    {
        // SAFETY: the caller's, and written to when it was closed.
        let slot = unsafe { NonNull::slice_from_raw_parts(at, bytes).as_ref() };
        slot.iter().all(|&byte| byte == PATTERN)
    }
    #[cfg(not(feature = "poison"))]
    {
        _ = (at, bytes);
        true
    }
}
