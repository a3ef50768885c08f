//! Growing and shrinking.
//!
//! A chunk goes through these states, and every step is one change of one word or pointer:
//!
//! ```text
//! (no chunk) -append-> without memory, all slots claimed -install-> with memory, all slots claimed
//!                                 ^                                    |  ^
//!                              uninstall                             open close: every slot claimed,
//!                                 |                                    v  |      word by word
//!                                 +------ all slots claimed <------- in use
//! ```
//!
//! The caller that has claimed all slots, or installed the memory, has the chunk alone. Other threads that look at its
//! bitmaps find every slot claimed; the bitmaps stay until the pool is dropped.

use super::Pool;
use crate::chunk::Chunk;
use crate::error::Exhausted;
use crate::source::ChunkSource;
use crate::sync::{Ordering, Word, update};

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Adds a chunk ahead of demand, and returns how many slots there are now.
    ///
    /// If several threads do so at the same time, one chunk may serve them all. Cost: a call of the source, a few
    /// read-modify-writes, and a store for each 64 slots.
    ///
    /// # Errors
    /// [`Exhausted::Slots`]: the pool has all the slots that it may have, or another call has the missing chunk in hand;
    /// [`Exhausted::Memory`]: the source has no memory for a chunk.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().chunk_size(100).limit(150));
    /// assert_eq!(pool.grow(), Ok(100));
    /// assert_eq!(pool.grow(), Ok(150));
    /// let refused = pool.grow().unwrap_err();
    /// assert_eq!(refused.to_string(), "151 slots are asked for, and the pool may have 150");
    /// ```
    pub fn grow(&self) -> Result<usize, Exhausted> {
        self.add_chunk_ahead()?;
        Ok(self.capacity())
    }

    /// Adds chunks until there are `slots` slots, free or not. Cost: for each chunk that of [`grow`](Self::grow).
    ///
    /// # Errors
    /// [`Exhausted::Slots`]: the pool [can never have](crate::Config::check_slots) so many, and nothing has changed.
    /// [`Exhausted::Limit`]: a chunk that is missing is in the hands of another call, or of a thread that has died in one.
    /// [`Exhausted::Memory`]: the source has no memory for one of the chunks. Those added before stay, since others may
    /// have allocated from them; [`shrink`](Self::shrink) gives them back.
    ///
    /// ```
    /// use nbbs_pool::{Config, Exhausted, Pool};
    ///
    /// let pool = Pool::<u32>::with_config(Config::new().limit(6000));
    /// pool.reserve(5000)?;
    /// assert_eq!(pool.capacity(), 5 * 1024);
    /// assert_eq!(pool.reserve(7000), Err(Exhausted::Slots { slots: 7000, limit: 6000 }));
    /// assert_eq!(pool.capacity(), 5 * 1024);
    /// # Ok::<(), Exhausted>(())
    /// ```
    pub fn reserve(&self, slots: usize) -> Result<(), Exhausted> {
        self.config.check_slots(slots, Chunk::<T, W>::STRIDE)?;
        while self.capacity() < slots {
            match self.add_chunk() {
                // Others have added the chunks that were missing.
                Err(Exhausted::Limit { .. }) if self.capacity() >= slots => break,
                added => _ = added?,
            }
        }
        Ok(())
    }

    /// Adds chunks until at least as many slots are free as [`Config::ahead`](crate::Config::ahead) says. A helper
    /// thread should call it now and then; nobody waits for it.
    ///
    /// # Errors
    /// Those of [`grow`](Self::grow).
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::{thread, time::Duration};
    ///
    /// let config = Config::new().chunk_size(64).ahead(32).by_helper();
    /// let pool = Pool::<u32>::with_config(config);
    /// let done = AtomicBool::new(false);
    /// thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         while !done.load(Ordering::Relaxed) {
    ///             pool.tend().expect("there is memory");
    ///             thread::park_timeout(Duration::from_millis(1));
    ///         }
    ///     });
    ///     let all: Vec<_> = (0..1000).map(|n| pool.alloc_box(n).unwrap()).collect();
    ///     assert_eq!(*all[999], 999);
    ///     done.store(true, Ordering::Relaxed);
    /// });
    /// ```
    pub fn tend(&self) -> Result<(), Exhausted> {
        while self.is_low() {
            self.add_chunk_ahead()?;
        }
        Ok(())
    }

    /// Returns whether fewer slots are free than [`Config::ahead`](crate::Config::ahead) says. Looks at the newest
    /// chunks first, and no further than it must. Cost: a load for each 64 slots that it looks at.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let config = Config::new().chunk_size(64).reserve(64).ahead(32).by_helper();
    /// let pool = Pool::<u32>::with_config(config);
    /// let all: Vec<_> = (0..33).map(|n| pool.alloc_box(n).unwrap()).collect();
    /// assert!(pool.is_low()); // 31 are free
    /// pool.tend().unwrap();
    /// assert!(!pool.is_low());
    /// ```
    #[must_use]
    pub fn is_low(&self) -> bool {
        let mut free = 0;
        for chunk in self.table.newest_first() {
            for word in 0..chunk.words() {
                if free >= self.config.ahead {
                    return false;
                }
                // SAFETY: less than `words()`.
                let claimed = unsafe { chunk.claimed_slots(word) };
                free += (chunk.real(word) & !claimed).count_ones() as usize;
            }
        }
        free < self.config.ahead
    }

    /// Gives chunks in which every slot is free back to the source, as long as the slots that the configuration
    /// [reserves](crate::Config::reserve) stay. Returns how many slots were given back.
    ///
    /// A slot that a [`Local`](crate::Local) keeps is not free. The bitmaps of a chunk stay, at 2 bits per slot, and
    /// serve the next chunk. Cost: a few read-modify-writes for each chunk, one for each 64 slots of those that are
    /// given back, and a call of the source.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// pool.reserve(3000)?;
    /// let one = pool.alloc_box(1).unwrap();
    /// assert_eq!(pool.shrink(), 2048);
    /// assert_eq!((pool.capacity(), *one), (1024, 1));
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    pub fn shrink(&self) -> usize {
        let closed = self.table.newest_first().filter(|chunk| {
            let goes = self.without(self.capacity(), chunk).is_some();
            goes && !chunk.memory().is_null() && self.withdraw(chunk)
        });
        closed.map(Chunk::slots).sum()
    }

    /// Returns the capacity without a chunk, unless that is less than what is reserved.
    fn without(&self, capacity: usize, chunk: &Chunk<T, W>) -> Option<usize> {
        capacity.checked_sub(chunk.slots()).filter(|&rest| rest >= self.config.reserved())
    }

    /// Gives the chunk's memory back if every slot is free.
    fn withdraw(&self, chunk: &Chunk<T, W>) -> bool {
        if !chunk.close() {
            return false;
        }
        // From here on every slot is ours. Relaxed: a count.
        let counted = update(&self.table.capacity, Ordering::Relaxed, |capacity| {
            self.without(capacity as usize, chunk).map(|rest| rest as u64)
        });
        if counted.is_none() {
            // Somebody else has shrunk the pool in the meantime, and this chunk must stay.
            // SAFETY: the slots are ours and empty, and the chunk still has its memory.
            unsafe { chunk.open() };
            return false;
        }
        self.table.strike(chunk, self.chunk_bytes());
        let layout = Chunk::<T, W>::memory_layout(chunk.slots());
        if let Some(layout) = layout {
            self.source.retire(layout);
        }
        // SAFETY: all slots are ours.
        let block = unsafe { chunk.uninstall() };
        // Before the source is called, which may take its time: meanwhile the chunk can get other memory.
        add(&self.table.without_memory, 1);
        if let (Some(block), Some(layout)) = (block, layout) {
            // SAFETY: `furnish` got the block from this source with this layout. All slots are ours and
            // empty, and the chunk no longer names the block, so nobody reaches it.
            unsafe { self.source.free(block, layout) };
        }
        true
    }

    /// Adds what an allocation needs, and what must be reserved. Returns a chunk that is new.
    pub(super) fn grow_for_demand(&self) -> Result<usize, Exhausted> {
        let number = self.add_chunk()?;
        // The reservation of a pool that was made in a constant expression.
        _ = self.reserve(self.config.reserved());
        Ok(number)
    }

    /// Adds a chunk although slots may be free: at the limit, that they are all in use is not the reason.
    fn add_chunk_ahead(&self) -> Result<(), Exhausted> {
        match self.add_chunk() {
            Ok(_) => Ok(()),
            Err(Exhausted::Limit { limit }) => {
                Err(Exhausted::Slots { slots: limit.saturating_add(1), limit })
            }
            Err(reason) => Err(reason),
        }
    }

    /// Gives memory to a chunk that has none, or to a new one. Returns its number.
    fn add_chunk(&self) -> Result<usize, Exhausted> {
        // Relaxed: a hint.
        if self.table.without_memory.load(Ordering::Relaxed) != 0 {
            let found = self.table.newest_first().filter(|chunk| chunk.memory().is_null()).last();
            if let Some(chunk) = found {
                return self.furnish(chunk);
            }
        }
        let number = self.table.count();
        let slots = self.config.slots_of(number);
        if slots == 0 {
            return Err(Exhausted::Limit { limit: self.config.max_len() });
        }
        let (chunk, is_new) = self.table.append(number, slots, self.extra, &self.source)?;
        if is_new {
            add(&self.table.without_memory, 1);
        }
        self.furnish(chunk)
    }

    /// Gives the chunk memory, unless somebody else has done so.
    fn furnish(&self, chunk: &Chunk<T, W>) -> Result<usize, Exhausted> {
        let layout = Chunk::<T, W>::memory_layout(chunk.slots()).ok_or(Exhausted::ENDLESS)?;
        let block = self.source.alloc(layout).ok_or(Exhausted::of(layout))?;
        // SAFETY: the block has that layout, and is ours.
        if unsafe { chunk.install(block) } {
            self.table.enlist(chunk, self.chunk_bytes());
            add(&self.table.capacity, chunk.slots() as i64);
            add(&self.table.without_memory, -1);
            // SAFETY: nobody has a slot of a chunk without memory; it has ours now, so its slots are ours.
            unsafe { chunk.open() };
        } else {
            // SAFETY: the block came from this source with this layout, and nobody else has seen it.
            unsafe { self.source.free(block, layout) };
        }
        Ok(chunk.number())
    }

    /// Returns the bytes of a full chunk's slots.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.config.chunk_size.saturating_mul(Chunk::<T, W>::STRIDE)
    }

    /// Returns the bytes of bookkeeping for each chunk of the usual size, without its slots.
    ///
    /// ```
    /// use nbbs_pool::{Config, Pool};
    ///
    /// let pool = Pool::<[u8; 48]>::with_config(Config::new().chunk_size(4096));
    /// assert!(pool.chunk_overhead() <= 4096 * 2 / 8 + 128); // 2 bits a slot, and a header
    /// ```
    #[must_use]
    pub fn chunk_overhead(&self) -> usize {
        let layout = Chunk::<T, W>::layout(self.config.chunk_size, self.extra);
        layout.map_or(usize::MAX, |layout| layout.size())
    }
}

/// Adds to a count.
fn add<W: Word>(count: &W, more: i64) {
    // Relaxed: a count.
    update(count, Ordering::Relaxed, |old| Some(old.wrapping_add_signed(more)));
}
