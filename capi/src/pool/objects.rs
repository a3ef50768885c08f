//! Objects of a pool.

use core::ffi::c_void;

use super::Pool;
use crate::error::{Code, Error, Reporter};
use crate::function::told;
use crate::handle::{ask, run};
use crate::pointer;

/// Gets an object from `nbbs_pool_each`.
pub type VisitObject = Option<unsafe extern "C" fn(context: *mut c_void, object: *mut c_void)>;

/// Allocates an object and writes its address to `object`. Its bytes are not initialised.
///
/// One read-modify-write, whatever the size of the pool; growing takes as long as the source takes. Refuses with
/// `FULL`, `SOURCE_EMPTY`. Callable from interrupt and signal handlers if the source is, or if the pool need not grow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_alloc(
    pool: *const Pool,
    object: *mut *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(pool, error, |pool| {
            let place = pointer::checked(object, 2)?;
            place.write(pool.claim()?);
            Ok(())
        })
    }
}

/// Frees an object. Null: does nothing.
///
/// Two read-modify-writes. `object` may be any address: what is no object is refused with `FOREIGN_ADDRESS`,
/// `INSIDE_UNIT`, `NO_OBJECT`. A double free is refused as long as the slot has not been allocated again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_free(
    pool: *const Pool,
    object: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { run(pool, error, |pool| if object.is_null() { Ok(()) } else { pool.free(object) }) }
}

/// Returns whether an object is allocated at an address, which may be any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_is_valid(pool: *const Pool, object: *const c_void) -> bool {
    let valid =
        |pool: &Pool| !object.is_null() && pool.find(object).is_ok_and(|found| found.is_used());
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, valid) }
}

/// Returns how many objects are allocated; slots that locals keep do not count. Exact when nothing else runs.
///
/// A load for every 64 slots, and for each of them that is not free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_len(pool: *const Pool) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, Pool::len) }
}

/// Returns how many objects have memory, allocated or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_capacity(pool: *const Pool) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, |pool| pool.inner.capacity()) }
}

/// Returns the most objects that the pool may ever have; `SIZE_MAX`: as many as there is memory for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_limit(pool: *const Pool) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, |pool| pool.inner.max_len()) }
}

/// Returns the bytes from one object to the next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_stride(pool: *const Pool) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, |pool| pool.shape.stride) }
}

/// Adds chunks until there is memory for `objects` objects, allocated or not.
///
/// Takes as long as the source does for each chunk. Refuses with `OBJECTS`, before it adds a chunk, if the pool can
/// never have so many: its limit is lower, or there are not so many addresses. Refuses with `FULL` if a chunk that is
/// missing is in the hands of another call, and with `SOURCE_EMPTY` if the source has no memory for one of the chunks:
/// those added before stay, and `nbbs_pool_shrink` gives them back.
/// Callable where the source is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_reserve(
    pool: *const Pool,
    objects: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_reserve, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(pool, error, |pool| {
            pool.inner.config().check_slots(objects, pool.shape.stride)?;
            pool.inner.reserve(objects).map_err(|reason| pool.shape.refusal(reason))
        })
    }
}

/// Gives chunks in which every slot is free back to the source, as long as the objects that the configuration reserves
/// stay. Returns by how many objects the capacity has shrunk. A slot that a local keeps is not free.
///
/// A read-modify-write for every 64 slots, and what the source takes. Callable where the source is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_shrink(pool: *const Pool) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { ask(pool, |pool| pool.inner.shrink()) }
}

/// Calls `visit` with every object that is allocated, in no particular order. `visit` may free the object, and may
/// allocate others, which may be visited or not.
///
/// A load for every 64 slots, and five for each object. Refuses with `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_each(
    pool: *const Pool,
    visit: VisitObject,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_pool_each, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(pool, error, |pool| {
            let visit = visit.ok_or(Error::of(Code::Null, 2, 0))?;
            pool.each(|object| visit(context, object));
            Ok(())
        })
    }
}

/// Frees all objects. The pool keeps its memory, and locals keep their slots.
///
/// A load for every 64 slots, and for each object what `nbbs_pool_free` costs. Refuses with `NULL`. Nobody else may be
/// using the pool meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_pool_clear(pool: *mut Pool, error: *mut Error) -> Code {
    let error = told!(nbbs_pool_clear, error);
    let cleared = pointer::checked(pool, 1).map(|pool| {
        // SAFETY: a pool that nobody else is using, by the contract.
        unsafe { pool.as_ref() }.clear();
    });
    // SAFETY: the caller's promise about pointers.
    unsafe { Reporter::NOBODY.answer(cleared, error) }
}
