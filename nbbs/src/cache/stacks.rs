//! The blocks in a cache: a stack for each class of order, in plain words.
//!
//! ```text
//! word 0      busy: an operation is under way        word 2         blocks that were not taken back
//! word 1      asked to drain, taken by another       words 3 to 12  blocks in the stack of each class
//! words 16+   the stacks, the block freed longest ago first: 64 of each order from 0 to 3, then
//!             16 of each other class
//! ```
//!
//! At every instant the blocks below a stack's count are exactly those that are cached: a count falls before a block
//! leaves, and rises after one has come. So a caller that dies in between loses only what was in its hands, and the
//! rest remains valid.

use core::sync::atomic::Ordering;

/// The number of classes: the orders 0 to 8, and a large one.
pub(super) const CLASSES: usize = 10;
/// The number of small orders, which are the most frequent, and whose stacks have more room.
const SMALL: usize = 4;
/// The class of the large order.
pub(super) const LARGE: usize = CLASSES - 1;
/// Words of a cache: a multiple of a cache line.
pub(super) const PART_WORDS: usize = SMALL_PLACES + SMALL * SMALL_ROOM + (CLASSES - SMALL) * ROOM;
/// The largest number of blocks that are taken or given back at a time.
pub(super) const BATCH: usize = 32;

pub(super) const BUSY: usize = 0;
pub(super) const ASKED: usize = 1;
const REFUSED: usize = 2;
const COUNTS: usize = 3;
/// Where the stacks of the small orders begin, and how many blocks there is room for in each.
const SMALL_PLACES: usize = 16;
const SMALL_ROOM: usize = 64;
/// How many blocks there is room for in each other stack. These are behind those of the small orders.
const ROOM: usize = 16;

/// Returns the number of blocks of a class for which there is room.
pub(super) const fn capacity(class: usize) -> u64 {
    if class < SMALL { SMALL_ROOM as u64 } else { ROOM as u64 }
}

/// Returns the word of a block in a stack. It is always within the cache, whatever a count may say.
#[inline(always)]
const fn word_of(class: usize, at: u64) -> usize {
    if class < SMALL {
        SMALL_PLACES + (class * SMALL_ROOM + at as usize) % (SMALL * SMALL_ROOM)
    } else {
        SMALL_PLACES + (SMALL * SMALL_ROOM + (class - SMALL) * ROOM) + at as usize % ROOM
    }
}

/// The words of one cache.
pub(super) trait Stacks {
    fn get(&self, at: usize, order: Ordering) -> u64;
    fn set(&mut self, at: usize, value: u64, order: Ordering);

    /// Returns the number of blocks of a class.
    #[inline(always)]
    fn count(&self, class: usize) -> u64 {
        // Acquire: pairs with the Release in `set_count`. A reader of another's stack sees the blocks that were there
        // at this count, or newer ones.
        self.get(COUNTS + class, Ordering::Acquire)
    }

    #[inline(always)]
    fn set_count(&mut self, class: usize, count: u64) {
        // Release: pairs with the Acquire in `count`.
        self.set(COUNTS + class, count, Ordering::Release);
    }

    /// Returns the block of a class at position `at`, counted from the oldest.
    #[inline(always)]
    fn block(&self, class: usize, at: u64) -> u64 {
        // Relaxed: the owner wrote it; for other readers see `count`.
        self.get(word_of(class, at), Ordering::Relaxed)
    }

    /// Returns how often `index` is among the blocks of a class.
    fn times(&self, class: usize, index: u64) -> usize {
        let count = self.count(class).min(capacity(class));
        (0..count).filter(|&at| self.block(class, at) == index).count()
    }

    /// Removes the newest block.
    #[inline(always)]
    fn pop(&mut self, class: usize) -> Option<u64> {
        let left = self.count(class).checked_sub(1)?;
        let index = self.block(class, left);
        self.set_count(class, left);
        Some(index)
    }

    /// Returns whether a block is on top of the `count` blocks of a class.
    #[inline(always)]
    fn is_on_top(&self, class: usize, count: u64, index: u64) -> bool {
        count.checked_sub(1).is_some_and(|top| self.block(class, top) == index)
    }

    /// Returns `true` wherever [`is_on_top`](Self::is_on_top) does, without a test for an empty stack: it then compares
    /// the word before, which belongs to another class or is a count. There must be room for one more.
    #[inline(always)]
    fn may_be_on_top(&self, class: usize, count: u64, index: u64) -> bool {
        // Relaxed: as in `block`.
        self.get(word_of(class, count) - 1, Ordering::Relaxed) == index
    }

    /// Adds a block to the `count` that are there.
    #[inline(always)]
    fn push(&mut self, class: usize, count: u64, index: u64) {
        // Relaxed: `set_count` publishes it.
        self.set(word_of(class, count), index, Ordering::Relaxed);
        self.set_count(class, count + 1);
    }

    /// Removes the oldest blocks, as many as `blocks` has room for, and returns how many.
    fn take_oldest(&mut self, class: usize, blocks: &mut [u64]) -> usize {
        let count = self.count(class).min(capacity(class));
        let taken = count.min(blocks.len() as u64);
        // While the others move down the count is 0: a block that stood twice might be given back twice, if this caller
        // dies.
        self.set_count(class, 0);
        for (at, block) in (0..taken).zip(blocks) {
            *block = self.block(class, at);
        }
        for at in taken..count {
            let block = self.block(class, at);
            // Relaxed: `set_count` publishes it.
            self.set(word_of(class, at - taken), block, Ordering::Relaxed);
        }
        self.set_count(class, count - taken);
        taken as usize
    }

    /// Returns the number of blocks that the buddy allocator did not take back.
    fn refused(&self) -> u64 {
        // Relaxed: only a number, which publishes nothing.
        self.get(REFUSED, Ordering::Relaxed)
    }

    fn count_refused(&mut self) {
        let more = self.refused() + 1;
        // Relaxed: as in `refused`. Only the cache's owner writes it.
        self.set(REFUSED, more, Ordering::Relaxed);
    }
}

/// Words that nobody else sees.
impl Stacks for [u64; PART_WORDS] {
    #[inline(always)]
    fn get(&self, at: usize, _: Ordering) -> u64 {
        self[at]
    }

    #[inline(always)]
    fn set(&mut self, at: usize, value: u64, _: Ordering) {
        self[at] = value;
    }
}
