//! Blocks of a small heap.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::{Placed, Small, on};
use crate::error::{Code, Error};
use crate::handle::{ask, run};
use crate::heap::{block_at, layout};
use crate::pointer;

fn alloc(heap: &Small, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let full = Error::of(Code::HeapFull, bytes as u64, align as u64);
    let layout = layout(bytes, align)?;
    on!(heap, heap => heap.alloc(layout)).ok_or(full)
}

fn free(heap: &Small, block: *mut c_void) -> Result<(), Error> {
    if let Some(block) = NonNull::new(block.cast()) {
        // SAFETY: the caller's promise: what is allocated there is its own.
        on!(heap, heap => unsafe { heap.free_at(block) })?;
    }
    Ok(())
}

fn resize(heap: &Small, block: *mut c_void, bytes: usize) -> Result<NonNull<u8>, Error> {
    let Some(at) = NonNull::new(block.cast()) else { return alloc(heap, bytes, 1) };
    layout(bytes, 1)?;
    let full = Error::of(Code::HeapFull, bytes as u64, 1);
    let old = layout(on!(heap, heap => heap.usable(at))?, 1)?;
    // SAFETY: the caller's promise: what is allocated there is its own.
    on!(heap, heap => unsafe { heap.resize(at, old, bytes) }).ok_or(full)
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
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(bytes, 3)?;
            let block = block_at(block, 2)?;
            place.write(on!(heap, heap => heap.usable(block))?);
            Ok(())
        })
    }
}

/// Returns whether an address, which may be any, lies in memory that the heap hands out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_small_contains(heap: *const Small, address: *const c_void) -> bool {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(heap, |heap| on!(heap, heap => heap.contains(address.cast()))) }
}
