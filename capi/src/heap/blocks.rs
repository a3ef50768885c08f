//! Blocks of a heap.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use nbbs_heap::FreeError;

use super::Heap;
use crate::error::{Code, Error};
use crate::function::{Told, told};
use crate::handle::{Reporting, ask, run};
use crate::pointer;

/// What blocks are aligned to at least, as those of `malloc`.
const GRAIN: usize = 16;

/// The layout of a block.
#[inline(always)]
fn layout(bytes: usize, align: usize) -> Result<Layout, Error> {
    let most = 1_usize << (usize::BITS - 2);
    if !align.is_power_of_two() || align > most {
        return Err(Error::of(Code::Alignment, align as u64, most as u64));
    }
    let align = align.max(GRAIN);
    let most = isize::MAX as usize - (align - 1);
    Layout::from_size_align(bytes, align)
        .map_err(|_| Error::of(Code::Size, bytes as u64, most as u64))
}

/// A heap, large or small, whose blocks are known by their addresses.
pub(crate) trait Blocks: Reporting {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>>;
    fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>>;
    /// # Safety
    /// The caller holds what is allocated there, if anything, and gives it up.
    unsafe fn free(&self, at: NonNull<u8>) -> Result<usize, FreeError>;
    /// # Safety
    /// The caller holds what is allocated there, if anything, and gives it up for what is returned.
    unsafe fn resize(
        &self,
        at: NonNull<u8>,
        bytes: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError>;
    fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError>;
}

impl Blocks for Heap {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.here().alloc_at_least(layout)
    }

    fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.here().alloc_zeroed(layout)
    }

    #[inline(always)]
    unsafe fn free(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        // SAFETY: by the contract.
        unsafe { self.here().free_at(at) }
    }

    unsafe fn resize(
        &self,
        at: NonNull<u8>,
        bytes: usize,
    ) -> Result<Option<NonNull<u8>>, FreeError> {
        // SAFETY: by the contract.
        unsafe { self.here().resize_at(at, bytes) }
    }

    fn usable(&self, at: NonNull<u8>) -> Result<usize, FreeError> {
        self.here().usable(at)
    }
}

#[inline(always)]
pub(crate) fn alloc(heap: &impl Blocks, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let full = Error::of(Code::HeapFull, bytes as u64, align as u64);
    heap.alloc(layout(bytes, align)?).ok_or(full)
}

/// Memory for `count` times `bytes` bytes, all zero.
pub(crate) fn alloc_zeroed(
    heap: &impl Blocks,
    count: usize,
    bytes: usize,
) -> Result<NonNull<u8>, Error> {
    let most = usize::MAX / bytes.max(1);
    let too_many = Error::of(Code::TooLong, count as u64, most as u64);
    let bytes = count.checked_mul(bytes).ok_or(too_many)?;
    let full = Error::of(Code::HeapFull, bytes as u64, 1);
    heap.alloc_zeroed(layout(bytes, 1)?).ok_or(full)
}

/// The block at an address that is not null.
fn block_at(block: *const c_void, argument: u64) -> Result<NonNull<u8>, Error> {
    NonNull::new(block.cast_mut().cast()).ok_or(Error::of(Code::Null, argument, 0))
}

#[inline(always)]
pub(crate) fn free(heap: &impl Blocks, block: *mut c_void) -> Result<(), Error> {
    if let Some(block) = NonNull::new(block.cast()) {
        // SAFETY: the caller's promise: what is allocated there is its own.
        unsafe { heap.free(block) }?;
    }
    Ok(())
}

/// Writes how many bytes may be used of a block to where the third argument points.
///
/// # Safety
/// That is null, misaligned, or leads to memory for a number.
pub(crate) unsafe fn size_of(
    heap: &impl Blocks,
    block: *const c_void,
    bytes: *mut usize,
) -> Result<(), Error> {
    let place = pointer::checked(bytes, 3)?;
    let usable = heap.usable(block_at(block, 2)?)?;
    // SAFETY: by the contract.
    unsafe { place.write(usable) };
    Ok(())
}

pub(crate) fn resize(
    heap: &impl Blocks,
    block: *mut c_void,
    bytes: usize,
) -> Result<NonNull<u8>, Error> {
    let Some(at) = NonNull::new(block.cast()) else { return alloc(heap, bytes, 1) };
    layout(bytes, 1)?;
    let full = Error::of(Code::HeapFull, bytes as u64, 1);
    // SAFETY: the caller's promise: what is allocated there is its own.
    unsafe { heap.resize(at, bytes) }?.ok_or(full)
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two, and writes their address to `block`. A block of
/// 0 bytes has to be freed, too.
///
/// A read-modify-write if the CPU's cache has a slot of that size, none after `nbbs_heap_set_nested_cpu`. Otherwise one
/// for up to four slabs and one for each of these, or what the buddy allocator takes for a new slab; above 32 KiB, if
/// the cache keeps no such block of as many KiB, or up to an eighth more, what `nbbs_alloc_units` takes. If there is no
/// memory, the heap is trimmed first. Refuses with `ALIGNMENT`, `SIZE`, `HEAP_FULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_alloc(
    heap: *const Heap,
    bytes: usize,
    align: usize,
    block: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_alloc, error);
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
/// What `nbbs_heap_size_of` takes, and one read-modify-write if the CPU's cache has room, none after
/// `nbbs_heap_set_nested_cpu`; if it has none, one more for each slab to which the cache gives slots back. Of blocks
/// above 32 KiB a cache keeps up to eight, together at most a 64th of the memory that they lie in and 1 MiB. `block` may
/// be any address: what is no block is refused with `NOT_OF_HEAP`, `INSIDE_UNIT`, `NO_BLOCK`. A double free is refused
/// if no cache keeps the block, or if this CPU's does and the block is above 32 KiB, or the last one of its size that
/// was freed there. Other double frees go unnoticed, and the cache may hand the block out twice; `nbbs_heap_audit` finds
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_free(
    heap: *const Heap,
    block: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| free(heap, block)) }
}

/// Makes the block whose address is at `block` larger or smaller. If the block has to move, its contents move with it,
/// and the new address is written to `block`; it is then aligned to 16 bytes. If the address was null, a block is
/// allocated.
///
/// A block stays in place within its size class, and a larger one if the units behind it are free, or it keeps half of
/// its bytes; otherwise this costs what `nbbs_heap_alloc` and `nbbs_heap_free` take, and a copy. A block of more than 32
/// KiB that lies at a page can be made smaller, to more than 128 bytes, also when the heap is full. What grows in place to
/// 64 KiB or more gets up to a sixteenth more, unless memory is short, so that most small steps change nothing. Refuses
/// as they do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_resize(
    heap: *const Heap,
    block: *mut *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_resize, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(heap, error, |heap| {
            let place = pointer::checked(block, 2)?;
            place.write(resize(heap, place.read(), bytes)?.as_ptr().cast());
            Ok(())
        })
    }
}

/// Writes to `bytes` how many bytes may be used of a block: as many as were asked for, or more.
///
/// Up to three loads, one more for each region up to the block's own, and what `nbbs_len_of` takes if it is in no
/// slab. Refuses as `nbbs_heap_free`, and with `NULL`; what a cache keeps counts as a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_size_of(
    heap: *const Heap,
    block: *const c_void,
    bytes: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_heap_size_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(heap, error, |heap| size_of(heap, block, bytes)) }
}

/// Returns whether an address, which may be any, lies in memory that the heap hands out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_contains(heap: *const Heap, address: *const c_void) -> bool {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(heap, |heap| heap.placed.contains(address.cast())) }
}

/// `malloc`: null if `nbbs_heap_alloc` would refuse. Aligned to 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_malloc(heap: *const Heap, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_heap_malloc), heap, |heap| alloc(heap, bytes, 1)) }
}

/// `calloc`: memory for `count` times `bytes` bytes, all zero. Null if `nbbs_heap_alloc` would refuse, or if the
/// product is too large for a `size_t`. Costs a store for each word more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_calloc(
    heap: *const Heap,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_heap_calloc), heap, |heap| alloc_zeroed(heap, count, bytes)) }
}

/// `realloc`: null if `nbbs_heap_resize` would refuse, and the block stays as it is. 0 bytes do not free it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_realloc(
    heap: *const Heap,
    block: *mut c_void,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_heap_realloc), heap, |heap| resize(heap, block, bytes)) }
}

/// `aligned_alloc`: null if `nbbs_heap_alloc` would refuse. `bytes` need not be a multiple of `align`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_aligned_alloc(
    heap: *const Heap,
    align: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise about pointers.
    unsafe { or_null(told!(nbbs_heap_aligned_alloc), heap, |heap| alloc(heap, bytes, align)) }
}

/// `malloc_usable_size`: what `nbbs_heap_size_of` says; 0 of null, and where it would refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_heap_usable_size(heap: *const Heap, block: *const c_void) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { usable_size(told!(nbbs_heap_usable_size), heap, block) }
}

/// How many bytes may be used of a block; 0 of null, and of what is none, which goes to the heap's hook.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn usable_size<H: Blocks>(
    told: Told,
    heap: *const H,
    block: *const c_void,
) -> usize {
    let mut bytes = 0;
    if !block.is_null() {
        // SAFETY: by the contract, and the number is there.
        unsafe { run(heap, told, |heap| size_of(heap, block, &raw mut bytes)) };
    }
    bytes
}

/// What `work` returns on a heap, or null; what it refuses goes to the heap's hook.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
pub(crate) unsafe fn or_null<H: Blocks>(
    told: Told,
    heap: *const H,
    work: impl FnOnce(&H) -> Result<NonNull<u8>, Error>,
) -> *mut c_void {
    let mut found = ptr::null_mut();
    let found_by = |heap: &H| {
        found = work(heap)?.as_ptr().cast();
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { run(heap, told, found_by) };
    found
}
