//! Slots without objects, and a byte for each: for callers that manage objects themselves, such as a C interface.

use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;

use crate::chunk::{Chunk, Extra};
use crate::config::Config;
use crate::error::Exhausted;
use crate::lane::LANES;
use crate::pool::{Claimed, Pool};
use crate::source::ChunkSource;
use crate::sync::AtomicU64;
use crate::table::Table;

/// The slots of a chunk, in words of 64. The chunk's bookkeeping stays as long as the pool; its memory may go when
/// no slot is claimed.
///
/// It may go to any thread, whatever the objects are: it gives addresses, and whoever reads an object there answers for
/// it.
///
/// ```
/// use nbbs_pool::{Config, Global, Pool, Slots};
///
/// let pool = Pool::<u32>::with_marks(Global, Config::new().chunk_size(100));
/// pool.reserve(1)?;
/// let slots: Slots<'_, u32> = pool.all_slots().next().unwrap();
/// assert_eq!((slots.len(), slots.claimed(0)), (100, 0));
/// # Ok::<(), nbbs_pool::Exhausted>(())
/// ```
pub struct Slots<'a, T>(&'a Chunk<T, AtomicU64>);

// SAFETY: what is safe here reads the chunk's words, pointers and marks, which are atomic, and what is beside them does
// not change. No object is reached: `release` is unsafe, and only for slots without one.
unsafe impl<T> Send for Slots<'_, T> {}
// SAFETY: as above; it is a copy of a shared reference.
unsafe impl<T> Sync for Slots<'_, T> {}

impl<T, S: ChunkSource> Pool<T, S> {
    /// Creates a pool with a byte for each slot, 0 at first, which the pool never looks at.
    /// [`claim_slot_on`](Self::claim_slot_on) and [`claim_slots_on`](Self::claim_slots_on) claim its slots. Objects may
    /// be allocated in it, too, and do not use their byte.
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Pool};
    /// use std::sync::atomic::Ordering;
    ///
    /// let pool = Pool::<u32>::with_marks(Global, Config::new());
    /// let (slots, word, bits) = pool.claim_slots_on(0, 3)?;
    /// assert_eq!(bits.count_ones(), 3);
    /// slots.marks()[word * 64].store(7, Ordering::Relaxed);
    /// // SAFETY: claimed above, and nobody has an object there.
    /// unsafe { slots.release(word, bits) };
    /// assert!(pool.is_empty());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub const fn with_marks(source: S, config: Config) -> Self {
        Self::of(Table::new(), source, config, Extra::Marks)
    }

    /// Claims a slot for the caller, by one read-modify-write, and returns its number in the chunk. `lane` is as for
    /// [`alloc_on`](Self::alloc_on).
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, slot) = pool.claim_slot_on(0)?;
    /// assert!(slot < slots.len());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[inline]
    pub fn claim_slot_on(&self, lane: usize) -> Result<(Slots<'_, T>, usize), Exhausted> {
        self.claim_slot(lane).map(|(chunk, slot)| (Slots(chunk), slot))
    }

    /// Claims up to `most` free slots of one word for the caller, by one read-modify-write, and returns the word's
    /// number and the slots' bits. See [`with_marks`](Self::with_marks) for an example.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new().limit(3));
    /// let (slots, word, bits) = pool.claim_slots_on(0, 64)?;
    /// assert_eq!((slots.len(), word, bits), (3, 0, 0b111));
    /// assert!(pool.claim_slots_on(0, 1).is_err());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    pub fn claim_slots_on(
        &self,
        lane: usize,
        most: u32,
    ) -> Result<(Slots<'_, T>, usize, u64), Exhausted> {
        let number = lane % LANES;
        let lane = &self.lanes()[number];
        let from = lane.cursor().unwrap_or_else(|| self.home(number));
        let Claimed { chunk, word, slots } = self.claim_for(lane, from, most.max(1))?;
        Ok((Slots(chunk), word, slots))
    }

    /// Returns the chunk whose memory contains an address. Cost: O(1) on average over the chunks, O(log chunks) for the
    /// oldest ones and for addresses of no chunk; no read-modify-write.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, _) = pool.claim_slot_on(0)?;
    /// assert_eq!(pool.slots_at(slots.begin() as usize).map(|found| found.len()), Some(1024));
    /// assert!(pool.slots_at(0).is_none());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn slots_at(&self, address: usize) -> Option<Slots<'_, T>> {
        self.table().find(address, self.chunk_bytes()).map(Slots)
    }

    /// Iterates over all chunks, with memory or without.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// pool.reserve(2000)?;
    /// assert_eq!(pool.all_slots().count(), 2);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    pub fn all_slots(&self) -> impl Iterator<Item = Slots<'_, T>> {
        self.table().newest_first().map(Slots)
    }
}

impl<'a, T> Slots<'a, T> {
    /// Returns the address of slot 0; null while there is no memory.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, slot) = pool.claim_slot_on(0)?;
    /// // SAFETY: the slot was claimed above.
    /// unsafe { slots.begin().add(slot).write(7) };
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn begin(self) -> *mut T {
        self.0.memory().cast()
    }

    /// Returns how many slots there are.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, _) = pool.claim_slot_on(0)?;
    /// assert_eq!(slots.len(), 1024);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(self) -> usize {
        self.0.slots()
    }

    /// Returns the caller's byte for each slot; none unless the pool was made [with them](Pool::with_marks).
    ///
    /// ```
    /// # use std::sync::atomic::Ordering;
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, slot) = pool.claim_slot_on(0)?;
    /// assert_eq!(slots.marks().len(), slots.len());
    /// assert_eq!(slots.marks()[slot].swap(7, Ordering::Relaxed), 0);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn marks(self) -> &'a [AtomicU8] {
        self.0.marks()
    }

    /// Returns the slots of a word that were claimed at some time during the call.
    ///
    /// # Panics
    /// If there is no such word.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, word, bits) = pool.claim_slots_on(0, 3)?;
    /// assert_eq!(slots.claimed(word), bits);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    pub fn claimed(self, word: usize) -> u64 {
        assert!(word < self.0.words(), "word {word} of {}", self.0.words());
        // SAFETY: checked above.
        unsafe { self.0.claimed_slots(word) }
    }

    /// The chunk as a pointer, for callers that keep it where a type cannot stand, such as in a structure of C.
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Pool, Slots};
    ///
    /// let pool = Pool::<u32>::with_marks(Global, Config::new());
    /// let (slots, slot) = pool.claim_slot_on(0)?;
    /// let name = slots.into_raw();
    /// // SAFETY: the pool is there.
    /// unsafe { Slots::<u32>::from_raw(name).release_slot(slot) };
    /// assert!(pool.is_empty());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<c_void> {
        NonNull::from(self.0).cast()
    }

    /// The chunk that [`into_raw`](Self::into_raw) made a pointer of. See there for an example.
    ///
    /// # Safety
    /// The pointer comes from there, of a pool with objects of the same type, which outlives `'a`.
    ///
    /// ```
    /// use nbbs_pool::{Config, Global, Pool, Slots};
    ///
    /// let pool = Pool::<u32>::with_marks(Global, Config::new());
    /// let (slots, _) = pool.claim_slot_on(0)?;
    /// // SAFETY: the pool is there.
    /// let same = unsafe { Slots::<u32>::from_raw(slots.into_raw()) };
    /// assert_eq!(same.begin(), slots.begin());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub unsafe fn from_raw(name: NonNull<c_void>) -> Self {
        // SAFETY: by the contract this points to a chunk of that type, which stays until its pool is dropped, so not
        // within 'a.
        Self(unsafe { name.cast().as_ref() })
    }

    /// Gives claimed slots of a word back, by one read-modify-write.
    ///
    /// # Safety
    /// The slots were claimed for the caller, or handed over to it, and nobody uses them from now on; no object is in
    /// them.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, word, bits) = pool.claim_slots_on(0, 3)?;
    /// // SAFETY: claimed above, and nobody has an object there.
    /// unsafe { slots.release(word, bits) };
    /// assert_eq!(slots.claimed(word), 0);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[inline]
    pub unsafe fn release(self, word: usize, bits: u64) {
        // SAFETY: by the contract.
        unsafe { self.0.release(word, bits) };
    }

    /// Gives a single claimed slot back, as [`release`](Self::release) does.
    ///
    /// # Safety
    /// That of [`release`](Self::release).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::with_marks(nbbs_pool::Global, nbbs_pool::Config::new());
    /// let (slots, slot) = pool.claim_slot_on(0)?;
    /// // SAFETY: claimed above, and nobody has an object there.
    /// unsafe { slots.release_slot(slot) };
    /// assert!(pool.is_empty());
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    #[inline]
    pub unsafe fn release_slot(self, slot: usize) {
        // SAFETY: by the contract.
        unsafe { self.0.release_slot(slot) };
    }
}

impl<T> Clone for Slots<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slots<'_, T> {}

impl<T> fmt::Debug for Slots<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("number", &self.0.number()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;

    use crate::{Config, Global, Handles, Pool};

    /// What it has for each slot are its own words, by which it tells who may drop what.
    #[test]
    fn a_pool_of_handles_shows_no_marks() {
        let handles = Handles::<String>::new();
        handles.insert("here".into()).unwrap();
        let chunks: Vec<_> = handles.pool().all_slots().collect();
        assert!(!chunks.is_empty() && chunks.iter().all(|chunk| chunk.marks().is_empty()));
    }

    /// Locals write the marks of their words, and shall not wait for each other's lines.
    #[test]
    fn the_marks_of_a_word_are_a_cache_line() {
        for slots in [1, 64, 70, 1000] {
            let pool = Pool::<u8>::with_marks(Global, Config::new().chunk_size(slots));
            pool.reserve(3 * slots).unwrap();
            for chunk in pool.all_slots() {
                assert_eq!(chunk.marks().as_ptr() as usize % 64, 0, "{slots} slots");
            }
        }
    }
}
