//! A cache as a value: for whoever has one to himself.

use super::audit::Cached;
use super::caps::Caps;
use super::front::{Freed, Front};
use super::stacks::{PART_WORDS, Stacks};
use crate::buddy::Buddy;
use crate::error::{AllocError, FreeError};
use crate::sync::{AtomicU64, Word};

/// Free blocks of its owner's own, in front of a [`Buddy`]: see [`Buddy::cache`].
///
/// It keeps blocks of orders 0 to 3 and of one large order, up to its [`Caps`]; blocks of other orders go past it. A
/// block that it keeps is an allocated one to the back-end, and to everybody else. Dropping it gives everything back; if
/// it never is, those blocks are lost.
///
/// # Wrong and double frees
/// Refused at once: an index outside the arena or not aligned to its order; by [`free`](Self::free), what is no block of
/// the back-end's; and a second free of the block that was freed last, as long as it is kept. Whatever else
/// [`free_sized`](Self::free_sized) is told it believes. A block that it is given twice it hands out twice; one that it
/// gives back and that the back-end does not take, as it was freed elsewhere or has another order, is left alone and
/// counted by [`refused`](Self::refused).
///
/// With [`Caps::checked`], as in builds with debug assertions, every free looks at the back-end and through the whole
/// cache, and all wrong frees are refused but those of blocks that another `Cache` keeps.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let mut cache = buddy.cache(0);
/// let block = cache.alloc(1)?;
/// cache.free(block)?;
/// assert!(buddy.stats().used_units > 0); // it still has them
/// drop(cache);
/// assert_eq!(buddy.stats().used_units, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cache<'a, W: Word = AtomicU64> {
    buddy: Buddy<'a, W>,
    lane: usize,
    caps: Caps,
    stacks: [u64; PART_WORDS],
}

impl<'a, W: Word> Buddy<'a, W> {
    /// A cache of free blocks, which takes and gives them back on `lane`.
    ///
    /// It has 1 KiB, and none of the arena yet.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(0)?;
    /// cache.free_sized(block, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn cache(&self, lane: usize) -> Cache<'a, W> {
        Cache::new(*self, lane, Caps::new())
    }
}

impl<'a, W: Word> Cache<'a, W> {
    /// [`Buddy::cache`] with caps of the caller's choice.
    ///
    /// ```
    /// # use nbbs::{Cache, Caps};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = Cache::new(buddy, 0, Caps::new().units(0, 8));
    /// cache.alloc(0)?;
    /// assert_eq!(cache.cached().units, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn new(buddy: Buddy<'a, W>, lane: usize, caps: Caps) -> Self {
        Self { buddy, lane, caps, stacks: [0; PART_WORDS] }
    }

    /// Allocates a block of `2^order` units, aligned to its size, and returns its first unit.
    ///
    /// Cost: a few plain loads and stores, if there is one in the cache. Otherwise half of what it may keep of the order
    /// is allocated by [`Buddy::alloc_batch_on`].
    ///
    /// # Errors
    /// Those of [`Buddy::alloc`], after everything in this cache was given back and that did not help: at one instant of
    /// the call no block of the order was free but those in the hands of operations that had not returned. Blocks in
    /// other caches are in use.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(0)?;
    /// cache.free_sized(block, 0)?;
    /// assert_eq!(cache.alloc(6)?, 0); // all of it: nothing is kept from who needs it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&mut self, order: u32) -> Result<u64, AllocError> {
        let popped = self.caps.class(order).and_then(|class| self.stacks.pop(class));
        popped.map_or_else(|| self.alloc_slowly(order), Ok)
    }

    #[inline(never)]
    fn alloc_slowly(&mut self, order: u32) -> Result<u64, AllocError> {
        let (front, stacks) = self.parts();
        front.alloc(stacks, front.caps.class(order), order)
    }

    /// Frees the block that begins at unit `index` and returns its order; of a run, that of a block that would hold it.
    ///
    /// Cost: a load for each level on the way down to the block, then as [`free_sized`](Self::free_sized).
    ///
    /// # Errors
    /// Those of [`Buddy::free`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let (block, run) = (cache.alloc(3)?, buddy.alloc_units(7)?);
    /// assert_eq!((cache.free(block)?, cache.free(run)?), (3, 3));
    /// assert!(cache.free(run).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&mut self, index: u64) -> Result<u32, FreeError> {
        match self.buddy.block_at(index) {
            Ok(order) => self.free_sized(index, order).map(|()| order),
            Err(_) => self.buddy.free_on(self.lane, index),
        }
    }

    /// Frees the block of `order` at unit `index`.
    ///
    /// Cost: a few plain loads and stores, as long as there is room in the cache. Otherwise the half that was freed
    /// longest ago is given back, by a read-modify-write for each word that it lies in.
    ///
    /// # Errors
    /// Those of [`Buddy::free_sized`], as far as a cache can tell: see [`Cache`].
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(2)?;
    /// cache.free_sized(block, 2)?;
    /// assert!(cache.free_sized(block, 2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&mut self, index: u64, order: u32) -> Result<(), FreeError> {
        let Some(class) = self.caps.class(order) else {
            return self.buddy.free_sized_on(self.lane, index, order);
        };
        let (front, stacks) = self.parts();
        if !front.caps.is_checked() && front.keep(stacks, class, index, order) {
            return Ok(());
        }
        self.free_slowly(class, index, order)
    }

    #[inline(never)]
    fn free_slowly(&mut self, class: usize, index: u64, order: u32) -> Result<(), FreeError> {
        let (front, stacks) = self.parts();
        let checked = if front.caps.is_checked() {
            front.check(stacks.times(class, index) > 0, index, order)?
        } else {
            Freed::Kept
        };
        if let Freed::Kept = checked
            && let Freed::Kept = front.free(stacks, class, index, order)?
        {
            return Ok(());
        }
        front.buddy.free_sized_on(front.lane, index, order)
    }

    /// Gives everything back to the back-end.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(0)?;
    /// cache.drain();
    /// assert_eq!(buddy.stats().used_units, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&mut self) {
        let (front, stacks) = self.parts();
        front.drain(stacks);
    }

    /// What it keeps.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(3)?;
    /// cache.free_sized(block, 3)?;
    /// assert_eq!(cache.cached().blocks[3], 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cached(&self) -> Cached {
        Cached::NONE.and(&self.stacks, &self.caps)
    }

    /// How many blocks the back-end did not take back: each was freed twice, or by a wrong order.
    ///
    /// ```
    /// # use nbbs::{Cache, Caps};
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = Cache::new(buddy, 0, Caps::new().checked(false));
    /// cache.free_sized(5, 0)?; // never allocated
    /// cache.drain();
    /// assert_eq!(cache.refused(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.stacks.refused()
    }

    #[inline(always)]
    fn parts(&mut self) -> (Front<'_, 'a, W>, &mut [u64; PART_WORDS]) {
        let Self { buddy, lane, caps, stacks } = self;
        (Front { buddy, lane: *lane, caps }, stacks)
    }
}

impl<W: Word> Drop for Cache<'_, W> {
    fn drop(&mut self) {
        self.drain();
    }
}
