//! Iterating over objects, clearing the pool, and its end.

use core::fmt;
use core::mem::{forget, needs_drop};
use core::ptr::NonNull;

use super::Pool;
use crate::chunk::{Chunk, Hold, first_slot};
use crate::source::ChunkSource;
use crate::sync::Word;
use crate::table::Table;

/// An iterator over the objects that were allocated by pointer: see [`Pool::iter`].
///
/// ```
/// let pool = nbbs_pool::Pool::<u32>::new();
/// pool.alloc_batch(0..3, |each| _ = nbbs_pool::PoolBox::leak(each))?;
/// // SAFETY: nobody else has the pointers.
/// let sum: u32 = pool.iter().map(|each| unsafe { each.read() }).sum();
/// assert_eq!(sum, 3);
/// # Ok::<(), nbbs_pool::Full<u32>>(())
/// ```
pub struct Pointers<'a, T, W: Word> {
    table: &'a Table<T, W>,
    chunk: usize,
    word: usize,
    slots: u64,
}

// SAFETY: `iter_mut` lends the objects through it, by `&mut`, so they have to be Send. Of the pool it only reads words
// and pointers, which are Sync if W is.
unsafe impl<T: Send, W: Word + Sync> Send for Pointers<'_, T, W> {}
// SAFETY: a shared one yields nothing.
unsafe impl<T: Send, W: Word + Sync> Sync for Pointers<'_, T, W> {}

impl<T, W: Word> Iterator for Pointers<'_, T, W> {
    type Item = NonNull<T>;

    fn next(&mut self) -> Option<NonNull<T>> {
        while let Some((chunk, slot)) = self.next_slot() {
            let object = chunk.address(slot);
            // The chunk may have been withdrawn since its word was read, and have come back elsewhere. It stays while an
            // object is live there.
            // SAFETY: an object was live there, so the chunk has the slot.
            let is_live = object.is_some() && unsafe { chunk.is_live(slot) };
            if is_live && chunk.address(slot) == object {
                return object;
            }
        }
        None
    }
}

impl<'a, T, W: Word> Pointers<'a, T, W> {
    /// Returns the next slot where an object was live when its word was read.
    fn next_slot(&mut self) -> Option<(&'a Chunk<T, W>, usize)> {
        while self.slots == 0 {
            let chunk = self.table.get(self.chunk)?;
            if self.word == chunk.words() {
                (self.chunk, self.word) = (self.chunk + 1, 0);
            } else {
                // SAFETY: less than `words()`, which it reaches from 0 in steps of 1.
                self.slots = unsafe { chunk.live_slots(self.word) };
                self.word += 1;
            }
        }
        let slot = first_slot(self.word - 1, self.slots);
        self.slots &= self.slots - 1;
        Some((self.table.get(self.chunk)?, slot))
    }
}

impl<T, W: Word> fmt::Debug for Pointers<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pointers").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Iterates over the objects that were allocated by pointer, in no order. Objects that are allocated or freed in
    /// the meantime may or may not be included. Cost: two loads for each 64 slots, and five for each object.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc(1).unwrap();
    /// assert!(pool.iter().eq([one]));
    /// ```
    #[must_use]
    pub fn iter(&self) -> Pointers<'_, T, W> {
        Pointers { table: &self.table, chunk: 0, word: 0, slots: 0 }
    }

    /// Iterates over the objects that were allocated by pointer, in no order.
    ///
    /// ```
    /// let mut pool = nbbs_pool::Pool::<u32>::new();
    /// pool.alloc(1).unwrap();
    /// pool.iter_mut().for_each(|each| *each += 1);
    /// assert_eq!(pool.iter_mut().next(), Some(&mut 2));
    /// ```
    ///
    /// Objects that may not go to another thread are not lent to one:
    ///
    /// ```compile_fail,E0277
    /// let mut pool = nbbs_pool::Pool::<std::rc::Rc<u32>>::new();
    /// let mut all = pool.iter_mut();
    /// std::thread::scope(|scope| _ = scope.spawn(move || all.next().cloned()));
    /// ```
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: each of them is complete, comes once, and belongs only to the pool, which is borrowed for as long as
        // the reference. What is returned is Send only if `Pointers` is, and so T.
        self.iter().map(|object| unsafe { &mut *object.as_ptr() })
    }

    /// Drops every object that was allocated by pointer. The chunks stay.
    ///
    /// If a destructor panics, the others still run. What a forgotten box, or a forgotten [`Local`](crate::Local), held
    /// is lost.
    ///
    /// ```
    /// let mut pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc(1).unwrap();
    /// pool.clear();
    /// assert!(pool.is_empty() && pool.capacity() > 0);
    /// assert!(pool.free(one).is_err());
    /// ```
    pub fn clear(&mut self) {
        /// Continues after a panic where it occurred.
        struct GoOn<'a, T, S: ChunkSource, W: Word>(&'a Pool<T, S, W>);
        impl<T, S: ChunkSource, W: Word> Drop for GoOn<'_, T, S, W> {
            fn drop(&mut self) {
                self.0.drop_live();
            }
        }
        let rest = GoOn(self);
        rest.0.drop_live();
        forget(rest);
    }

    /// Drops the live objects; each slot is free before a panic of its destructor gets through. Nobody else may be
    /// using the pool.
    fn drop_live(&self) {
        for chunk in self.table.newest_first() {
            for word in 0..chunk.words() {
                // SAFETY: less than `words()`.
                let mut slots = unsafe { chunk.live_slots(word) };
                while slots != 0 {
                    let slot = first_slot(word, slots);
                    slots &= slots - 1;
                    // SAFETY: an object is live there, so the chunk has the slot.
                    if unsafe { chunk.clear_live(slot) } {
                        // SAFETY: clearing the live bit made the object ours, for which the slot is claimed; this is
                        // its end.
                        let _hold = unsafe { Hold::of(chunk, slot) };
                        // SAFETY: as above.
                        let object = unsafe { chunk.object(slot) };
                        // SAFETY: as above; the slot is freed after it.
                        unsafe { object.drop_in_place() };
                    }
                }
            }
        }
    }
}

impl<T, S: ChunkSource, W: Word> Drop for Pool<T, S, W> {
    fn drop(&mut self) {
        /// Gives the memory back, even if a destructor panics.
        struct Dispose<'a, T, S: ChunkSource, W: Word>(&'a mut Pool<T, S, W>);
        impl<T, S: ChunkSource, W: Word> Drop for Dispose<'_, T, S, W> {
            fn drop(&mut self) {
                let Pool { table, source, extra, .. } = &mut *self.0;
                table.dispose(*extra, source);
            }
        }
        let pool = Dispose(self);
        if needs_drop::<T>() {
            pool.0.clear();
        }
    }
}
