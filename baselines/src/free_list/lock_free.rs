//! The list with `next_free` changed by compare-and-swap.

use alloc::boxed::Box;

use nbbs::sync::{Ordering, Word};

use super::{NONE, in_order, word};
use crate::pool::Pool;

/// `lock_free::arena_allocator`, of one chunk.
///
/// ```text
/// 63                  32 31                   0
/// +---------------------+---------------------+
/// | tag, 0 if untagged  | first free slot + 1 |
/// +---------------------+---------------------+
/// ```
#[derive(Debug)]
pub struct LockFree<W, const TAGGED: bool> {
    next_free: W,
    next: Box<[W]>,
}

/// The bits of the head that name a slot.
const LINK: u64 = (1 << 32) - 1;

impl<W: Word + Default, const TAGGED: bool> LockFree<W, TAGGED> {
    /// Creates a pool with all slots free, the first one at the head.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_SLOTS`](super::MAX_SLOTS).
    #[must_use]
    pub fn new(slots: u64) -> Self {
        Self { next_free: word(1), next: in_order(slots).map(word).collect() }
    }

    /// Returns the head that names another slot. If tagged, it differs from every word before.
    fn replaced(head: u64, link: u64) -> u64 {
        if TAGGED { (head >> 32).wrapping_add(1) << 32 | link } else { link }
    }

    fn swap(&self, head: u64, link: u64) -> bool {
        let new = Self::replaced(head, link);
        // Release pairs with the Acquire of the next thread that reads the head: it sees the slot's link.
        self.next_free.compare_exchange(head, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<W: Word + Default, const TAGGED: bool> Pool for LockFree<W, TAGGED> {
    fn slots(&self) -> u64 {
        self.next.len() as u64
    }

    fn metadata_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.next)
    }

    fn alloc(&self) -> Option<u64> {
        loop {
            let head = self.next_free.load(Ordering::Acquire);
            let slot = (head & LINK).checked_sub(1)?;
            let next = &self.next[slot as usize];
            if self.swap(head, next.load(Ordering::Relaxed)) {
                next.store(NONE, Ordering::Relaxed);
                return Some(slot);
            }
        }
    }

    fn free(&self, slot: u64) {
        let next = &self.next[slot as usize];
        loop {
            let head = self.next_free.load(Ordering::Relaxed);
            next.store(head & LINK, Ordering::Relaxed);
            if self.swap(head, slot + 1) {
                return;
            }
        }
    }
}
