//! For those who outlive others: what a thread or process that died left behind.

use super::Buddy;
use crate::mend::Mend;
use crate::sync::Word;

impl<W: Word> Buddy<'_, W> {
    /// Finishes what operations that never end have left in the words above: claims below a free slot come to light, and
    /// what was freed can be had.
    ///
    /// A thread that dies in a free may have cleared its block and told nobody; one that dies in an allocation may leave a
    /// claim where nobody sees it, below a slot that is still free. After this call the first is free for all, and the
    /// second is an allocated block, save where it lies below a larger block: it comes to light by a call after that is
    /// freed. Whose the blocks are, the caller must know.
    ///
    /// Cost: a few loads for every word, a read-modify-write or two for each that is put in order. May run while
    /// others allocate and free, and several times at once. Waits for nobody. Callable from interrupt and signal handlers.
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

    /// The order of the block at unit `index`, if nothing larger covers it, or will as long as it is not freed. `None`: no
    /// block begins there, or it could not be told, as others are merging just there.
    ///
    /// [`order_of`](Self::order_of) says the same of a block of which an allocation has returned. This also does of a claim
    /// whose claimer died before it knew.
    ///
    /// Cost: twice a load for each level, and a read-modify-write for each whose bound is to be settled again. Callable
    /// from interrupt and signal handlers.
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
        let order = self.on(0).order_at(index).ok()?;
        let level = W::SHAPE.level_of(order);
        let (idx, _) = W::SHAPE.locate(level, index);
        Mend(&self.arena.tree).is_way_up(level, idx).then_some(order)
    }

    /// A count that has changed if, since it was last asked, a claim was taken back that met a larger block: an allocation
    /// of a block that claimed anew elsewhere, or was refused.
    ///
    /// Whoever sees a block, and later the same count, knows that the block was not taken back by an operation that
    /// has returned in between. Cost: one load. Callable from interrupt and signal handlers.
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
