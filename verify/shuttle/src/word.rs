//! A word that shuttle schedules.

use std::sync::atomic::{AtomicBool, AtomicU64};

use baselines::Pause;
use nbbs::sync::{Ordering, Word};

/// A word before each access to which another thread may go on, while a race is on. Shuttle's threads are
/// coroutines of one thread, so every access is sequentially consistent.
#[derive(Debug, Default)]
pub struct Scheduled(AtomicU64);

/// Whether threads are racing. Before and after that, nobody else could go on.
static RACING: AtomicBool = AtomicBool::new(false);

/// Calls `body` as a race: accesses to the words are steps.
pub fn racing<R>(body: impl FnOnce() -> R) -> R {
    RACING.store(true, Ordering::Relaxed);
    let result = body();
    RACING.store(false, Ordering::Relaxed);
    result
}

/// What a race that failed may have left behind.
pub fn not_racing() {
    RACING.store(false, Ordering::Relaxed);
}

fn step() {
    if RACING.load(Ordering::Relaxed) {
        // Any access to an atomic of shuttle's is a point at which it may switch.
        shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
    }
}

impl Word for Scheduled {
    fn load(&self, order: Ordering) -> u64 {
        step();
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        step();
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        step();
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl Pause for Scheduled {
    fn pause() {
        shuttle::thread::yield_now();
    }
}
