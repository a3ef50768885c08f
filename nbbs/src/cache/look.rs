//! Queries: what is cached, statistics, the audit.

use super::caps::Caps;
use super::cpus::Caches;
use super::owned::Cache;
use super::stacks::{CLASSES, Stacks, capacity};
#[cfg(feature = "std")]
use super::threads::ThreadCaches;
use crate::api::Buddy;
use crate::error::BrokenCache;
use crate::layout::geometry::MAX_ORDERS;
use crate::look::Stats;
use crate::sync::Word;

/// How many blocks and units caches keep. They are free to the owner of the cache only.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let mut cache = buddy.cache(0);
/// let block = cache.alloc(1)?;
/// let cached = cache.cached();
/// assert_eq!((cached.blocks[1], cached.units), (15, 30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cached {
    /// Units in all cached blocks.
    pub units: u64,
    /// Cached blocks of each order.
    pub blocks: [u64; MAX_ORDERS],
}

impl Cached {
    pub(super) const NONE: Self = Self { units: 0, blocks: [0; MAX_ORDERS] };

    /// Adds what is in these stacks.
    pub(super) fn add(&mut self, stacks: &impl Stacks, caps: &Caps) {
        for class in 0..CLASSES {
            let (order, count) = (caps.order(class), stacks.count(class).min(capacity(class)));
            if let Some(blocks) = self.blocks.get_mut(order as usize) {
                *blocks += count;
                self.units += count << order;
            }
        }
    }
}

impl<W: Word> Caches<'_, W> {
    /// Returns how many blocks and units all CPUs keep.
    ///
    /// Cost: 10 loads for each CPU. While others run, the numbers are read one after the other, not at one instant.
    /// Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// caches.alloc(0, 2)?;
    /// assert_eq!(caches.cached().units, 28);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cached(&self) -> Cached {
        let mut cached = Cached::NONE;
        self.each().for_each(|part| cached.add(&part, &self.caps));
        cached
    }

    /// Returns [`Buddy::stats`], with cached units counted apart from used ones.
    ///
    /// While others run, a block that enters or leaves a cache may be counted either as cached or as used. So may all
    /// that a cache keeps of an order, while it gives back blocks of that order. Cost: that of
    /// [`Buddy::stats`] and of [`cached`](Self::cached). Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// caches.alloc(0, 2)?;
    /// let stats = caches.stats();
    /// assert_eq!((stats.used_units, stats.cached_units, stats.free_units), (4, 28, 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.buddy.stats();
        apart(stats, &self.cached())
    }

    /// Returns the number of blocks that [`Buddy`] did not take back: each was freed twice, or with a wrong order. Cost:
    /// a load for each CPU. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # use nbbs::{Caches, Caps, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words()).with_caps(Caps::new().checked(false));
    /// caches.free_sized(1, 5, 0)?; // never allocated
    /// caches.drain(1);
    /// assert_eq!(caches.refused(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.each().fold(0, |sum, part| sum.wrapping_add(part.refused()))
    }

    /// Checks that every cached block is allocated in the arena with its order, and is cached once.
    ///
    /// Cost: for each block, a load for each level, and one for each block of its order that any CPU keeps, so it grows
    /// with the square of the blocks. May only be called while no operation is running.
    /// [`Buddy::audit`] checks the arena itself.
    ///
    /// # Errors
    /// The first cached block that is not allocated so, or is cached twice.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(1, 0)?;
    /// caches.free_sized(1, block, 0)?;
    /// assert_eq!(caches.audit()?.units, 32);
    /// buddy.free(block)?; // behind the cache's back
    /// let broken = caches.audit().unwrap_err();
    /// assert_eq!((broken.cpu, broken.index, broken.order), (Some(1), block, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn audit(&self) -> Result<Cached, BrokenCache> {
        let times = |class, index| self.each().map(|part| part.times(class, index)).sum();
        for (cpu, part) in self.each().enumerate() {
            if let Some((index, order)) = broken(&part, &self.buddy, &self.caps, times) {
                return Err(BrokenCache { cpu: Some(cpu), index, order });
            }
        }
        Ok(self.cached())
    }
}

impl<W: Word> Cache<'_, W> {
    /// Returns [`Buddy::stats`], with the units that this cache keeps counted apart from used ones.
    /// What other caches keep counts as used.
    ///
    /// Cost: that of [`Buddy::stats`]. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// cache.alloc(2)?;
    /// let stats = cache.stats();
    /// assert_eq!((stats.used_units, stats.cached_units, stats.free_units), (4, 28, 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        apart(self.buddy.stats(), &self.cached())
    }

    /// Checks that every block that this cache keeps is allocated in the arena with its order, and is kept once. Other
    /// caches are not looked at.
    ///
    /// Cost: for each block, a load for each level, and a comparison with each block of its order, so it grows with the
    /// square of the blocks. Callable while others use the arena.
    ///
    /// # Errors
    /// The first block that is not allocated so, or is kept twice; its [`cpu`](BrokenCache::cpu) is `None`.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = buddy.cache(0);
    /// let block = cache.alloc(0)?;
    /// cache.free_sized(block, 0)?;
    /// assert_eq!(cache.audit()?.units, 32);
    /// buddy.free(block)?; // behind the cache's back
    /// let broken = cache.audit().unwrap_err();
    /// assert_eq!((broken.index, broken.order), (block, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn audit(&self) -> Result<Cached, BrokenCache> {
        let times = |class, index| self.stacks.times(class, index);
        match broken(&self.stacks, &self.buddy, &self.caps, times) {
            Some((index, order)) => Err(BrokenCache { cpu: None, index, order }),
            None => Ok(self.cached()),
        }
    }
}

#[cfg(feature = "std")]
impl ThreadCaches {
    /// Returns how many blocks and units the calling thread keeps: none in a handler that interrupts an operation. A
    /// thread without a cache gets none. If it was [asked](Self::ask_all) to give everything back, it does so first.
    ///
    /// Cost: a thread-local read, and that of [`Cache::cached`].
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(64), nbbs::Caps::new());
    /// PAGES.alloc(3)?;
    /// assert_eq!(PAGES.cached().units, 24);
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    #[must_use]
    pub fn cached(&'static self) -> Cached {
        self.look(Cache::cached).unwrap_or(Cached::NONE)
    }

    /// Returns [`Buddy::stats`], with the units that the calling thread [keeps](Self::cached) counted apart from used
    /// ones. What other threads keep, which only they can see, counts as used, and in a handler that interrupts an
    /// operation so does what its own thread keeps.
    ///
    /// Cost: that of [`Buddy::stats`], and a thread-local read.
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(64), nbbs::Caps::new());
    /// PAGES.alloc(2)?;
    /// let stats = PAGES.stats();
    /// assert_eq!((stats.used_units, stats.cached_units, stats.free_units), (4, 28, 32));
    /// # Ok::<(), nbbs::AllocError>(())
    /// ```
    #[must_use]
    pub fn stats(&'static self) -> Stats {
        // First: it may give back what the statistics would count as used.
        let cached = self.cached();
        apart(self.buddy().stats(), &cached)
    }

    /// Checks what the calling thread [keeps](Self::cached), as [`Cache::audit`] does: each thread checks its own cache.
    /// What is given back first, because the thread was asked to, is checked by the buddy allocator:
    /// [`refused`](Self::refused). In a handler that interrupts an operation nothing is checked.
    ///
    /// Cost: that of [`Cache::audit`], and a thread-local read. Callable while others use the arena.
    ///
    /// # Errors
    /// Those of [`Cache::audit`].
    ///
    /// ```
    /// # use nbbs::{Metadata, ThreadCaches};
    /// # static METADATA: Metadata<{ nbbs::metadata_words(64) }> = Metadata::new();
    /// # static PAGES: ThreadCaches = ThreadCaches::with_caps(METADATA.arena(64), nbbs::Caps::new());
    /// let block = PAGES.alloc(0)?;
    /// PAGES.free_sized(block, 0)?;
    /// assert_eq!(PAGES.audit()?.units, 32);
    /// PAGES.buddy().free(block)?; // behind the cache's back
    /// assert_eq!(PAGES.audit().unwrap_err().index, block);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn audit(&'static self) -> Result<Cached, BrokenCache> {
        self.look(Cache::audit).unwrap_or(Ok(Cached::NONE))
    }
}

/// Counts cached units apart from used ones.
fn apart(mut stats: Stats, cached: &Cached) -> Stats {
    stats.cached_units = cached.units.min(stats.used_units);
    stats.used_units -= stats.cached_units;
    for (used, cached) in stats.used_blocks.iter_mut().zip(cached.blocks) {
        *used = used.saturating_sub(cached);
    }
    stats
}

/// Returns the first block of a cache, and its order, that is not allocated so in the arena, or that all caches together
/// have other than once: `times` says how often they have a block of a class.
fn broken<W: Word>(
    part: &impl Stacks,
    buddy: &Buddy<'_, W>,
    caps: &Caps,
    times: impl Fn(usize, u64) -> usize,
) -> Option<(u64, u32)> {
    for class in 0..CLASSES {
        let order = caps.order(class);
        for at in 0..part.count(class).min(capacity(class)) {
            let index = part.block(class, at);
            if times(class, index) != 1 || buddy.len_of(index) != Ok(1 << order) {
                return Some((index, order));
            }
        }
    }
    None
}
