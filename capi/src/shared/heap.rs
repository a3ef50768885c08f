//! The heap of a segment, as a member uses it.

use core::ffi::c_void;

use super::SharedId;
use super::member::{SharedMember, layout};
use crate::error::{Code, Error};
use crate::function::told;
use crate::handle::{ask, run, run_but};
use crate::pointer;

/// What is said to a taker who comes too late: somebody else has the slot, or its memory is cut up in another way.
const LATE: [Code; 2] = [Code::NotYours, Code::OffsetMisaligned];

/// Allocates memory of at least `bytes` bytes at a multiple of `align`, a power of two up to a page, and writes its
/// offset to `offset`: a slot, of 16 bytes to 4 KiB, in steps of 16 bytes up to 128 and of a quarter at most above, or a
/// block if it is larger. What is in it is whatever was there before. It is given to `nbbs_shared_heap_free` and the
/// others here.
///
/// A slot takes one read-modify-write in the steady state; before it refuses, it looks through the whole segment, and
/// trims it, as `nbbs_shared_heap_trim` does. Waits for nobody. Refuses with `NULL`, `ALIGNMENT`, `SIZE`, `SEGMENT_FULL`, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_alloc(
    member: *const SharedMember,
    bytes: usize,
    align: usize,
    offset: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_heap_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let place = pointer::checked(offset, 4)?;
            place.write(shared.member.heap().alloc(layout(bytes, align)?)?.bytes());
            Ok(())
        })
    }
}

/// Frees the member's slot or block at `offset`.
///
/// A read-modify-write. Waits for nobody. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED` also if no slot
/// begins there, `NOT_YOURS` also if it was freed before, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_free(
    member: *const SharedMember,
    offset: u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_heap_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            Ok(shared.member.heap().free(shared.offset(offset)?).map(drop)?)
        })
    }
}

/// Makes the slot or block at `offset` this member's, and writes whose it was to `from`, which may be null; as
/// `nbbs_shared_take`.
///
/// A read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS` if it is nobody's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_take(
    member: *const SharedMember,
    offset: u64,
    from: *mut SharedId,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_heap_take, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let owner = shared.member.heap().take(shared.offset(offset)?)?;
            pointer::write_if_given(from, owner.into());
            Ok(())
        })
    }
}

/// Makes the slot or block at `offset` this member's if it is `from`'s, or this member's already, and writes whose it was
/// to `former`, which may be null; as `nbbs_shared_take_from`.
///
/// A read-modify-write. Refuses with `NULL`, `OUTSIDE_SEGMENT`, and with two ordinary answers: `NOT_YOURS` if it is
/// neither's, `OFFSET_MISALIGNED` if its memory is cut into something else by now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_take_from(
    member: *const SharedMember,
    offset: u64,
    from: SharedId,
    former: *mut SharedId,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_heap_take_from, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run_but(&LATE, member, error, |shared| {
            let owner = shared.member.heap().take_from(shared.offset(offset)?, from.into())?;
            pointer::write_if_given(former, owner.into());
            Ok(())
        })
    }
}

/// Writes where in this process the member's slot or block at `offset` is, and how many bytes it has, to `address` and
/// `bytes`, each of which may be null; as `nbbs_shared_block`.
///
/// Refuses with `NULL`, `OUTSIDE_SEGMENT`, `OFFSET_MISALIGNED`, `NOT_YOURS`, `SEGMENT_DAMAGED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_block(
    member: *const SharedMember,
    offset: u64,
    address: *mut *mut c_void,
    bytes: *mut usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_shared_heap_block, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(member, error, |shared| {
            let found = shared.member.heap().block(shared.offset(offset)?)?;
            pointer::write_if_given(address, found.as_ptr().cast());
            pointer::write_if_given(bytes, found.len());
            Ok(())
        })
    }
}

/// Turns slabs of which no slot is in use into blocks again, and returns how many. For each size of slot, the slab that
/// another living member used last stays. Costs a walk over the bookkeeping, and memory of the process, which ends if it
/// has none: a few words for each block in use, and for each slab that a member used last. Null: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_shared_heap_trim(member: *const SharedMember) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(member, |shared| shared.member.heap().trim()) }
}
