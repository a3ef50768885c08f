//! A cache as a value, for one owner.

use core::fmt;

use super::caps::Caps;
use super::front::Front;
use super::look::Cached;
use super::stacks::{PART_WORDS, Stacks};
use crate::api::Buddy;
use crate::error::{AllocError, FreeError};
use crate::sync::{AtomicU64, Word};

/// A cache of free blocks for one owner, in front of a [`Buddy`]: see [`Buddy::cache`].
///
/// It keeps blocks of orders 0 to 8 and of one large order, up to its [`Caps`]; blocks of other orders bypass it. To
/// the buddy allocator, and to everybody else, the blocks that it keeps are in use. It gives them back when it is
/// dropped; if it is never dropped, they are lost. A process made by `fork` that shares the arena with its parent must
/// neither use nor drop its copy of a cache.
///
/// # Wrong and double frees
/// These are refused at once: an index outside the arena, or not aligned to its order; in [`free`](Self::free), an
/// index at which the arena has no block; and a second free, by the same order, of the block that was freed last, as
/// long as the cache keeps it. [`free_sized`](Self::free_sized) detects no other mistake: a block that is freed twice
/// is handed out twice. If the buddy allocator does not take back a block, because it was freed elsewhere or has
/// another order, the block is left alone, and counted by [`refused`](Self::refused).
///
/// With [`Caps::checked`], the default in builds with debug assertions, every free checks the arena and the whole
/// cache. All wrong frees are refused, except those of a block that has been allocated again, that others are freeing,
/// giving back, or allocating for a cache at that moment, or that another cache keeps.
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
pub struct Cache<'a, W: Word = AtomicU64> {
    pub(super) buddy: Buddy<'a, W>,
    lane: usize,
    pub(super) caps: Caps,
    pub(super) stacks: [u64; PART_WORDS],
}

impl<'a, W: Word> Buddy<'a, W> {
    /// Creates an empty cache of free blocks, which allocates and frees them on `lane`. It takes 3 KiB.
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
    /// Creates an empty cache as [`Buddy::cache`] does, with these caps.
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
    /// Cost: a few plain loads and stores, if the cache has such a block. Otherwise that of
    /// [`Lane::alloc`](crate::Lane::alloc), for all blocks of one word, up to half of what the cache may keep of the
    /// order.
    ///
    /// # Errors
    /// Those of [`Lane::alloc`](crate::Lane::alloc). Before the cache reports [`AllocError::Exhausted`], it gives back
    /// everything and tries again: at one instant of the call no block of the order was free except those in the hands
    /// of operations that had not returned. Blocks in other caches count as in use.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(0)?;
    /// cache.free_sized(block, 0)?;
    /// assert_eq!(cache.alloc(6)?, 0); // all of it: the cache gives back what it keeps before it refuses
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&mut self, order: u32) -> Result<u64, AllocError> {
        self.hit(order).map_or_else(|| self.alloc_slowly(order), Ok)
    }

    /// Takes a block of an order that has a class of its own, if there is one.
    #[inline(always)]
    pub(super) fn hit(&mut self, order: u32) -> Option<u64> {
        Caps::own_class(order).and_then(|class| self.stacks.pop(class))
    }

    #[inline(never)]
    fn alloc_slowly(&mut self, order: u32) -> Result<u64, AllocError> {
        let (front, stacks) = self.parts();
        let class = front.caps.class(order);
        match class.and_then(|class| stacks.pop(class)) {
            Some(index) => Ok(index),
            None => front.alloc(stacks, class, order),
        }
    }

    /// Frees the block or run that begins at unit `index`, and returns its number of units.
    ///
    /// Cost: a load for each level on the way down to the block, then that of [`free_sized`](Self::free_sized).
    ///
    /// # Errors
    /// Those of [`Lane::free`](crate::Lane::free).
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let (block, run) = (cache.alloc(3)?, buddy.here().alloc_units(7)?);
    /// assert_eq!((cache.free(block)?, cache.free(run)?), (8, 7));
    /// assert!(cache.free(run).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&mut self, index: u64) -> Result<u64, FreeError> {
        match self.buddy.on(self.lane).block_order(index) {
            Ok(order) => self.free_sized(index, order).map(|()| 1 << order),
            Err(_) => self.buddy.on(self.lane).free(index),
        }
    }

    /// Frees the block of `order` at unit `index`.
    ///
    /// Cost: a few plain loads and stores, if the cache has room. Otherwise it gives back the blocks that were freed
    /// longest ago, an eighth of them, or half if those lie close together, with a read-modify-write for each word in
    /// which they lie.
    ///
    /// # Errors
    /// Those of [`Lane::free_sized`](crate::Lane::free_sized), as far as a cache can detect them: see [`Cache`].
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
        if self.keep(index, order) { Ok(()) } else { self.free_slowly(index, order) }
    }

    /// Keeps a block of an order that has a class of its own, if there is no reason against it.
    #[inline(always)]
    pub(super) fn keep(&mut self, index: u64, order: u32) -> bool {
        let (front, stacks) = self.parts();
        Caps::own_class(order).is_some_and(|class| front.keep(stacks, class, index))
    }

    #[inline(never)]
    fn free_slowly(&mut self, index: u64, order: u32) -> Result<(), FreeError> {
        let (front, stacks) = self.parts();
        if let Some(class) = front.caps.class(order)
            && front.check(|| stacks.times(class, index) > 0, index, order)?
            && front.free(stacks, class, index, order)?
        {
            return Ok(());
        }
        front.lane.free_sized(index, order)
    }

    /// Gives all cached blocks back to the buddy allocator. Cost: a read-modify-write for each word in which they lie.
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

    /// Returns how much it may keep.
    #[cfg(feature = "std")]
    pub(super) const fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Returns how many blocks and units the cache keeps.
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
        let mut cached = Cached::NONE;
        cached.add(&self.stacks, &self.caps);
        cached
    }

    /// Returns the number of blocks that the buddy allocator did not take back: each was freed twice, or with a wrong
    /// order. Cost: none, as it is kept in the cache.
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
    fn parts(&mut self) -> (Front<'_, W>, &mut [u64; PART_WORDS]) {
        let Self { buddy, lane, caps, stacks } = self;
        (Front { lane: buddy.on(*lane), caps }, stacks)
    }
}

impl<W: Word> Drop for Cache<'_, W> {
    fn drop(&mut self) {
        self.drain();
    }
}

// Not the words, as for `Buddy`.
impl<W: Word> fmt::Debug for Cache<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buddy, lane, caps, .. } = self;
        let mut cache = f.debug_struct("Cache");
        cache.field("buddy", buddy).field("lane", lane).field("caps", caps);
        cache.finish_non_exhaustive()
    }
}
