//! Blocks that go through the cache of a CPU, and what becomes of those that it keeps.

use core::ffi::c_void;

use crate::arena::{Arena, Handle, run};
use crate::error::{Code, Error};
use crate::function::{Told, told};
use crate::pointer;

/// Makes memory accesses of all CPUs visible to the caller, and the caller's to them: see `nbbs_cache_drain_all`.
pub type Barrier = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Allocates a block of `2^order` units from the cache of `cpu`, and writes its first unit to `index`.
///
/// Two calls with the same CPU number may overlap in one way only: the second interrupts the first, and returns before
/// the first goes on. So interrupts may stay enabled, but a thread must not be preempted or moved between reading the
/// number and the call's return: a kernel disables preemption, and a program gives each of its threads a number of its
/// own. If this is not kept, units may be handed out twice or be lost. A handler that interrupts a call of its CPU's
/// cache bypasses the cache and uses the arena, and so does a call with a number that has no cache. Nobody waits.
///
/// 8 plain loads and stores, and no read-modify-write, if the CPU keeps a block of the order. Refuses with
/// `ORDER_TOO_LARGE`, or with `EXHAUSTED` if, at one instant of the call, no block of that order was free, save for
/// those in the hands of a call that had not returned. By then this CPU has given back what it kept, and the other
/// CPUs, whose blocks count as in use, have been asked to do so with their next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_alloc(
    arena: *const Arena,
    cpu: usize,
    order: u32,
    index: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_alloc, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let place = pointer::checked(index, 4)?;
            place.write(arena.caches.alloc(cpu, order)?);
            Ok(())
        })
    }
}

/// Frees the block or run at `index` into the cache of `cpu`, if it keeps such blocks, and writes its number of units
/// to `units`, unless that is null. `cpu` as for `nbbs_cache_alloc`; a CPU may free what another one allocated.
///
/// A load for each level, and then what `nbbs_cache_free_sized` costs. Refuses as `nbbs_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_free(
    arena: *const Arena,
    cpu: usize,
    index: u64,
    units: *mut u64,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_free, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            let freed = arena.caches.free(cpu, index)?;
            pointer::write_if_given(units, freed);
            Ok(())
        })
    }
}

/// Frees the block of `2^order` units at `index` into the cache of `cpu`, if it keeps such blocks. `cpu` as for
/// `nbbs_cache_alloc`.
///
/// 8 or 9 plain loads and stores, as long as there is room; otherwise the blocks that were freed longest ago go back to
/// the arena: an eighth of them, or half if those lie close together.
///
/// Refuses as `nbbs_free_sized`, as far as a cache can tell: an index outside the arena or not aligned to the order,
/// and a second free, by the same order, of the block that this CPU freed last, as long as it keeps that block and the
/// cache is neither in use by an interrupted call nor being drained by another thread. Other wrong frees go unnoticed:
/// such a block may be handed out twice, or the arena refuses it when the cache gives it back, and `nbbs_cache_refused`
/// counts it. With `checked` in the configuration wrong frees are refused; `nbbs_cache_config` names the exceptions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_free_sized(
    arena: *const Arena,
    cpu: usize,
    index: u64,
    order: u32,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_free_sized, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.caches.free_sized(cpu, index, order)?;
            Ok(())
        })
    }
}

/// Gives all that `cpu` keeps back to the arena: to be called before the CPU sleeps, and before the caches end. `cpu`
/// as for `nbbs_cache_alloc`; for other CPUs see `nbbs_cache_ask` and `nbbs_cache_drain_all`.
///
/// A read-modify-write for each word that the blocks lie in. Refuses only handles that were never made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_drain(
    arena: *const Arena,
    cpu: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_drain, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { about(arena, error, |arena| arena.caches.drain(cpu)) }
}

/// Asks `cpu` to give back, with its next call, all that it keeps. Any thread may call it. One read-modify-write if
/// nobody has asked yet. Refuses only handles that were never made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_ask(
    arena: *const Arena,
    cpu: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_ask, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { about(arena, error, |arena| arena.caches.ask(cpu)) }
}

/// Gives back what all CPUs keep, idle ones included. A CPU that is in the middle of a call is asked instead, and gives
/// back at the end of that call or of its next one. Any thread may call it. While one thread is in it, others that call
/// it only ask all CPUs, and do not call `barrier`.
///
/// `barrier`, which is called once otherwise, has to let every CPU pass a full memory barrier before it returns: an
/// interrupt to all CPUs that is waited for, or on Linux `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`. If it does
/// not, units may be handed out twice. Refuses with `NULL`, if there is none.
///
/// Two read-modify-writes for each CPU, the barrier, and one for each word that the blocks lie in. Handlers may call it
/// if they may call `barrier`. A caller that dies in it leaves the caches to `nbbs_cache_recover`; the blocks that it
/// was giving back are lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_drain_all(
    arena: *const Arena,
    barrier: Barrier,
    context: *mut c_void,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_drain_all, error);
    // SAFETY: the caller's promise about pointers, and about the barrier.
    unsafe {
        run(arena, error, |arena| {
            let barrier = barrier.ok_or(Error::of(Code::Null, 2, 0))?;
            arena.caches.drain_all(|| barrier(context));
            Ok(())
        })
    }
}

/// Makes the cache of `cpu` usable again after a thread died in the middle of a call with that number, or in
/// `nbbs_cache_drain_all`; until then calls bypass that cache. What the thread had in its hands is lost: the block that
/// it was freeing, those that it was allocating from the arena, and, if it was giving back, all of that order. The next
/// call with that number gives back the others, as the thread may have been asked to. Call it only while nobody is in a
/// call with that number, or in `nbbs_cache_drain_all`. Two stores. Refuses only handles that were never made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_recover(
    arena: *const Arena,
    cpu: usize,
    error: *mut Error,
) -> Code {
    let error = told!(nbbs_cache_recover, error);
    // SAFETY: the caller's promise about pointers.
    unsafe { about(arena, error, |arena| arena.caches.recover(cpu)) }
}

/// Returns how many CPUs have a cache; 0 if the handle is of no arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_cpus(arena: *const Arena) -> usize {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.map_or(0, |handle| handle.caches.cpus())
}

/// Returns how many blocks the arena did not take back from the caches: each was freed twice, or with a wrong order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_refused(arena: *const Arena) -> u64 {
    // SAFETY: the caller's promise about pointers.
    unsafe { Handle::at(arena) }.map_or(0, |handle| handle.caches.refused())
}

/// Checks that every block that a CPU keeps is in use in the arena, with its order, and kept once. Only while no other
/// call is running.
///
/// Refuses with `CACHE_BROKEN`, which names the first block that is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbbs_cache_audit(arena: *const Arena, error: *mut Error) -> Code {
    let error = told!(nbbs_cache_audit, error);
    // SAFETY: the caller's promise about pointers.
    unsafe {
        run(arena, error, |arena| {
            arena.caches.audit()?;
            Ok(())
        })
    }
}

/// Runs what is never refused on the arena of a handle.
///
/// # Safety
/// As for [`run`].
unsafe fn about(arena: *const Arena, error: Told, work: impl FnOnce(&Handle)) -> Code {
    let work = |arena: &Handle| {
        work(arena);
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { run(arena, error, work) }
}
