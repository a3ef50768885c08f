//! Freed slots that wait before they are handed out again, with the feature `quarantine`; without it, nothing.

use core::ptr::NonNull;

use crate::class::Class;
#[cfg(feature = "quarantine")]
use crate::class::{MOST_WAITING, WAITING_BYTES};

/// Whether slots wait.
pub const ON: bool = cfg!(feature = "quarantine");

/// The slots that wait, the one that has waited longest first.
///
/// If it is all zero, no slot waits.
#[derive(Debug)]
pub struct Waiting {
    #[cfg(feature = "quarantine")]
    slots: [(u8, *mut u8); MOST_WAITING],
    #[cfg(feature = "quarantine")]
    first: usize,
    #[cfg(feature = "quarantine")]
    len: usize,
    #[cfg(feature = "quarantine")]
    bytes: usize,
}

#[cfg(not(feature = "quarantine"))]
impl Waiting {
    pub const fn new() -> Self {
        Self {}
    }

    pub fn oldest(&self) -> Option<(Class, NonNull<u8>)> {
        None
    }

    pub fn take_oldest(&mut self) -> Option<(Class, NonNull<u8>)> {
        None
    }

    pub fn has_room(&self, _class: Class) -> bool {
        false
    }

    pub fn add(&mut self, _class: Class, _at: NonNull<u8>) {}

    pub fn is_newest(&self, _at: NonNull<u8>) -> bool {
        false
    }

    pub fn each(&self, _visit: impl FnMut(Class, NonNull<u8>)) {}
}

#[cfg(feature = "quarantine")]
impl Waiting {
    pub const fn new() -> Self {
        Self { slots: [(0, core::ptr::null_mut()); MOST_WAITING], first: 0, len: 0, bytes: 0 }
    }

    /// Returns the slot that has waited longest.
    pub fn oldest(&self) -> Option<(Class, NonNull<u8>)> {
        let (class, at) = *self.slots.get(self.first).filter(|_| self.len > 0)?;
        Some((Class::numbered(class.into())?, NonNull::new(at)?))
    }

    /// Removes that slot.
    pub fn take_oldest(&mut self) -> Option<(Class, NonNull<u8>)> {
        let (class, at) = self.oldest()?;
        self.first = (self.first + 1) % MOST_WAITING;
        self.len -= 1;
        self.bytes -= class.size();
        Some((class, at))
    }

    /// Returns whether one more may wait, beside all that do.
    pub fn has_room(&self, class: Class) -> bool {
        self.len < MOST_WAITING && (self.len == 0 || self.bytes + class.size() <= WAITING_BYTES)
    }

    /// Adds a slot, for which there is room.
    pub fn add(&mut self, class: Class, at: NonNull<u8>) {
        self.slots[(self.first + self.len) % MOST_WAITING] = (class.number() as u8, at.as_ptr());
        self.len += 1;
        self.bytes += class.size();
    }

    /// Returns whether that slot was added last, and waits.
    pub fn is_newest(&self, at: NonNull<u8>) -> bool {
        let place = (self.first + self.len + MOST_WAITING - 1) % MOST_WAITING;
        self.len > 0 && self.slots[place].1 == at.as_ptr()
    }

    /// Calls `visit` for all slots that wait.
    pub fn each(&self, mut visit: impl FnMut(Class, NonNull<u8>)) {
        for place in 0..self.len {
            let (class, at) = self.slots[(self.first + place) % MOST_WAITING];
            if let Some((class, at)) = Class::numbered(class.into()).zip(NonNull::new(at)) {
                visit(class, at);
            }
        }
    }
}
