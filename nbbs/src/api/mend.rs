//! Repair: what a thread or process that died left behind.

use super::Buddy;
use crate::mend::Mend;
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Finishes what operations that will never end have left in the words above: claims below a free slot come to
    /// light, and what was freed becomes available.
    ///
    /// A thread that dies in a free may have cleared its block without updating the words above. A thread that dies in
    /// an allocation may leave a claim where nobody sees it, below a slot that is still free. After this call the first
    /// is free for all, and the second is an allocated block, unless it lies below a larger block: then a call after
    /// that block is freed brings it to light. The caller must know whose the blocks are.
    ///
    /// For runs nothing more is repaired. If a thread dies while it claims, changes or frees a run across words, what
    /// it had in hand stays in use, and so do the units that it had written below a block that it was cutting or
    /// growing. If somebody else has freed that block, those units can be allocated as a part of larger blocks until
    /// this call, and not after it.
    ///
    /// A run whose holder died while growing it must not be freed. If its last unit is the last of a leaf word, that
    /// may be accepted, and leaves the units behind it without a head: whoever is given that unit next cannot free it.
    ///
    /// Cost: a few loads for every word, and a read-modify-write or two for each that is put in order. May run while
    /// others allocate and free, and several times at once. It waits for nobody. Callable from interrupt and signal
    /// handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(3)?;
    /// buddy.mend(); // all was in order
    /// assert_eq!(buddy.free(block), Ok(8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mend(&self) {
        Mend(&self.arena.tree).all();
    }

    /// Returns the order of the block at unit `index`, if no larger block covers it, and none can until it is freed.
    /// `None` means that no block begins there, or that it could not be told because others are merging at that place.
    ///
    /// [`order_of`](Self::order_of) gives the same answer for a block whose allocation has returned, and on which nobody
    /// has tried a resize since the buddy allocator handed it out: caches may hand on what was split. This method also
    /// gives it for a claim whose claimer died before its allocation returned.
    ///
    /// Cost: three loads for each level, and a read-modify-write for each level whose bound has to be settled again.
    /// Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let block = buddy.alloc(3)?;
    /// assert_eq!(buddy.vouch_for(block), Some(3));
    /// buddy.free(block)?;
    /// assert_eq!(buddy.vouch_for(block), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn vouch_for(&self, index: u64) -> Option<u32> {
        let order = self.on(0).runs.blocks.order_at(index).ok()?;
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        Mend(&self.arena.tree).has_path(level, idx).then_some(order)
    }

    /// Returns a count that changes whenever a claim of blocks that met a larger block is taken back: an allocation, of
    /// one block or a batch, that then claimed elsewhere, or was refused. Claims of runs are not counted.
    ///
    /// A caller that sees a block, and later the same count, knows that no such operation that has returned in between
    /// took the block back. Cost: one load. Callable from interrupt and signal handlers.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.alloc(3)?;
    /// assert_eq!(buddy.undone(), 0); // nobody was in its way
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn undone(&self) -> u64 {
        self.arena.tree.undone()
    }
}
