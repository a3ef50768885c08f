//! Operations on blocks, from one lane.

use core::fmt;

use crate::block::Blocks;
use crate::error::{AllocError, BatchError, FreeError};
use crate::lane::{Arena, OnLane};
use crate::run::Runs;
use crate::sync::{AtomicU64, Word};

/// An arena as seen from one lane, with every operation that allocates, frees or resizes; reservations and queries are on
/// [`Buddy`](crate::Buddy). See [`Buddy::on`](crate::Buddy::on).
///
/// It is two words, cheap to copy. No method waits for another thread, and all may be called from interrupt and signal
/// handlers, whichever method they interrupt.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// let cpu = buddy.on(3); // by the number of the CPU, or buddy.here(): by the thread
/// let run = cpu.alloc_units(5)?;
/// cpu.grow(run, 7)?;
/// assert_eq!(cpu.free(run), Ok(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lane<'b, W = AtomicU64> {
    pub(super) runs: Runs<'b, W>,
}

copy!(Lane<'_, W>);

impl<'b, W: Word> Lane<'b, W> {
    #[inline(always)]
    pub(super) const fn new(arena: &'b Arena<'b, W>, number: usize) -> Self {
        Self { runs: Runs { blocks: Blocks { lane: OnLane::new(arena, number) } } }
    }

    /// Allocates a block of `2^order` units, aligned to its size, and returns its first unit.
    ///
    /// Cost: one read-modify-write and a handful of loads in the steady state. A search lowers each bound that misled
    /// it, once. Runs placed by [`alloc_at`](Self::alloc_at) leave bounds too high, so the first search after many of
    /// them can be linear in the arena: at most 6 accesses for each word of the tree, and fewer than those calls took
    /// together. The next refusal takes at most 32. Where the lane first meets a block in whose words it would begin,
    /// and takes its claim back, it takes 70, and 12 more for each level that an arena of 2^25 units or more has
    /// besides. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`], or [`AllocError::Exhausted`] if, at one instant of the call, every block of the
    /// order was in use or in the hands of an allocation or free that had not returned.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// assert_eq!(block % 8, 0);
    /// assert!(cpu.alloc(7).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, order: u32) -> Result<u64, AllocError> {
        self.runs.blocks.alloc(order)
    }

    /// Returns whether a block of `2^order` units is free, at some instant of the call. Those in the hands of an
    /// operation that has not returned are not; nor is one of an order above [`max_order`](crate::Buddy::max_order).
    ///
    /// In contrast to [`order_bound`](crate::Buddy::order_bound) it looks for the block: where the bounds promise one
    /// that is not there, it lowers them, so that they are true for what comes next. If others raise them again and
    /// again meanwhile, it gives up and returns `true`, although there may be none.
    ///
    /// Cost: a load and a look at up to 16 words for each level, if the bounds are true; otherwise that of a refused
    /// [`alloc`](Self::alloc). Beside others it looks at no more than twice as many words of the order's level as there
    /// are, but frees that raise bounds behind it can send it back to words above. Callable from interrupt and signal
    /// handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// assert!(cpu.has_free(6));
    /// let block = cpu.alloc(0)?;
    /// assert!(cpu.has_free(5) && !cpu.has_free(6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn has_free(&self, order: u32) -> bool {
        self.runs.blocks.has_free(order)
    }

    /// Frees the block or run that begins at unit `index`, and returns its number of units.
    ///
    /// Cost: one read-modify-write, and a look at the words above: few if the lane's last free was near, one for each
    /// level otherwise. Blocks of 32 units or more, and runs, also take a load for each level on the way down to them.
    /// Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// [`FreeError::OutOfRange`], [`FreeError::NotAllocated`], [`FreeError::NotABlock`] or [`FreeError::Reserved`];
    /// nothing has changed. A second free of a block is detected until its units are allocated again.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(3)?;
    /// assert_eq!(cpu.free(block + 1), Err(FreeError::NotABlock { index: block + 1 }));
    /// assert_eq!(cpu.free(block), Ok(8));
    /// assert_eq!(cpu.free(block), Err(FreeError::NotAllocated { index: block }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free(&self, index: u64) -> Result<u64, FreeError> {
        self.runs.free(index)
    }

    /// Frees the block of `order` at unit `index`, or an aligned run of as many units. It does not look up the order.
    ///
    /// Cost: one read-modify-write, and a look at the words above: few if the lane's last free was near, one for each
    /// level otherwise. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`free`](Self::free), [`FreeError::OrderTooLarge`], [`FreeError::Misaligned`],
    /// [`FreeError::WrongOrder`], and [`FreeError::WrongLength`] for a run; nothing has changed. Unlike `free`, which
    /// finds the order in the words, this method trusts the order: a wrong order that happens to name a block which
    /// another thread is allocating at the same time can take that block back.
    ///
    /// ```
    /// # use nbbs::FreeError;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let block = cpu.alloc(2)?;
    /// let refused = FreeError::WrongOrder { index: block, order: 1, actual: 2 };
    /// assert_eq!(cpu.free_sized(block, 1), Err(refused));
    /// assert_eq!(cpu.free_sized(block, 2), Ok(()));
    /// let run = cpu.alloc_at(0, 37)?;
    /// let refused = FreeError::WrongLength { index: run, units: 32, actual: 37 };
    /// assert_eq!(cpu.free_sized(run, 5), Err(refused));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn free_sized(&self, index: u64, order: u32) -> Result<(), FreeError> {
        self.runs.free_sized(index, order)
    }

    /// Allocates up to `blocks.len()` blocks of `order` into `blocks`, and returns how many: fewer only if no further
    /// block is free.
    ///
    /// Cost: a read-modify-write for each word that has room, which yields up to 32 blocks, and one or two for each
    /// word that is split for them. Callable from interrupt and signal handlers.
    ///
    /// # Errors
    /// Those of [`alloc`](Self::alloc), if not a single block is free.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let mut blocks = [0; 100];
    /// assert_eq!(cpu.alloc_batch(0, &mut blocks)?, 64);
    /// cpu.free_batch(0, &blocks[..64])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_batch(&self, order: u32, blocks: &mut [u64]) -> Result<usize, AllocError> {
        self.runs.blocks.alloc_batch(order, blocks)
    }

    /// Allocates blocks of `order` into `blocks`, at least one, and as many as lie together. Returns how many.
    pub(crate) fn alloc_in_one_word(
        &self,
        order: u32,
        blocks: &mut [u64],
    ) -> Result<usize, AllocError> {
        self.runs.blocks.alloc_in_one_word(order, blocks)
    }

    /// Frees blocks of `order`.
    ///
    /// Cost: one read-modify-write for neighbours in the slice that lie in the same word; sort the slice for the
    /// fewest. A block that is in the slice twice is freed once, and then refused. Callable from interrupt and signal
    /// handlers.
    ///
    /// # Errors
    /// [`BatchError`] with the error of [`free_sized`](Self::free_sized) for the first block that is refused. The
    /// blocks before it have been freed, the others have not.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let cpu = buddy.on(1);
    /// let blocks = [cpu.alloc(1)?, cpu.alloc(1)?];
    /// cpu.free_batch(1, &blocks)?;
    /// assert_eq!(cpu.free_batch(1, &blocks).unwrap_err().done, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn free_batch(&self, order: u32, blocks: &[u64]) -> Result<(), BatchError> {
        self.runs.free_batch(order, blocks)
    }

    /// Returns the number of units in the arena.
    #[inline(always)]
    pub(crate) const fn units(&self) -> u64 {
        self.runs.blocks.lane.geometry().units()
    }

    /// Returns the order of the block that begins at unit `index`, or of a run that is as long and as aligned as one.
    #[inline(always)]
    pub(crate) fn block_order(&self, index: u64) -> Result<u32, FreeError> {
        self.runs.block_order(index)
    }
}

// Not the words, as for `Buddy`.
impl<W> fmt::Debug for Lane<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}
