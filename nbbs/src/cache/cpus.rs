//! A cache for each CPU, in borrowed words.

use core::fmt;

use super::caps::Caps;
use super::stacks::{PART_WORDS, Stacks};
use super::turn::Part;
use crate::api::Buddy;
use crate::error::{AllocError, MetadataError};
use crate::sync::{AtomicU64, Word};

/// Returns the number of 64-bit words that [`Caches`] take for `cpus` CPUs: 2944 bytes for each.
///
/// ```
/// static WORDS: nbbs::Metadata<{ nbbs::cache_words(4) }> = nbbs::Metadata::new(); // in .bss
/// assert_eq!(WORDS.words().len(), 4 * 368);
/// ```
#[must_use]
pub const fn cache_words(cpus: usize) -> usize {
    cpus.saturating_mul(PART_WORDS)
}

/// A cache of free blocks for each CPU, in front of a [`Buddy`].
///
/// Each CPU's cache keeps blocks of orders 0 to 8 and of one large order, up to the [`Caps`]; blocks of other orders
/// bypass it. An allocation or free that the cache serves costs 8 or 9 plain loads and stores, and no
/// read-modify-write.
///
/// # The CPU number
/// Two operations with the same number may overlap in one way only: the second interrupts the first, and ends before
/// the first continues. So interrupts may stay enabled, but a thread must not be preempted or moved to another CPU
/// between reading the number and the return of the call. A kernel disables preemption; a program gives each of its
/// threads a number of its own. If this rule is broken, units may be handed out twice or be lost.
///
/// A handler that interrupts an operation finds the cache busy, and uses the buddy allocator directly. So do all later
/// operations under a number whose user died in an operation, until [`recover`](Self::recover), and those under a
/// number for which there are no words. Nobody waits.
///
/// # What a refusal means
/// [`AllocError::Exhausted`] means that the buddy allocator refused, that this CPU gave back what it keeps and, if that
/// was anything, tried once more, and that it asked the other CPUs to give back too. While a
/// [`drain_all`](Self::drain_all) has its cache in hand, it neither gives back nor tries again. So at one instant of
/// the call no block of the order was free except those in the hands of operations that had not returned, including
/// that `drain_all`, and the operation that this call interrupted, if any. Blocks that other CPUs keep count as in use.
/// A CPU gives them back with its next operation, or when it calls [`drain`](Self::drain), for instance in the handler
/// of an interrupt from another CPU. Idle CPUs should drain before they sleep. A caller that must not be refused can
/// call [`drain_all`](Self::drain_all) and try again.
///
/// # Wrong and double frees
/// As with [`Cache`](crate::Cache), these are refused at once: an index outside the arena, or not aligned to its order;
/// in [`free`](Self::free), an index at which the arena has no block; and a second free, by the same order, of the
/// block that this CPU freed last, as long as it keeps that block and the cache is neither busy nor taken at that
/// moment. After any other double free, the block may be handed out twice. A block that the buddy allocator does not
/// take back is left alone, and counted by [`refused`](Self::refused).
///
/// With [`Caps::checked`], the default in builds with debug assertions, every free checks the arena and the caches of
/// all CPUs that this handle has. All wrong frees are refused, except those of a block that has been allocated again;
/// that any operation, also one that the caller has interrupted, is freeing, giving back, or allocating for a cache;
/// that stays in a cache which is giving back others of its order; or that a [`Cache`](crate::Cache) keeps.
///
/// ```
/// use nbbs::{Caches, Metadata, cache_words, metadata_words};
///
/// static METADATA: Metadata<{ metadata_words(1 << 12) }> = Metadata::new();
/// static WORDS: Metadata<{ cache_words(4) }> = Metadata::new();
/// static PAGES: Caches = Caches::new(METADATA.arena(1 << 12), WORDS.words());
///
/// let cpu = 3; // preemption is off
/// let page = PAGES.alloc(cpu, 0)?;
/// PAGES.free_sized(cpu, page, 0)?;
/// assert_eq!(PAGES.cached().units, 32);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Caches<'a, W = AtomicU64> {
    pub(super) buddy: Buddy<'a, W>,
    pub(super) caps: Caps,
    pub(super) parts: &'a [[W; PART_WORDS]],
}

copy!(Caches<'_, W>);

impl<'a, W: Word> Caches<'a, W> {
    /// Creates a handle to caches in front of `buddy`, for as many CPUs as `words` has room for: see [`cache_words`].
    ///
    /// Words that are all zero are empty caches. Words that another handle with the same arena and caps uses are the
    /// same caches, if both begin at the same word. One may have fewer CPUs; it then knows nothing of the others'
    /// caches: its checks, drains, and counts leave them out. Other words that both use would be emptied twice. CPUs
    /// stay off each other's cache lines if the words begin on a 64-byte boundary, as those of
    /// [`Metadata`](crate::Metadata) do.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// assert_eq!(Caches::new(buddy, words.words()).cpus(), 2);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn new(buddy: Buddy<'a, W>, words: &'a [W]) -> Self {
        Self { buddy, caps: Caps::new(), parts: words.as_chunks().0 }
    }

    /// Replaces the caps. Must be called before the first operation.
    ///
    /// ```
    /// # use nbbs::{Caches, Caps, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words()).with_caps(Caps::new().units(0, 8));
    /// caches.alloc(0, 0)?;
    /// assert_eq!(caches.cached().units, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Gives the buddy allocator behind the caches lanes in `words`, as [`Buddy::with_lanes`] does. Must be called
    /// before the first operation.
    ///
    /// # Errors
    /// Those of [`Buddy::with_lanes`].
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(1 << 16) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 1 << 16)?;
    /// # let words = Metadata::<{ nbbs::cache_words(64) }>::new();
    /// static LANES: Metadata<{ nbbs::lane_words(64) }> = Metadata::new();
    /// let caches = Caches::new(buddy, words.words()).with_lanes(LANES.words())?;
    /// assert!(caches.alloc(0, 0)?.abs_diff(caches.alloc(63, 0)?) >= 1 << 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_lanes(self, words: &'a [W]) -> Result<Self, MetadataError> {
        Ok(Self { buddy: self.buddy.with_lanes(words)?, ..self })
    }

    /// Returns the buddy allocator behind the caches.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let none = nbbs::Caches::new(buddy, &[]);
    /// assert_eq!(none.buddy().units(), 64);
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn buddy(&self) -> &Buddy<'a, W> {
        &self.buddy
    }

    /// Returns the number of CPUs that have a cache.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let none = nbbs::Caches::new(buddy, &[]);
    /// assert_eq!(none.cpus(), 0);
    /// assert!(none.alloc(0, 0).is_ok()); // past the cache
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn cpus(&self) -> usize {
        self.parts.len()
    }

    /// Allocates a block of `2^order` units, aligned to its size, and returns its first unit.
    ///
    /// Cost: 8 plain loads and stores, if the CPU keeps such a block. Otherwise that of
    /// [`Lane::alloc`](crate::Lane::alloc), with the CPU number as the lane, for all blocks of one word, up to half of
    /// what the cache may keep of the order. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`Lane::alloc`](crate::Lane::alloc). [`Caches`] says what a refusal means.
    ///
    /// ```
    /// # use nbbs::{Caches, Metadata};
    /// # let metadata = Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// # let words = Metadata::<{ nbbs::cache_words(2) }>::new();
    /// let caches = Caches::new(buddy, words.words());
    /// let block = caches.alloc(1, 2)?;
    /// assert_eq!(buddy.order_of(block)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, cpu: usize, order: u32) -> Result<u64, AllocError> {
        let Some(class) = Caps::own_class(order) else { return self.alloc_large(cpu, order) };
        let Some(mut part) = self.enter(cpu) else { return self.alloc_past(cpu, order) };
        match part.pop(class) {
            Some(index) => {
                self.leave(cpu, &part);
                Ok(index)
            }
            None => self.alloc_in_turn(cpu, order, class, part),
        }
    }

    /// Allocates a block whose order has no class of its own.
    #[inline(never)]
    fn alloc_large(&self, cpu: usize, order: u32) -> Result<u64, AllocError> {
        if let Some(class) = self.caps.class(order)
            && let Some(part) = self.enter(cpu)
        {
            return self.alloc_in_turn(cpu, order, class, part);
        }
        self.alloc_past(cpu, order)
    }

    /// Allocates in an operation that has begun, and ends it.
    #[inline(never)]
    fn alloc_in_turn(
        &self,
        cpu: usize,
        order: u32,
        class: usize,
        mut part: Part<'_, W>,
    ) -> Result<u64, AllocError> {
        // All of this is one turn: blocks that others ask for are given back, but not between the two attempts.
        let answer = match part.pop(class) {
            Some(index) => Ok(index),
            None => self.front(cpu).alloc(&mut part, Some(class), order),
        };
        self.leave(cpu, &part);
        answer.inspect_err(|error| self.ask_others(cpu, *error))
    }

    /// Allocates without using the cache; on a refusal, drains it and tries again.
    #[inline(never)]
    fn alloc_past(&self, cpu: usize, order: u32) -> Result<u64, AllocError> {
        let answer = self.past(cpu, |lane| lane.alloc(order));
        let Err(AllocError::Exhausted { .. }) = answer else { return answer };
        let Some(mut part) = self.enter(cpu) else {
            // A busy cache is asked like those of other CPUs.
            self.ask_all();
            return answer;
        };
        // Retries whether or not anything was drained: a handler may have given it back since.
        self.front(cpu).drain(&mut part);
        let answer = self.buddy.on(cpu).alloc(order);
        self.leave(cpu, &part);
        answer.inspect_err(|error| self.ask_others(cpu, *error))
    }

    /// Asks the other CPUs to give back what they keep, after a refusal.
    #[cold]
    fn ask_others(&self, cpu: usize, refused: AllocError) {
        if let AllocError::Exhausted { .. } = refused {
            (0..self.cpus()).filter(|&other| other != cpu).for_each(|other| self.ask(other));
        }
    }
}

// Not the words, as for `Buddy`.
impl<W> fmt::Debug for Caches<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buddy, caps, parts } = self;
        let mut caches = f.debug_struct("Caches");
        caches.field("buddy", buddy).field("caps", caps).field("cpus", &parts.len());
        caches.finish_non_exhaustive()
    }
}
