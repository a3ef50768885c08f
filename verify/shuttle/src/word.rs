//! A word that shuttle schedules.

use std::sync::atomic::{AtomicBool, Ordering};

use testkit::hooked::{Hook, Hooked};

/// A word before each access to which another thread may go on, while a race is on. Shuttle's threads are
/// coroutines of one thread, so every access is sequentially consistent.
pub type Scheduled = Hooked<Shuttle>;

/// Lets shuttle switch threads.
#[derive(Debug, Default)]
pub struct Shuttle;

impl Hook for Shuttle {
    fn before_access() {
        if RACING.load(Ordering::Relaxed) {
            // Any access to an atomic of shuttle is a point at which it may switch.
            shuttle::sync::atomic::AtomicBool::new(false).load(Ordering::SeqCst);
        }
    }

    fn pause() {
        shuttle::thread::yield_now();
    }
}

/// Whether threads are racing. Before and after that, no other thread could go on.
static RACING: AtomicBool = AtomicBool::new(false);

/// Calls `body` as a race: accesses to the words are steps.
pub fn racing<R>(body: impl FnOnce() -> R) -> R {
    RACING.store(true, Ordering::Relaxed);
    let result = body();
    RACING.store(false, Ordering::Relaxed);
    result
}

/// Ends the racing state that a failed race may have left behind.
pub fn not_racing() {
    RACING.store(false, Ordering::Relaxed);
}
