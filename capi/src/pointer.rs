//! Callers' pointers, as far as they can be checked.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::slice;

use nbbs::sync::AtomicU64;

use crate::error::{Code, Error};

/// A pointer that is not null and is aligned. `argument` counts from 1.
#[inline(always)]
pub(crate) fn checked<T>(pointer: *const T, argument: u64) -> Result<NonNull<T>, Error> {
    let Some(found) = NonNull::new(pointer.cast_mut()) else {
        return Err(Error::of(Code::Null, argument, 0));
    };
    if !found.is_aligned() {
        return Err(Error::of(
            Code::PointerMisaligned,
            pointer.addr() as u64,
            align_of::<T>() as u64,
        ));
    }
    Ok(found)
}

/// `len` values at `pointer`, which may be null if there are none.
///
/// # Safety
/// If the pointer is neither null nor misaligned, `len` values are there and stay as they are for `'a`.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    len: usize,
    argument: u64,
) -> Result<&'a [T], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    let first = checked_len(pointer, len, argument)?;
    // SAFETY: not null, aligned, and not longer than an object can be; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(first.as_ptr(), len) })
}

/// `len` places to write to at `pointer`, which may be null if there are none.
///
/// # Safety
/// If the pointer is neither null nor misaligned, `len` initialised values are there, nobody else's for `'a`.
pub(crate) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    len: usize,
    argument: u64,
) -> Result<&'a mut [T], Error> {
    if len == 0 {
        return Ok(&mut []);
    }
    let first = checked_len(pointer, len, argument)?;
    // SAFETY: as for `array`, and nobody else's.
    Ok(unsafe { slice::from_raw_parts_mut(first.as_ptr(), len) })
}

/// Checks that an array of `len` values can begin at `pointer`.
fn checked_len<T>(pointer: *const T, len: usize, argument: u64) -> Result<NonNull<T>, Error> {
    let first = checked(pointer, argument)?;
    let most = (isize::MAX as usize).min(usize::MAX - pointer.addr()) / size_of::<T>().max(1);
    if len > most {
        return Err(Error::of(Code::TooLong, len as u64, most as u64));
    }
    Ok(first)
}

/// Checks that there are addresses for memory of so many bytes.
pub(crate) fn check_bytes(memory: *const c_void, bytes: usize) -> Result<(), Error> {
    if bytes > isize::MAX as usize || memory.addr().checked_add(bytes).is_none() {
        return Err(Error::of(Code::Size, bytes as u64, isize::MAX as u64));
    }
    Ok(())
}

/// The words of `bytes` bytes at `memory`, at least `least` words.
///
/// # Safety
/// If the pointer is neither null nor misaligned, so many bytes are there, and used as atomic words only.
pub(crate) unsafe fn words(
    memory: *mut c_void,
    bytes: usize,
    least: usize,
    argument: u64,
) -> Result<&'static [AtomicU64], Error> {
    let words = checked(memory.cast::<AtomicU64>(), argument)?;
    if bytes / 8 < least {
        return Err(Error::of(Code::TooShort, bytes as u64, 8 * least as u64));
    }
    check_bytes(memory, bytes)?;
    // SAFETY: that many words are there, as the caller promises, and all bytes are valid words.
    Ok(unsafe { slice::from_raw_parts(words.as_ptr(), bytes / 8) })
}

/// The unit that begins at `address`, of `units` units of `2^shift` bytes from `base` on.
#[inline]
pub(crate) fn unit_at(address: u64, base: u64, shift: u32, units: u64) -> Result<u64, Error> {
    let index = address.wrapping_sub(base) >> shift;
    if index >= units {
        return Err(Error::of(Code::ForeignAddress, address, base).and(base + (units << shift)));
    }
    let begin = base + (index << shift);
    if begin != address {
        return Err(Error::of(Code::InsideUnit, address, begin));
    }
    Ok(index)
}

/// Writes to a place that a caller need not give.
///
/// # Safety
/// The pointer is null, misaligned, or leads to memory for a `T`.
#[inline(always)]
pub(crate) unsafe fn write_if_given<T>(pointer: *mut T, value: T) {
    if let Ok(place) = checked(pointer, 0) {
        // SAFETY: memory for a T, by the contract.
        unsafe { place.write(value) };
    }
}
