//! Queries: what is cached, statistics, the audit.

use super::caps::Caps;
use super::cpus::Caches;
use super::stacks::{CLASSES, Stacks, capacity};
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

    /// Returns [`Buddy::stats`](crate::Buddy::stats), with cached units counted apart from used ones.
    ///
    /// While others run, a block that enters or leaves a cache may be counted either as cached or as used. So may all
    /// that a cache keeps of an order, while it gives back blocks of that order. Cost: that of
    /// [`Buddy::stats`](crate::Buddy::stats) and of [`cached`](Self::cached). Callable from interrupt and signal
    /// handlers.
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
        let mut stats = self.buddy.stats();
        let cached = self.cached();
        stats.cached_units = cached.units.min(stats.used_units);
        stats.used_units -= stats.cached_units;
        for (used, cached) in stats.used_blocks.iter_mut().zip(cached.blocks) {
            *used = used.saturating_sub(cached);
        }
        stats
    }

    /// Returns the number of blocks that [`Buddy`](crate::Buddy) did not take back: each was freed twice, or with a
    /// wrong order. Cost: a load for each CPU. Callable from interrupt and signal handlers.
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
    /// [`Buddy::audit`](crate::Buddy::audit) checks the arena itself.
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
    /// assert_eq!((broken.cpu, broken.index, broken.order), (1, block, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn audit(&self) -> Result<Cached, BrokenCache> {
        for (cpu, part) in self.each().enumerate() {
            for class in 0..CLASSES {
                let order = self.caps.order(class);
                for at in 0..part.count(class).min(capacity(class)) {
                    let index = part.block(class, at);
                    let kept = self.each().map(|part| part.times(class, index)).sum::<usize>();
                    let is_there = self.buddy.len_of(index) == Ok(1 << order);
                    if kept != 1 || !is_there {
                        return Err(BrokenCache { cpu, index, order });
                    }
                }
            }
        }
        Ok(self.cached())
    }
}
