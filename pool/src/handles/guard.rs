//! A reference that keeps its object alive.

use core::fmt;
use core::ops::Deref;

use super::{destroy, state};
use crate::chunk::Chunk;
use crate::sync::{AtomicU64, Word};

/// An object of [`Handles`](super::Handles) that stays as long as the guard does. If it is removed in the meantime, the
/// last guard drops it.
///
/// ```
/// let numbers = nbbs_pool::Handles::<u32>::new();
/// let seven = numbers.insert(7)?;
/// let guard = numbers.get(seven).unwrap();
/// assert_eq!(*guard, 7);
/// # Ok::<(), nbbs_pool::Full<u32>>(())
/// ```
pub struct Guard<'a, T, W: Word = AtomicU64> {
    chunk: &'a Chunk<T, W>,
    slot: usize,
    word: &'a W,
}

// SAFETY: a guard lends the object to its holder, and may be the one to drop it.
unsafe impl<T: Send + Sync, W: Word + Sync> Send for Guard<'_, T, W> {}
// SAFETY: a shared guard lends the object.
unsafe impl<T: Sync, W: Word + Sync> Sync for Guard<'_, T, W> {}

impl<'a, T, W: Word> Guard<'a, T, W> {
    /// # Safety
    /// `word` is the state of the slot, and has been pinned for this guard.
    pub(super) unsafe fn new(chunk: &'a Chunk<T, W>, slot: usize, word: &'a W) -> Self {
        Self { chunk, slot, word }
    }
}

impl<T, W: Word> Deref for Guard<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the slot is claimed for the object, which is not destroyed before the guard goes.
        let object = unsafe { self.chunk.object(self.slot) };
        // SAFETY: as above; the object was complete when it was pinned, and nobody gets it by `&mut`.
        unsafe { object.as_ref() }
    }
}

impl<T, W: Word> Drop for Guard<'_, T, W> {
    fn drop(&mut self) {
        if state::unpin(self.word) {
            // SAFETY: the object has ended, and this was the last guard.
            unsafe { destroy(self.chunk, self.slot, self.word) };
        }
    }
}

impl<T: fmt::Debug, W: Word> fmt::Debug for Guard<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
