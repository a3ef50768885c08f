//! A spin lock over the words that checkers can steer.

use core::sync::atomic::AtomicU64;

use nbbs::sync::{Ordering, Word};
use testkit::hooked::{Hook, Hooked};

/// A word that threads can wait on: a checker that runs threads in turn lets another run.
pub trait Pause: Word {
    /// Called between two reads of a lock that another thread holds.
    fn pause() {
        core::hint::spin_loop();
    }
}

impl Pause for AtomicU64 {}

impl<H: Hook> Pause for Hooked<H> {
    fn pause() {
        H::pause();
    }
}

/// A test-and-test-and-set lock in one word. A panic inside leaves it locked, as a thread's death would.
#[derive(Debug, Default)]
pub struct SpinLock<W> {
    held: W,
}

impl<W: Pause> SpinLock<W> {
    /// Runs `section` while no other thread runs one.
    pub fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        // Acquire pairs with the Release below: the next holder sees what the last one did.
        while self.held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.held.load(Ordering::Relaxed) != 0 {
                W::pause();
            }
        }
        let result = section();
        self.held.store(0, Ordering::Release);
        result
    }
}
