//! Addresses and sizes instead of indices and units, for a handle that knows where its memory is.

use core::ffi::c_void;

use nbbs::Request;

use super::{Arena, Handle, run};
use crate::error::{Code, Error};
use crate::function::told;
use crate::pointer;

impl Handle {
    /// The first byte of unit 0.
    #[inline]
    fn memory(&self) -> Result<*mut u8, Error> {
        if self.base.is_null() { Err(Error::of(Code::NoMemory, 0, 0)) } else { Ok(self.base) }
    }

    /// Where a unit is. Inside the memory for every unit of the arena: `nbbs_set_memory` saw to that.
    #[inline]
    pub(crate) fn address(&self, index: u64) -> *mut u8 {
        self.base.wrapping_add((index as usize) << self.unit_shift)
    }

    /// The unit that begins at an address.
    #[inline]
    pub(crate) fn index(&self, address: *const c_void) -> Result<u64, Error> {
        let (address, base) = (address.addr() as u64, self.memory()?.addr() as u64);
        pointer::unit_at(address, base, self.unit_shift, self.buddy().units())
    }

    /// How many units so many bytes take; no bytes take one.
    #[inline]
    fn units_of(&self, bytes: usize) -> Result<u64, Error> {
        let units = (bytes.saturating_sub(1) >> self.unit_shift) as u64 + 1;
        if units > self.buddy().units() {
            let most = self.buddy().units() << self.unit_shift;
            return Err(Error::of(Code::Size, bytes as u64, most));
        }
        Ok(units)
    }

    /// The order to which a unit's index must be aligned so that its address is a multiple of `align`.
    #[inline]
    fn order_for(&self, align: usize) -> Result<u32, Error> {
        let base = self.memory()?;
        let order = align.max(1).ilog2().saturating_sub(self.unit_shift);
        let best = 1 << base.addr().trailing_zeros();
        if align > 1 && !(align.is_power_of_two() && base.addr() & (align - 1) == 0) {
            return Err(Error::of(Code::Alignment, align as u64, best));
        }
        Ok(order)
    }
}

/// Allocates memory of `bytes` bytes, rounded up to whole units and no further, at an address that is a multiple of
/// `align`, and writes it to `address`. 0 bytes take a unit. `align` is a power of two; 0 and 1: any address. It can be
/// no more than the alignment of the base that `nbbs_set_memory` was told.
///
/// Costs what `nbbs_alloc_units` does; an alignment above the unit, what `nbbs_alloc_request` does unless size and
/// alignment are the same. Refuses with `NO_MEMORY`, `SIZE`, `ALIGNMENT`, `EXHAUSTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_alloc_bytes(
    arena: *const Arena,
    bytes: usize,
    align: usize,
    address: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_alloc_bytes, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(address, 4)?;
            let order = arena.order_for(align)?;
            let units = arena.units_of(bytes)?;
            let index = match order {
                0 => arena.lane().alloc_units(units)?,
                // The base is so aligned, be it more than the largest block.
                _ => arena.lane().request(Request::units(units).aligned(order).offset(0))?,
            };
            place.write(arena.address(index).cast());
            Ok(())
        })
    }
}

/// Frees what `nbbs_alloc_bytes` allocated at `address`: `bytes` is the size that was asked for, or that
/// `nbbs_resize_bytes` made of it; 0: whatever is there is freed. A null `address`: does nothing.
///
/// Costs what `nbbs_free_units` does, or `nbbs_free` for 0 bytes. Refuses as these, and with `NO_MEMORY`,
/// `FOREIGN_ADDRESS`, `INSIDE_UNIT`, `SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_free_bytes(
    arena: *const Arena,
    address: *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_free_bytes, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            if address.is_null() {
                return Ok(());
            }
            let index = arena.index(address)?;
            let freed = if bytes == 0 {
                arena.lane().free(index).map(drop)
            } else {
                arena.lane().free_units(index, arena.units_of(bytes)?)
            };
            freed.map_err(|refused| Error::from(refused).at(address))
        })
    }
}

/// Makes what is allocated at `address` `bytes` bytes long, in place: shorter or longer, rounded up to whole units.
///
/// Costs what `nbbs_shrink` or `nbbs_grow` does. Refuses as these and `nbbs_free_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_resize_bytes(
    arena: *const Arena,
    address: *mut c_void,
    bytes: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_resize_bytes, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let address = pointer::checked(address, 2)?.as_ptr();
            let index = arena.index(address)?;
            let units = arena.units_of(bytes)?;
            let len =
                arena.buddy().len_of(index).map_err(|error| Error::from(error).at(address))?;
            let resized = if units < len {
                arena.lane().shrink(index, units)
            } else {
                arena.lane().grow(index, units)
            };
            resized.map_err(|refused| Error::from(refused).at(address))
        })
    }
}

/// Writes the address of unit `index` to `address`.
///
/// Refuses with `NO_MEMORY`, `OUT_OF_RANGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_address_of(
    arena: *const Arena,
    index: u64,
    address: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_address_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(address, 3)?;
            arena.memory()?;
            let units = arena.buddy().units();
            if index >= units {
                let end = index.saturating_add(1);
                return Err(Error::of(Code::OutOfRange, index, units).and(end));
            }
            place.write(arena.address(index).cast());
            Ok(())
        })
    }
}

/// Writes the index of the unit that begins at `address` to `index`.
///
/// Refuses with `NO_MEMORY`, `FOREIGN_ADDRESS`, `INSIDE_UNIT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_index_of(
    arena: *const Arena,
    address: *const c_void,
    index: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_index_of, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let address = pointer::checked(address, 2)?.as_ptr();
            let place = pointer::checked(index, 3)?;
            place.write(arena.index(address)?);
            Ok(())
        })
    }
}
