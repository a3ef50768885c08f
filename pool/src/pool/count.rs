//! Counting, and asking about a pointer.

use core::ptr::NonNull;

use super::Pool;
use crate::chunk::Chunk;
use crate::error::FreeError;
use crate::lane::Lane;
use crate::source::ChunkSource;
use crate::sync::{Ordering, Word};

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Returns the number of objects in the pool, however they are held.
    ///
    /// The number is exact when nothing else runs, and approximate otherwise. What [`Local`](crate::Local)s keep is not
    /// counted, except that of more than 32 locals at a time. Reads every word: O(capacity / 64).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let _one = pool.alloc_box(1).unwrap();
    /// assert_eq!(pool.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        let with_memory = self.table.newest_first().filter(|chunk| !chunk.memory().is_null());
        let claimed: usize = with_memory.map(Chunk::claimed_in_all).sum();
        claimed.saturating_sub(self.kept())
    }

    /// Returns the number of slots that locals keep.
    pub(super) fn kept(&self) -> usize {
        self.lanes.iter().map(Lane::kept).sum()
    }

    /// Returns whether there is no object: see [`len`](Self::len), also for the cost.
    ///
    /// ```
    /// assert!(nbbs_pool::Pool::<u32>::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots for which there is memory now. Cost: one load.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().chunk_size(100).reserve(1));
    /// assert_eq!(pool.capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        // Relaxed: a count.
        self.table.capacity.load(Ordering::Relaxed) as usize
    }

    /// Returns the most slots that the pool may ever have: [`Config::limit`](crate::Config::limit).
    ///
    /// ```
    /// assert_eq!(nbbs_pool::Pool::<u32>::new().max_len(), usize::MAX);
    /// ```
    #[must_use]
    pub fn max_len(&self) -> usize {
        self.config.max_len()
    }

    /// Returns whether an object that was allocated by pointer is at `object`.
    ///
    /// It is `false` for an object that a [`PoolBox`](crate::PoolBox) owns, and for any other address. Cost: O(1) on
    /// average over the chunks, O(log chunks) for the oldest ones and for addresses of no chunk; no read-modify-write.
    ///
    /// ```
    /// use std::ptr::NonNull;
    ///
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc(1).unwrap();
    /// assert!(pool.is_valid(one));
    /// assert!(!pool.is_valid(NonNull::from(&1)));
    /// pool.free(one).unwrap();
    /// assert!(!pool.is_valid(one));
    /// ```
    #[must_use]
    pub fn is_valid(&self, object: NonNull<T>) -> bool {
        self.locate_live(object).is_ok()
    }

    /// Finds the chunk, and its slot, of an object that was allocated by pointer.
    pub(crate) fn locate_live(
        &self,
        object: NonNull<T>,
    ) -> Result<(&Chunk<T, W>, usize), FreeError> {
        let (chunk, slot) = self.locate(object)?;
        // The chunk may have got other memory since the address was looked up. It stays while an object is live there,
        // so it is checked after that is known.
        // SAFETY: `locate` returns a slot that the chunk has.
        let is_live = unsafe { chunk.is_live(slot) };
        if is_live && chunk.address(slot) == Some(object) {
            Ok((chunk, slot))
        } else {
            Err(FreeError::NotAllocated { address: object.as_ptr() as usize })
        }
    }

    /// Finds the chunk, and its slot, at an address.
    fn locate(&self, object: NonNull<T>) -> Result<(&Chunk<T, W>, usize), FreeError> {
        let address = object.as_ptr() as usize;
        let foreign = || FreeError::Foreign { address, chunks: self.table.count() };
        let chunk = self.table.find(address, self.chunk_bytes()).ok_or_else(foreign)?;
        let stride = Chunk::<T, W>::STRIDE;
        // The memory may have gone since. Then any offset will do, and the live bit decides.
        let offset = address.wrapping_sub(chunk.memory() as usize);
        let slot = offset / stride;
        if slot >= chunk.slots() {
            return Err(foreign());
        }
        if !offset.is_multiple_of(stride) {
            return Err(FreeError::Misaligned { address, slot: address - offset % stride });
        }
        Ok((chunk, slot))
    }
}
