//! The list with `next_free` behind the system's mutex.

use std::sync::{Mutex, PoisonError};

use super::in_order;
use crate::pool::Pool;

/// `core::arena_allocator` with `std::mutex`, of one chunk: the same list, but waiting threads sleep.
#[derive(Debug)]
pub struct Mutexed(Mutex<List>);

#[derive(Debug)]
struct List {
    /// As in the other lists: a slot plus 1, or 0.
    next_free: u64,
    next: Box<[u64]>,
}

impl Mutexed {
    /// Creates a pool with all slots free, the first one at the head.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_SLOTS`](super::MAX_SLOTS).
    #[must_use]
    pub fn new(slots: u64) -> Self {
        Self(Mutex::new(List { next_free: 1, next: in_order(slots).collect() }))
    }

    fn list(&self) -> std::sync::MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool for Mutexed {
    fn slots(&self) -> u64 {
        self.list().next.len() as u64
    }

    fn metadata_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.list().next)
    }

    fn alloc(&self) -> Option<u64> {
        let mut list = self.list();
        let slot = list.next_free.checked_sub(1)?;
        list.next_free = list.next[slot as usize];
        Some(slot)
    }

    fn free(&self, slot: u64) {
        let mut list = self.list();
        list.next[slot as usize] = list.next_free;
        list.next_free = slot + 1;
    }
}
