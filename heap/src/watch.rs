//! Who writes to memory that is free: by a pattern, which the feature `poison` looks for before a slot is handed out, and by
//! AddressSanitizer, which the feature `asan` tells what is free.

use core::ptr::NonNull;

/// Whether either is on: then a slot is known to be one before it is freed.
pub const ON: bool = cfg!(any(feature = "poison", feature = "asan"));

/// What free slots are filled with under `poison`.
#[cfg(feature = "poison")]
const PATTERN: u8 = 0xdf;

#[cfg(feature = "asan")]
unsafe extern "C" {
    fn __asan_poison_memory_region(at: *const core::ffi::c_void, bytes: usize);
    fn __asan_unpoison_memory_region(at: *const core::ffi::c_void, bytes: usize);
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
    _ = (at, bytes);
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
