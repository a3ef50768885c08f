//! The heap of the program, and the number of the calling thread, by which it has a cache of that heap: the lowest that
//! no other thread has.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use nbbs_heap::{Cpu, Heap, Overlap};

use crate::idle;
use crate::own;
use crate::system::{keeping_errno, processors};

/// The heap of the program, which has no memory at first.
pub static HEAP: Heap<0, THREADS, Thread> = Heap::new();

/// How many threads have a cache at a time. Others go past the caches.
const THREADS: usize = 1024;

/// A bit for each number that a thread has.
static TAKEN: [AtomicU64; THREADS / 64] = [const { AtomicU64::new(0) }; THREADS / 64];

/// The key, plus one, whose destructor is called when a thread ends; 0 as long as there is none. Relaxed everywhere:
/// nothing but the key is communicated.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Numbers of threads, for the heap.
pub struct Thread;

impl Cpu for Thread {
    // SAFETY: as long as a thread has a number, no other thread has it, and `take` has acquired what the last one did.
    // The number of those that have none, `THREADS`, is that of no cache.
    const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

    /// Returns the number of no cache for a thread that has none yet.
    #[inline]
    fn number() -> Option<usize> {
        Some(own::get().wrapping_sub(1))
    }

    fn claim_number() {
        if own::get() == 0 {
            begin();
        }
    }

    /// Few lanes: a thread that has freed much may not run again for long, and others are to use that memory.
    fn lane(number: usize) -> usize {
        // Relaxed, here and below: it only says how lanes are shared.
        number & LAST_LANE.load(Ordering::Relaxed)
    }

    const GIVES_BACK: bool = true;

    fn give_back(idle: u64, touched: u64) {
        idle::give_back(idle, touched);
    }
}

/// The lanes are those up to this one, a power of two of them.
static LAST_LANE: AtomicUsize = AtomicUsize::new(0);

/// How many lanes there are for each processor, or up to twice as many: threads that run at the same time seldom share
/// one.
const LANES_EACH: usize = 2;

/// Has threads use lanes for as many processors as the system has, once there is a second thread.
fn spread() {
    if LAST_LANE.load(Ordering::Relaxed) == 0 {
        let lanes = processors().clamp(1, THREADS).next_power_of_two() * LANES_EACH;
        LAST_LANE.store(lanes - 1, Ordering::Relaxed);
    }
}

/// Gives the calling thread a number. Its own calls from in here, as the C library may need memory for the key, and
/// those of handlers, go past the caches. `errno` stays: this may be part of a `free`.
#[cold]
fn begin() {
    own::set(THREADS + 1);
    let number = keeping_errno(|| {
        let number = already().or_else(take_announced).unwrap_or(THREADS);
        if number > 0 {
            spread();
        }
        number
    });
    own::set(number + 1);
}

/// Returns the number that a handler took for this thread just before, when it interrupted the beginning.
fn already() -> Option<usize> {
    let key = KEY.load(Ordering::Relaxed).checked_sub(1)?;
    // SAFETY: the key exists.
    unsafe { libc::pthread_getspecific(key) }.addr().checked_sub(1)
}

/// Takes a number that is given back when the calling thread ends, if there is one.
fn take_announced() -> Option<usize> {
    let number = take()?;
    if announce(number) {
        return Some(number);
    }
    release(number);
    None
}

/// Takes the lowest number that no thread has, if there is one.
fn take() -> Option<usize> {
    for (at, taken) in TAKEN.iter().enumerate() {
        // Relaxed: the exchange fails if it has changed.
        let mut seen = taken.load(Ordering::Relaxed);
        while seen != u64::MAX {
            let bit = !seen & (seen + 1);
            // Acquire: pairs with the Release in `release`, after all that the last thread did with the cache.
            match taken.compare_exchange(seen, seen | bit, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(64 * at + bit.trailing_zeros() as usize),
                Err(found) => seen = found,
            }
        }
    }
    None
}

/// Gives a number back.
fn release(number: usize) {
    // Release: pairs with the Acquire in `take`.
    TAKEN[number / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
}

/// Arranges that the number is given back when the calling thread ends. Returns whether it will be.
fn announce(number: usize) -> bool {
    let value = ptr::without_provenance::<c_void>(number + 1);
    // SAFETY: the key exists, and its destructor takes such a value.
    key().is_some_and(|key| unsafe { libc::pthread_setspecific(key, value) } == 0)
}

/// Returns the key, which is created if there was none.
fn key() -> Option<c_uint> {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        return Some(key);
    }
    let mut key = 0;
    // SAFETY: it writes the key. The library is never unloaded, so that `end` stays.
    let error: c_int = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) };
    if error != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(key),
        Err(theirs) => {
            // SAFETY: nobody else knows the key.
            unsafe { libc::pthread_key_delete(key) };
            theirs.checked_sub(1)
        }
    }
}

/// Called when a thread ends that has a number. What it frees later goes past the caches.
unsafe extern "C" fn end(value: *mut c_void) {
    HEAP.drain();
    own::set(THREADS + 1);
    if let Some(number) = value.addr().checked_sub(1).filter(|&number| number < THREADS) {
        release(number);
    }
}
