//! What the C library and the system do for the rest: `errno`, cancellation, pages, time.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, former: *mut c_int) -> c_int;
}

/// Returns `errno` of the calling thread.
pub fn errno() -> c_int {
    // SAFETY: it only answers.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is the thread's own.
    unsafe { *errno }
}

/// Sets `errno` of the calling thread.
#[cold]
pub fn set_errno(error: c_int) {
    // SAFETY: it only answers.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is the thread's own.
    unsafe { *errno = error };
}

/// Calls `call`, and leaves `errno` as it is.
#[cold]
pub fn keeping_errno<R>(call: impl FnOnce() -> R) -> R {
    let error = errno();
    let result = call();
    set_errno(error);
    result
}

/// Calls `call`, in which the thread cannot be cancelled, though it may open and write to files.
pub fn uncancelled<R>(call: impl FnOnce() -> R) -> R {
    /// `PTHREAD_CANCEL_DISABLE`.
    const DISABLE: c_int = 1;
    let mut former = 0;
    // SAFETY: it writes the former state.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut former) };
    let result = call();
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(former, &raw mut former) };
    result
}

/// The bytes of a page.
pub fn page() -> usize {
    // SAFETY: it only answers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// How many processors the system uses.
pub fn processors() -> usize {
    // SAFETY: it only answers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// Returns how many milliseconds have passed since some moment, to within a tick of the system: a few nanoseconds.
pub fn milliseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Maps so many bytes, all zero; whatever the system has, if `any`.
pub fn map(bytes: usize, any: bool) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let flags = if any { flags | libc::MAP_NORESERVE } else { flags };
    // SAFETY: a new mapping, wherever the system finds room.
    let start: *mut c_void = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Gives a mapping back.
///
/// # Safety
/// [`map`] returned it, with this many bytes, and nobody uses it.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Gives whole pages of a [mapping](map) back to the system. Returns whether they are zero from now on.
///
/// # Safety
/// They are the caller's, who needs their contents no more.
pub unsafe fn discard(at: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: as the caller promises; they are private and anonymous.
    unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTNEED) == 0 }
}
