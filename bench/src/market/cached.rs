//! The back-end behind caches, one for each thread that exists at a time.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use nbbs::sync::Word;
use nbbs::{Caches, cache_words};
use testkit::BackEnd;

use crate::lines::{ArenaWords, zeroed};

/// The number of threads that have a cache; other threads bypass the caches.
const CPUS: usize = 64;

/// `nbbs` with private caches. Before an allocation is refused, all of them are drained, as in the kernel.
#[derive(Debug)]
pub struct NbbsCached<'a, W> {
    caches: Caches<'a, W>,
}

/// Creates an allocator of `units` units and lends it to the visitor.
pub(crate) fn with_nbbs_cached<W: Word + From<u64>>(
    units: u64,
    visit: &mut dyn FnMut(&dyn BackEnd),
) {
    let (metadata, words) = (ArenaWords::<W>::new(units), zeroed::<W>(cache_words(CPUS)));
    // As Linux's lists do, the caches keep a share of the memory for each CPU of the machine. As in a release build,
    // whatever this build is: the other contenders check nothing either.
    let cpus = available_parallelism().map_or(1, NonZero::get);
    let caps = nbbs::Caps::for_arena(units, cpus).checked(false);
    visit(&NbbsCached { caches: Caches::new(metadata.buddy(), words.words()).with_caps(caps) });
}

impl<W: Word> BackEnd for NbbsCached<'_, W> {
    fn units(&self) -> u64 {
        BackEnd::units(&self.caches)
    }

    fn max_order(&self) -> u32 {
        BackEnd::max_order(&self.caches)
    }

    fn metadata_bytes(&self) -> usize {
        BackEnd::metadata_bytes(&self.caches)
    }

    fn alloc(&self, _: usize, order: u32) -> Option<u64> {
        let cpu = number();
        self.caches.alloc(cpu, order).ok().or_else(|| {
            if order > self.max_order() || self.caches.cached().units == 0 {
                return None;
            }
            drain_all(&self.caches);
            self.caches.alloc(cpu, order).ok()
        })
    }

    /// As with the kernel's lists, the order is believed, and a second free of a cached block is not always noticed.
    fn free(&self, _: usize, index: u64, order: u32) -> Result<(), String> {
        BackEnd::free(&self.caches, number(), index, order)
    }
}

/// Returns a number that no other thread has at the same time, whatever lanes they share.
pub(super) fn number() -> usize {
    const NONE: usize = usize::MAX;
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(NONE) });
    match NUMBER.get() {
        NONE => {
            let number = Number::take();
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

/// The number of a thread, which another thread gets after its end.
struct Number(usize);

/// The numbers that were given back, and how many there are in all.
static FREE: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

impl Number {
    fn take() -> usize {
        thread_local!(static OWN: Number = {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            let next = free.1;
            Number(free.0.pop().unwrap_or_else(|| {
                free.1 += 1;
                next
            }))
        });
        OWN.with(|own| own.0)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.0);
    }
}

/// Drains the caches of all threads. Where no barrier can be imposed on them, asks the threads to drain.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn drain_all<W: Word>(caches: &Caches<'_, W>) {
    use std::sync::OnceLock;

    static OFFERED: OnceLock<bool> = OnceLock::new();
    let membarrier = |command: libc::c_int| {
        // SAFETY: the call takes three integers, and touches no memory of the caller's.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    };
    let offered = OFFERED.get_or_init(|| {
        let register = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
        membarrier(register) && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    });
    if *offered {
        // The command has been registered, and fails for no other reason.
        caches.drain_all(|| _ = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED));
    } else {
        caches.ask_all();
    }
}

/// Asks all threads to drain their caches.
#[cfg(not(target_os = "linux"))]
fn drain_all<W: Word>(caches: &Caches<'_, W>) {
    caches.ask_all();
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_one_threads_at_a_time() {
        let own = number();
        let others = std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| (number(), number())));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(others.iter().all(|&(first, again)| first == again && first != own));
    }

    /// What an ended thread kept is not lost.
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_stranded_with_an_idle_thread() {
        super::with_nbbs_cached::<std::sync::atomic::AtomicU64>(1 << 12, &mut |back_end| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| back_end.alloc(1, 0).unwrap());
                let block = other.join().unwrap();
                back_end.free(0, block, 0).unwrap();
            });
            assert_eq!(back_end.alloc(0, 12), Some(0));
        });
    }
}
