//! Blocks of a small heap.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;

use nbbs_heap::FreeError;

use super::{Placed, Small, on};
use crate::error::{Code, Error};
use crate::function::told;
use crate::handle::{ask, run};
use crate::heap::{Blocks, alloc, alloc_zeroed, free, or_null, resize, size_of, usable_size};
use crate::pointer;

impl Blocks for Small {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        on!(self, heap => heap.alloc(layout))
    }

    fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        on!(self, heap => heap.alloc_zeroed(layout))
    }

    unsafe fn free(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        // SAFETY: by the contract.
        on!(self, heap => unsafe { heap.free_at(at) })
    }

    unsafe fn resize(
        &self,
        at: NonNull<u8>,
        bytes: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: by the contract.
        on!(self, heap => unsafe { heap.resize_at(at, bytes) })
    }

    fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        on!(self, heap => heap.usable(at))
    }
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two, and writes their address to `block`. Each block is
/// aligned to 16 bytes at least. A block of 0 bytes has to be freed, too.
///
/// A read-modify-write if the block lies in one word of the bookkeeping, which has 32 units (on 32 bits, 16); otherwise
/// one for each word and one more. The search reads a word for each 16 words without a piece that is long enough, and
/// each word before it refuses. Refuses with `ALIGNMENT`, `SIZE`, `HEAP_FULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_alloc(
    heap: *const Small,
    bytes: usize,
    align: usize,
    block: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(block, 4)?;
            place.write(alloc(heap, bytes, align)?.as_ptr().cast());
            Ok(())
        })
    }
}

/// Frees a block. Null: does nothing.
///
/// What `nbbs_small_size_of` takes; a read-modify-write for each word of the bookkeeping in which the block lies, and
/// one more if it reaches the end of a word. `block` may be any address: what is no block is refused with
/// `NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`. So is a second free, unless another block begins there by then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_free(
    heap: *const Small,
    block: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| free(heap, block)) }
}

/// Makes the block whose address is at `block` larger or smaller. If the block has to move, its contents move with it,
/// and the new address is written to `block`; it is then aligned to 16 bytes. If the address was null, a block is
/// allocated.
///
/// A block stays in place if it gets smaller, or the units behind it are free: what `nbbs_small_free` takes, and one
/// read-modify-write more. Otherwise this costs what `nbbs_small_alloc` and `nbbs_small_free` take, and a copy. Refuses as
/// they do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_resize(
    heap: *const Small,
    block: *mut *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_resize, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(block, 2)?;
            place.write(resize(heap, place.read(), bytes)?.as_ptr().cast());
            Ok(())
        })
    }
}

/// Writes to `bytes` how many bytes may be used of a block: as many as were asked for, rounded up to units.
///
/// A load for each word of the bookkeeping in which the block lies, and one or two. Refuses as `nbbs_small_free`, and
/// with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_size_of(
    heap: *const Small,
    block: *const c_void,
    bytes: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_small_size_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| size_of(heap, block, bytes)) }
}

/// Returns whether an address, which may be any, lies in memory that the heap hands out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_contains(heap: *const Small, address: *const c_void) -> bool {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(heap, |heap| on!(heap, heap => heap.contains(address.cast()))) }
}

/// `malloc`: null if `nbbs_small_alloc` would refuse. Aligned to 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_malloc(heap: *const Small, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_small_malloc), heap, |heap| alloc(heap, bytes, 1)) }
}

/// `calloc`: memory for `count` times `bytes` bytes, all zero. Null if `nbbs_small_alloc` would refuse, or if the
/// product is too large for a `size_t`. Costs a store for each word more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_calloc(
    heap: *const Small,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_small_calloc), heap, |heap| alloc_zeroed(heap, count, bytes)) }
}

/// `realloc`: null if `nbbs_small_resize` would refuse, and the block stays as it is. 0 bytes do not free it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_realloc(
    heap: *const Small,
    block: *mut c_void,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_small_realloc), heap, |heap| resize(heap, block, bytes)) }
}

/// `aligned_alloc`: null if `nbbs_small_alloc` would refuse. `bytes` need not be a multiple of `align`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_aligned_alloc(
    heap: *const Small,
    align: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_small_aligned_alloc), heap, |heap| alloc(heap, bytes, align)) }
}

/// `malloc_usable_size`: what `nbbs_small_size_of` says; 0 of null, and where it would refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_usable_size(heap: *const Small, block: *const c_void) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { usable_size(told!(nbbs_small_usable_size), heap, block) }
}
