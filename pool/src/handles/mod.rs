//! Objects by generational handle.
//!
//! ```text
//! key      the bits of a handle          guard   a reference that keeps its object
//! state    the word of a slot            mod     insert, get, remove
//! ```

mod guard;
mod key;
mod state;

use core::fmt;
use core::marker::PhantomData;
use core::mem::forget;

use crate::chunk::{Chunk, Hold};
use crate::config::Config;
use crate::error::{Full, HandleError};
use crate::lane::thread_number;
use crate::pool::Pool;
use crate::source::{ChunkSource, Global};
use crate::sync::{AtomicU64, Ordering, Word};
pub use guard::Guard;
pub use key::{Handle, Key, SmallHandle};
use state::State;

/// A collection of objects that are named by handles: a slot's number, and the generation of the object in it.
///
/// A handle is a number that may be copied, stored and sent anywhere. It is refused once its object has been removed,
/// even when the slot has another object by then. The generation tells the objects apart, until it wraps around, after
/// 2^32 objects in the same slot for a [`Handle`], and 2^12 for a [`SmallHandle`]. Everything here is safe: a [`Guard`]
/// keeps its object even if that is removed in the meantime.
///
/// It costs 64 bits per slot more than a [`Pool`]; these stay when the pool shrinks.
///
/// ```
/// use nbbs_pool::{HandleError, Handles};
///
/// let names = Handles::<&str>::new();
/// let first = names.insert("first")?;
/// assert_eq!(names.get(first).as_deref(), Ok(&"first"));
/// assert_eq!(names.remove(first), Ok(()));
/// let second = names.insert("second")?; // in the same slot
/// assert!(matches!(names.get(first), Err(HandleError::Stale { .. })));
/// # Ok::<(), nbbs_pool::Full<&str>>(())
/// ```
pub struct Handles<T, K: Key = Handle, S: ChunkSource = Global, W: Word = AtomicU64> {
    pool: Pool<T, S, W>,
    keys: PhantomData<fn() -> K>,
}

// SAFETY: as for the pool; guards also lend an object to several threads, so it has to be Sync.
unsafe impl<T: Send + Sync, K: Key, S: ChunkSource + Sync, W: Word + Sync> Sync
    for Handles<T, K, S, W>
{
}

#[cfg(feature = "alloc")]
impl<T, K: Key> Handles<T, K> {
    /// Creates a collection that grows by the usual [`Config`], from the global allocator.
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// assert!(numbers.pool().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_source(Global, Config::new())
    }
}

#[cfg(feature = "alloc")]
impl<T, K: Key> Default for Handles<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Key, S: ChunkSource, W: Word> Handles<T, K, S, W> {
    /// Creates a collection that grows as `config` says, from `source`, to no more slots than a handle can name.
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Handles, SmallHandle};
    ///
    /// let numbers = Handles::<u32, SmallHandle>::with_source(Global, Config::new().limit(2));
    /// assert!(numbers.insert(1).is_ok() && numbers.insert(2).is_ok());
    /// assert_eq!(numbers.insert(3).unwrap_err().value, 3);
    /// ```
    #[must_use]
    pub fn with_source(source: S, config: Config) -> Self {
        let limit = config.max_len().min(K::MAX_SLOTS);
        Self { pool: Pool::with_states(source, config.limit(limit)), keys: PhantomData }
    }

    /// Returns the underlying pool, for counting, growing and shrinking. Objects that are allocated from it directly
    /// have no handles.
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// numbers.pool().reserve(1000)?;
    /// assert_eq!(numbers.pool().capacity(), 1024);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub fn pool(&self) -> &Pool<T, S, W> {
        &self.pool
    }

    /// Inserts an object and returns its handle. Cost: one read-modify-write.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow. The error has the value.
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// let seven = numbers.insert(7)?;
    /// assert_eq!(*numbers.get(seven).unwrap(), 7);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn insert(&self, value: T) -> Result<K, Full<T>> {
        let (chunk, slot) = match self.pool.claim_slot(thread_number()) {
            Ok(claimed) => claimed,
            Err(reason) => return Err(Full { value, reason }),
        };
        // SAFETY: the slot is claimed.
        let object = unsafe { chunk.object(slot) };
        // SAFETY: so it is memory for a T that nobody else has.
        unsafe { object.write(value) };
        let Some(word) = chunk.state(slot) else { unreachable!("chunks here have states") };
        // Relaxed: the claim acquired what the slot's last holder wrote.
        let next = State(word.load(Ordering::Relaxed)).occupied();
        // Release pairs with the Acquire in `pin` and `end`: the object is complete.
        word.store(next.0, Ordering::Release);
        Ok(K::new(self.index(chunk, slot), next.generation()))
    }

    /// Returns a guard of the object: while the guard lives, so does the object. Cost: two read-modify-writes, one of
    /// them when the guard goes.
    ///
    /// # Errors
    /// The object has been removed, or was never there.
    ///
    /// ```
    /// use nbbs_pool::{HandleError, Handles};
    ///
    /// let numbers = Handles::<u32>::new();
    /// let seven = numbers.insert(7)?;
    /// assert_eq!(*numbers.get(seven).unwrap(), 7);
    /// numbers.remove(seven).unwrap();
    /// assert!(matches!(numbers.get(seven), Err(HandleError::Stale { .. })));
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn get(&self, handle: K) -> Result<Guard<'_, T, W>, HandleError> {
        let (chunk, slot, word) = self.locate(handle)?;
        state::pin(word, |state| check(handle, state))?;
        // SAFETY: the state has been pinned, and the guard unpins it.
        Ok(unsafe { Guard::new(chunk, slot, word) })
    }

    /// Returns whether the handle's object is there. Cost: no read-modify-write.
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// let seven = numbers.insert(7)?;
    /// numbers.remove(seven).unwrap();
    /// assert!(!numbers.contains(seven));
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[must_use]
    pub fn contains(&self, handle: K) -> bool {
        self.locate(handle).is_ok_and(|(_, _, word)| {
            // Relaxed: an answer that may be out of date as soon as it is given.
            check(handle, State(word.load(Ordering::Relaxed))).is_ok()
        })
    }

    /// Removes the object: from now on the handle is refused. The object is dropped and its slot freed now or, if there
    /// are guards, when the last of them goes. Of several callers that remove it, one succeeds. Cost: two
    /// read-modify-writes, one of them when the slot is freed.
    ///
    /// # Errors
    /// The object has been removed, or was never there.
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// let seven = numbers.insert(7)?;
    /// let guard = numbers.get(seven).unwrap();
    /// assert_eq!(numbers.remove(seven), Ok(()));
    /// assert_eq!(*guard, 7);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn remove(&self, handle: K) -> Result<(), HandleError> {
        let (chunk, slot, word) = self.locate(handle)?;
        if state::end(word, |state| check(handle, state))? {
            // SAFETY: the object has ended, and nobody has pinned it.
            unsafe { destroy(chunk, slot, word) };
        }
        Ok(())
    }

    /// Iterates over the objects with their handles, in no order. Each object is kept while its guard lives. Objects
    /// that are inserted or removed in the meantime may or may not be included. Cost: a load for each slot, and for an
    /// object that of [`Handles::get`].
    ///
    /// ```
    /// let numbers = nbbs_pool::Handles::<u32>::new();
    /// let seven = numbers.insert(7)?;
    /// let removed = numbers.insert(8)?;
    /// numbers.remove(removed).unwrap();
    /// let found: Vec<_> = numbers.iter().map(|(handle, number)| (handle, *number)).collect();
    /// assert_eq!(found, [(seven, 7)]);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (K, Guard<'_, T, W>)> {
        self.states().filter_map(|(chunk, slot, word)| {
            // Relaxed: `get` looks again.
            let generation = State(word.load(Ordering::Relaxed)).generation();
            let handle = K::new(self.index(chunk, slot), generation);
            self.get(handle).ok().map(|guard| (handle, guard))
        })
    }

    /// Iterates over every slot and its state.
    fn states(&self) -> impl Iterator<Item = (&Chunk<T, W>, usize, &W)> {
        self.pool.table().newest_first().flat_map(|chunk| {
            (0..chunk.slots()).filter_map(move |slot| Some((chunk, slot, chunk.state(slot)?)))
        })
    }

    /// Returns the number by which handles name a slot.
    fn index(&self, chunk: &Chunk<T, W>, slot: usize) -> usize {
        chunk.number() * self.pool.config().chunk_size + slot
    }

    fn locate(&self, handle: K) -> Result<(&Chunk<T, W>, usize, &W), HandleError> {
        let (index, size) = (handle.index(), self.pool.config().chunk_size);
        let slot = index % size;
        let chunk = self.pool.table().get(index / size).filter(|chunk| slot < chunk.slots());
        let found = chunk.and_then(|chunk| Some((chunk, slot, chunk.state(slot)?)));
        found.ok_or_else(|| HandleError::OutOfRange { index, capacity: self.pool.capacity() })
    }
}

/// Checks that the handle's object is the one that the state describes.
fn check<K: Key>(handle: K, state: State) -> Result<(), HandleError> {
    let (generation, current) = (handle.generation(), state.generation());
    if state.is_occupied() && K::truncate(current) == generation {
        Ok(())
    } else {
        Err(HandleError::Stale { generation, current: K::truncate(current) })
    }
}

/// Drops the object and frees its slot, even if its destructor panics.
///
/// # Safety
/// The object at the slot of the chunk is complete and has ended, nobody has pinned it, and nobody else destroys it.
unsafe fn destroy<T, W: Word>(chunk: &Chunk<T, W>, slot: usize, word: &W) {
    /// Makes the slot ready for the next object.
    struct Next<'w, W: Word>(&'w W);
    impl<W: Word> Drop for Next<'_, W> {
        fn drop(&mut self) {
            // Both Relaxed: the state is ours, and `Hold` releases it with the slot.
            let state = State(self.0.load(Ordering::Relaxed));
            self.0.store(state.free().0, Ordering::Relaxed);
        }
    }
    // SAFETY: the slot is claimed for the object, whose end this is.
    let _hold = unsafe { Hold::of(chunk, slot) };
    let _next = Next(word);
    // SAFETY: the slot is claimed.
    let object = unsafe { chunk.object(slot) };
    // SAFETY: the contract.
    unsafe { object.drop_in_place() };
}

impl<T, K: Key, S: ChunkSource, W: Word> Drop for Handles<T, K, S, W> {
    fn drop(&mut self) {
        /// Continues after a panic where it occurred.
        struct GoOn<'a, T, K: Key, S: ChunkSource, W: Word>(&'a Handles<T, K, S, W>);
        impl<T, K: Key, S: ChunkSource, W: Word> Drop for GoOn<'_, T, K, S, W> {
            fn drop(&mut self) {
                self.0.remove_all();
            }
        }
        let rest = GoOn(self);
        rest.0.remove_all();
        forget(rest);
    }
}

impl<T, K: Key, S: ChunkSource, W: Word> Handles<T, K, S, W> {
    /// Removes every object.
    fn remove_all(&self) {
        for (chunk, slot, word) in self.states() {
            let occupied = |state: State| state.is_occupied().then_some(()).ok_or(());
            if state::end(word, occupied) == Ok(true) {
                // SAFETY: the object has ended, and nobody has pinned it.
                unsafe { destroy(chunk, slot, word) };
            }
        }
    }
}

impl<T, K: Key, S: ChunkSource, W: Word> fmt::Debug for Handles<T, K, S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").field("pool", &self.pool).finish()
    }
}
