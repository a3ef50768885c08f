//! Who uses memory that is free: by a pattern, which the feature `poison` looks for before a slot is handed out, by
//! AddressSanitizer, which the feature `asan` tells what is free, and by Valgrind, which `valgrind` tells what blocks there are.

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

/// A block is its holder's from now on, which is all zero or may hold anything.
#[inline]
pub fn allocated(at: NonNull<u8>, bytes: usize, zeroed: bool) {
    #[cfg(feature = "valgrind")]
    crabgrind::valgrind::malloclike_block(at.as_ptr().cast(), bytes, 0, zeroed);
    _ = (at, bytes, zeroed);
}

/// A block is nobody's from now on.
#[inline]
pub fn freed(at: NonNull<u8>) {
    #[cfg(feature = "valgrind")]
    crabgrind::valgrind::freelike_block(at.as_ptr().cast(), 0);
    _ = at;
}

/// A block has become larger or smaller where it is.
#[inline]
pub fn resized(at: NonNull<u8>, from: usize, to: usize) {
    #[cfg(feature = "valgrind")]
    crabgrind::valgrind::resizeinplace_block(at.as_ptr().cast(), from, to, 0);
    _ = (at, from, to);
}

/// Memory becomes free slots.
///
/// # Safety
/// It is nobody's, and so many bytes of the heap's memory.
#[inline]
pub unsafe fn close(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "poison")]
    // SAFETY: as the caller promises.
    unsafe {
        at.write_bytes(PATTERN, bytes);
    }
    close_run(at, bytes);
}

/// A run of units is free from now on: its bytes stay as they are.
#[inline]
pub fn close_run(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "asan")]
    // SAFETY: the function of the runtime notes addresses, and touches nothing of the program's.
    unsafe {
        __asan_poison_memory_region(at.as_ptr().cast(), bytes);
    }
    #[cfg(feature = "valgrind")]
    mark(at, bytes, crabgrind::memcheck::MemState::NoAccess);
    _ = (at, bytes);
}

/// Memory is somebody's from now on.
#[inline]
pub fn open(at: NonNull<u8>, bytes: usize) {
    #[cfg(feature = "asan")]
    // SAFETY: as `close_run`.
    unsafe {
        __asan_unpoison_memory_region(at.as_ptr().cast(), bytes);
    }
    // What it holds is for the heap to read, too.
    #[cfg(feature = "valgrind")]
    mark(at, bytes, crabgrind::memcheck::MemState::Defined);
    _ = (at, bytes);
}

/// Tells Valgrind, if the program runs under it, what may be done to memory.
#[cfg(feature = "valgrind")]
fn mark(at: NonNull<u8>, bytes: usize, state: crabgrind::memcheck::MemState) {
    _ = crabgrind::memcheck::mark_memory(at.as_ptr().cast(), bytes, state);
}

/// Whether nobody has written to a free slot, as far as its bytes say.
///
/// # Safety
/// It is the caller's, and was closed with so many bytes.
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
