//! How threads are kept from disturbing each other: the difference between the `nb` and the `sl` systems.

use nbbs::sync::{Ordering, Word};

use crate::spin::{Pause, SpinLock};

/// A way to make the updates of one attempt.
pub trait Discipline<W: Word>: Default + Sync {
    /// Runs one attempt to allocate a node, or one release.
    fn attempt<R>(&self, body: impl FnOnce() -> R) -> R;

    /// Replaces `old` in a word by `new`, unless the word holds something else by now. Returns whether it did.
    fn swap(word: &W, old: u64, new: u64) -> bool;
}

/// As published: every update is a compare-and-swap. **Unsafe**: see [`paper`](super).
#[derive(Debug, Default)]
pub struct NonBlocking;

impl<W: Word> Discipline<W> for NonBlocking {
    fn attempt<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    fn swap(word: &W, old: u64, new: u64) -> bool {
        // A locked instruction of the paper's processor orders everything.
        word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The `sl` variant: one global spin lock around each attempt, and no read-modify-writes inside.
#[derive(Debug, Default)]
pub struct SpinLocked<W> {
    lock: SpinLock<W>,
}

impl<W: Pause + Default> Discipline<W> for SpinLocked<W> {
    fn attempt<R>(&self, body: impl FnOnce() -> R) -> R {
        self.lock.hold(body)
    }

    fn swap(word: &W, old: u64, new: u64) -> bool {
        // Relaxed: the lock orders these accesses, and a thread that reads without the lock only uses the value as a
        // hint.
        let unchanged = word.load(Ordering::Relaxed) == old;
        if unchanged {
            word.store(new, Ordering::Relaxed);
        }
        unchanged
    }
}
