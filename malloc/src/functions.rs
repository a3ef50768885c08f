//! The functions, as ISO C, POSIX and glibc define them. None waits for another thread, and all may be called from
//! signal handlers, whatever these interrupt.
//!
//! Costs are those of [`Heap::alloc`](nbbs_heap::Heap::alloc) and [`Heap::free_at`](nbbs_heap::Heap::free_at): no
//! read-modify-write where the thread's cache has a block, or room for one.

use core::alloc::Layout;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use crate::line::fail;
use crate::memory::{forget, trim, with_more};
use crate::system::{page, set_errno};
use crate::thread::HEAP;

/// What every block is aligned to: what `max_align_t` is on 64 bits.
const ALIGN: usize = 16;

/// Returns what a function returns that has found no memory.
#[cold]
fn no_memory() -> *mut c_void {
    set_errno(libc::ENOMEM);
    ptr::null_mut()
}

/// Allocates `bytes` bytes, of which there is at least one, so that no two blocks have one address.
#[inline]
fn alloc(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes.max(1), align).ok()?;
    with_more(layout, |layout| HEAP.alloc_at_least(layout))
}

fn pointer(found: Option<NonNull<u8>>) -> *mut c_void {
    found.map_or_else(no_memory, |block| block.as_ptr().cast())
}

/// Frees a block, whose address `function` was given.
#[inline]
fn free_at(function: &str, block: *mut c_void) {
    if let Some(at) = NonNull::new(block.cast()) {
        // SAFETY: the caller holds it, and gives it up; the heap says how many bytes it has.
        let forget = move |bytes| unsafe { forget(at, bytes) };
        // SAFETY: as the caller promises; `forget` returns bytes that are zero.
        let freed = unsafe { HEAP.free_at_after(at, forget) };
        if let Err(error) = freed {
            fail(function, error);
        }
    }
}

/// Allocates `bytes` bytes, aligned to 16. Returns null, and sets `errno` to `ENOMEM`, if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    pointer(alloc(bytes, ALIGN))
}

/// Frees a block. Null: does nothing. Ends the program if there is none, as far as the heap can tell: always with an
/// address that is not its own, or lies inside a block; a second free if the block is the one of its size that this
/// thread freed last, or no thread's cache keeps it. Leaves `errno` as it is.
///
/// # Safety
/// The caller holds the block, and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    free_at("free", block);
}

/// As [`free`], of a block that was allocated with this many bytes (C23). The heap finds the size itself.
///
/// # Safety
/// That of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _bytes: usize) {
    free_at("free_sized", block);
}

/// As [`free_sized`], of a block that [`aligned_alloc`] allocated (C23).
///
/// # Safety
/// That of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _align: usize, _bytes: usize) {
    free_at("free_aligned_sized", block);
}

/// Allocates `count` times `bytes` bytes that are zero. As [`malloc`]; also null if that is more than there are
/// addresses. Large memory that has never been used, or has gone back to the system, is not written to.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let found = count.checked_mul(bytes).and_then(|bytes| {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).ok()?;
        with_more(layout, |layout| HEAP.alloc_zeroed(layout))
    });
    pointer(found)
}

/// Makes a block larger or smaller, and moves its contents if necessary. Null: as [`malloc`]. No bytes: as [`free`],
/// and returns null, as with glibc. If there is no memory, nothing has changed; more than there can ever be is refused
/// before the block is looked up.
///
/// # Safety
/// That of [`free`], unless it returns null for more bytes than none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(at) = NonNull::new(block.cast()) else { return malloc(bytes) };
    if bytes == 0 {
        free_at("realloc", block);
        return ptr::null_mut();
    }
    let Ok(layout) = Layout::from_size_align(bytes, ALIGN) else { return no_memory() };
    let resized = with_more(layout, |_| {
        // SAFETY: the caller holds it until it is freed; the heap says how many bytes it has.
        let forget = |bytes| unsafe { forget(at, bytes) };
        // SAFETY: as the caller promises; `forget` returns bytes that are zero.
        let resized = unsafe { HEAP.resize_at_after(at, bytes, forget) };
        resized.unwrap_or_else(|error| fail("realloc", error))
    });
    pointer(resized)
}

/// As [`realloc`], of `count` times `bytes` bytes.
///
/// # Safety
/// That of [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: as the caller promises.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => no_memory(),
    }
}

/// Returns how many bytes of a block may be used; of null none. Ends the program if nothing is allocated there; what a
/// cache keeps counts as a block.
///
/// # Safety
/// None: any address may be asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(at) = NonNull::new(block.cast()) else { return 0 };
    HEAP.usable(at).unwrap_or_else(|error| fail("malloc_usable_size", error))
}

/// Allocates memory at a multiple of `align`, and returns an error's number if there is none, or if `align` is not a
/// power of two.
fn aligned(align: usize, bytes: usize) -> Result<NonNull<u8>, c_int> {
    if !align.is_power_of_two() {
        return Err(libc::EINVAL);
    }
    alloc(bytes, align.max(ALIGN)).ok_or(libc::ENOMEM)
}

/// Writes to `place` the address of `bytes` bytes at a multiple of `align`: a power of two, and of the size of a
/// pointer. Returns 0, or `EINVAL` or `ENOMEM`, and then leaves `place` as it is.
///
/// # Safety
/// `place` has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    bytes: usize,
) -> c_int {
    if !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    match aligned(align, bytes) {
        Ok(block) => {
            // SAFETY: as the caller promises.
            unsafe { place.write(block.as_ptr().cast()) };
            0
        }
        Err(error) => error,
    }
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two; otherwise null, with `errno` at `EINVAL`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    aligned(align, bytes).map_or_else(
        |error| {
            set_errno(error);
            ptr::null_mut()
        },
        |block| block.as_ptr().cast(),
    )
}

/// As [`aligned_alloc`], at a multiple of the next power of two, as with glibc.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    aligned_alloc(align.checked_next_power_of_two().unwrap_or(0), bytes)
}

/// Allocates `bytes` bytes at a page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
    aligned_alloc(page(), bytes)
}

/// Allocates whole pages that hold `bytes` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(page()) {
        Some(bytes) => aligned_alloc(page(), bytes),
        None => no_memory(),
    }
}

/// Gives free memory back to the system, whatever `_pad` is. Returns 1 if there was any, and otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(trim() > 0)
}
