//! The locks that the kernel's buddy can stand behind.

use mcslock::raw::spins;
use spin::mutex::{SpinMutex, TicketMutex};

/// A lock around what it protects.
pub trait Lock<T>: Sync {
    /// Nobody holds it.
    fn new(inner: T) -> Self;

    /// Runs `section` while nobody else is in one.
    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R;
}

/// Test-and-test-and-set: whoever sees it free first.
impl<T: Send> Lock<T> for SpinMutex<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.lock())
    }
}

/// By tickets: in the order in which they came, all of them waiting on one word.
impl<T: Send> Lock<T> for TicketMutex<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.lock())
    }
}

/// A lock of Mellor-Crummey and Scott: in the order in which they came, each waiting on a word of its own.
pub type Mcs<T> = spins::Mutex<T>;

impl<T: Send> Lock<T> for Mcs<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        self.lock_then(section)
    }
}
