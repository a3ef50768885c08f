//! The pools of fixed-size slots of "The Magicians: Lock-Free" (F. D'Agostino, 2022), which calls them arenas. Each is
//! a list of the free slots, and `next_free` names the first.
//!
//! The links are words of an array, eight to a cache line, while the article keeps each beside its object. So a link
//! here costs another line than the object's, but neighbours share it.
//!
//! **With an untagged `next_free`, as the article has it, the lock-free one is unsafe**: its
//! compare-and-swap cannot tell a head that never changed from one that came back (ABA).
//!
//! | step | thread A | thread B | list | held by B |
//! |---|---|---|---|---|
//! | 1 | allocates: reads `next_free` = 0 and the slot after it, 1; stalls | | 0, 1, 2 | |
//! | 2 | | allocates 0, allocates 1 | 2 | 0, 1 |
//! | 3 | | frees 0 | 0, 2 | 1 |
//! | 4 | resumes: `next_free` is 0 still, so sets it to 1 and returns 0 | | 1, ... | 1 |
//! | 5 | allocates 1: succeeds while B holds it | | | 1 |
//!
//! With a tag beside the head that every change increments, step 4 finds another word, and tries again.
//!
//! ```text
//! lock_free   next_free changed by compare-and-swap, with or without a tag
//! locked      next_free behind a spin lock
//! mutexed     next_free behind a mutex
//! ```

mod lock_free;
mod locked;
#[cfg(feature = "std")]
mod mutexed;

use core::sync::atomic::AtomicU64;

use nbbs::sync::{Ordering, Word};

pub use lock_free::LockFree;
pub use locked::Locked;
#[cfg(feature = "std")]
pub use mutexed::Mutexed;

/// The most slots.
pub const MAX_SLOTS: u64 = u32::MAX as u64;

/// The lock-free pool as the article has it. **Unsafe: hands out slots that are held (ABA).**
pub type Untagged<W = AtomicU64> = LockFree<W, false>;

/// The lock-free pool with a tag beside the head. It would fail a thread that stalls during 2^32 changes of the list.
pub type Tagged<W = AtomicU64> = LockFree<W, true>;

/// The end of the list. Words hold slot n as n + 1, so a word of 0 is not a slot.
const NONE: u64 = 0;

/// Creates a word with a value.
fn word<W: Word + Default>(value: u64) -> W {
    let word = W::default();
    word.store(value, Ordering::Relaxed);
    word
}

/// Returns the words of a new list: for each slot, the slot after it.
fn in_order(slots: u64) -> impl Iterator<Item = u64> {
    assert!((1..=MAX_SLOTS).contains(&slots), "1 to {MAX_SLOTS} slots, not {slots}");
    (1..=slots).map(move |link| if link == slots { NONE } else { link + 1 })
}
