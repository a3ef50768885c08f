//! The locks that can protect the kernel's buddy.

use core::ops::Deref;

use mcslock::raw::spins;
use spin::mutex::{SpinMutex, TicketMutex};

/// Something on cache lines of its own, two of which some processors fetch together: whoever waits for a lock does not
/// take a line from those who only read what would lie beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A lock around the data that it protects.
pub trait Lock<T>: Sync {
    /// Creates a lock that nobody holds.
    fn new(inner: T) -> Self;

    /// Runs `section` while no other thread runs one.
    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R;
}

/// A test-and-test-and-set lock: the first thread to see it free takes it.
impl<T: Send> Lock<T> for SpinMutex<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.lock())
    }
}

/// A ticket lock: threads take it in the order of arrival, and all wait on one word.
impl<T: Send> Lock<T> for TicketMutex<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.lock())
    }
}

/// A lock of Mellor-Crummey and Scott: threads take it in the order of arrival, and each waits on a word of its own.
pub type Mcs<T> = spins::Mutex<T>;

impl<T: Send> Lock<T> for Mcs<T> {
    fn new(inner: T) -> Self {
        Self::new(inner)
    }

    fn hold<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        self.lock_then(section)
    }
}
