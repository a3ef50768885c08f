//! Frees into a CPU's cache.

use super::caps::Caps;
use super::cpus::Caches;
use super::stacks::Stacks;
use super::turn::Part;
use crate::error::FreeError;
use crate::sync::Word;

impl<W: Word> Caches<'_, W> {
    /// Frees the block or run that begins at unit `index`, and returns its number of units.
    ///
    /// Cost: a load for each level on the way down to the block, then that of [`free_sized`](Self::free_sized).
    /// Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Lane::free`](crate::Lane::free).
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(0, 2)?;
    /// assert_eq!(caches.free(1, block)?, 4); // any CPU may
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, cpu: usize, index: u64) -> Result<u64, FreeError> {
        match self.buddy.on(cpu).block_order(index) {
            Ok(order) => self.free_sized(cpu, index, order).map(|()| 1 << order),
            Err(_) => self.past(cpu, |lane| lane.free(index)),
        }
    }

    /// Frees the block of `order` at unit `index`.
    ///
    /// Cost: 8 or 9 plain loads and stores, if the cache has room. Otherwise it gives back the blocks that were freed
    /// longest ago, an eighth of them, or half if those lie close together, with a read-modify-write for each word in
    /// which they lie. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Lane::free_sized`](crate::Lane::free_sized), as far as a cache can detect them: see [`Caches`].
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(0, 2)?;
    /// caches.free_sized(0, block, 2)?;
    /// assert!(caches.free_sized(0, block, 2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&self, cpu: usize, index: u64, order: u32) -> Result<(), FreeError> {
        if let Some(class) = Caps::own_class(order)
            && let Some(mut part) = self.enter(cpu)
        {
            if !self.front(cpu).keep(&mut part, class, index) {
                return self.free_in_turn(cpu, index, order, class, part);
            }
            self.leave(cpu, &part);
            return Ok(());
        }
        self.free_slowly(cpu, index, order)
    }

    /// Frees a block whose order has no class of its own, or whose cache is busy.
    #[inline(never)]
    fn free_slowly(&self, cpu: usize, index: u64, order: u32) -> Result<(), FreeError> {
        if let Some(class) = self.caps.class(order) {
            if let Some(part) = self.enter(cpu) {
                return self.free_in_turn(cpu, index, order, class, part);
            }
            self.check(cpu, class, index, order)?;
        }
        self.past(cpu, |lane| lane.free_sized(index, order))
    }

    /// Looks for the block in the arena and in all caches, if frees are checked. Returns whether a cache may keep it.
    fn check(&self, cpu: usize, class: usize, index: u64, order: u32) -> Result<bool, FreeError> {
        let is_cached = || self.each().any(|part| part.times(class, index) > 0);
        self.front(cpu).check(is_cached, index, order)
    }

    /// Frees in an operation that has begun, and ends it.
    #[inline(never)]
    fn free_in_turn(
        &self,
        cpu: usize,
        index: u64,
        order: u32,
        class: usize,
        mut part: Part<'_, W>,
    ) -> Result<(), FreeError> {
        let is_kept = match self.check(cpu, class, index, order) {
            Ok(true) => self.front(cpu).free(&mut part, class, index, order),
            otherwise => otherwise,
        };
        self.leave(cpu, &part);
        if is_kept? { Ok(()) } else { self.buddy.on(cpu).free_sized(index, order) }
    }
}
