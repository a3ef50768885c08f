//! The list with `next_free` behind a spin lock.

use alloc::boxed::Box;
use core::sync::atomic::AtomicU64;

use nbbs::sync::Ordering;

use super::{NONE, in_order, word};
use crate::pool::Pool;
use crate::spin::{Pause, SpinLock};

/// `core::arena_allocator`, of one chunk: the same list, one thread at a time.
#[derive(Debug)]
pub struct Locked<W = AtomicU64> {
    lock: SpinLock<W>,
    next_free: W,
    next: Box<[W]>,
}

impl<W: Pause + Default> Locked<W> {
    /// Creates a pool with all slots free, the first one at the head.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_SLOTS`](super::MAX_SLOTS).
    #[must_use]
    pub fn new(slots: u64) -> Self {
        let next = in_order(slots).map(word).collect();
        Self { lock: SpinLock::default(), next_free: word(1), next }
    }
}

/// Relaxed throughout: the lock orders everything.
impl<W: Pause + Default> Pool for Locked<W> {
    fn slots(&self) -> u64 {
        self.next.len() as u64
    }

    fn metadata_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.next)
    }

    fn alloc(&self) -> Option<u64> {
        self.lock.hold(|| {
            let slot = self.next_free.load(Ordering::Relaxed).checked_sub(1)?;
            let next = &self.next[slot as usize];
            self.next_free.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
            next.store(NONE, Ordering::Relaxed);
            Some(slot)
        })
    }

    fn free(&self, slot: u64) {
        self.lock.hold(|| {
            self.next[slot as usize]
                .store(self.next_free.load(Ordering::Relaxed), Ordering::Relaxed);
            self.next_free.store(slot + 1, Ordering::Relaxed);
        });
    }
}
