//! The traffic between a cache and its buddy allocator.

use super::caps::Caps;
use super::stacks::{BATCH, CLASSES, Stacks};
use crate::api::Lane;
use crate::error::{AllocError, FreeError};
use crate::sync::Word;

/// The lane on which blocks are allocated and freed, and how many a cache keeps.
pub(super) struct Front<'b, W> {
    pub lane: Lane<'b, W>,
    pub caps: &'b Caps,
}

impl<W: Word> Front<'_, W> {
    /// Pushes a block of an order that has a `class` of its own, if there is no reason against it: the common case.
    /// Anything else, and any free to be checked, is left to [`free`](Self::free).
    #[inline(always)]
    pub fn keep(&self, stacks: &mut impl Stacks, class: usize, index: u64) -> bool {
        let count = stacks.count(class);
        let keeps = count < self.caps.unchecked(class)
            && self.fits(index, class as u32)
            && !stacks.may_be_on_top(class, count, index);
        if keeps {
            stacks.push(class, count, index);
        }
        keeps
    }

    /// Pushes a block of `order`, after giving back older ones if there is no room. Returns whether it did; a block that
    /// it did not push is for the buddy allocator to free or refuse.
    pub fn free(
        &self,
        stacks: &mut impl Stacks,
        class: usize,
        index: u64,
        order: u32,
    ) -> Result<bool, FreeError> {
        if !self.fits(index, order) || self.caps.cap(class) == 0 {
            return Ok(false);
        }
        // The one double free that costs nothing to detect.
        let mut count = stacks.count(class);
        if stacks.is_on_top(class, count, index) {
            return Err(FreeError::NotAllocated { index });
        }
        if count >= self.caps.cap(class) {
            self.make_room(stacks, class);
            count = stacks.count(class);
        }
        stacks.push(class, count, index);
        Ok(true)
    }

    /// Returns whether a block of `order` may begin at `index`.
    #[inline(always)]
    fn fits(&self, index: u64, order: u32) -> bool {
        // The rotation moves bits below the order to the top, where they exceed any number of blocks.
        index.rotate_right(order) < self.lane.units() >> order
    }

    /// If frees are checked, checks that a block of `order` at `index` is allocated and not cached. Returns whether it may
    /// be pushed; if not, the buddy allocator has to free or refuse what is there.
    pub fn check(
        &self,
        is_cached: impl FnOnce() -> bool,
        index: u64,
        order: u32,
    ) -> Result<bool, FreeError> {
        if !self.caps.is_checked() {
            return Ok(true);
        }
        if is_cached() {
            return Err(FreeError::NotAllocated { index });
        }
        match self.lane.block_order(index) {
            Ok(actual) if actual == order => Ok(true),
            Ok(actual) => Err(FreeError::WrongOrder { index, order, actual }),
            Err(_) => Ok(false),
        }
    }

    /// Allocates what one word has, up to half of what the class may keep, while it keeps nothing. Returns the first
    /// block of it. Where free blocks are scattered, taking more would search for each.
    fn refill(&self, stacks: &mut impl Stacks, class: usize) -> Result<u64, AllocError> {
        let mut blocks = [0; BATCH];
        let half = &mut blocks[..self.caps.half(class)];
        let got = self.lane.alloc_in_one_word(self.caps.order(class), half)?;
        // The lowest ends up on top.
        for (count, &block) in (0..).zip(half[1..got].iter().rev()) {
            stacks.push(class, count, block);
        }
        Ok(half[0])
    }

    /// Allocates a block of `order`, of a cached class or none, when the stacks have none. If the buddy allocator
    /// refuses, gives everything back and tries again.
    #[inline(always)]
    pub fn alloc(
        &self,
        stacks: &mut impl Stacks,
        class: Option<usize>,
        order: u32,
    ) -> Result<u64, AllocError> {
        let answer = match class {
            Some(class) => self.refill(stacks, class),
            None => self.lane.alloc(order),
        };
        match answer {
            Err(AllocError::Exhausted { .. }) if self.drain(stacks) => self.lane.alloc(order),
            answer => answer,
        }
    }

    /// Gives back the oldest blocks of a class that is full: half of them if one read-modify-write frees many, else an
    /// eighth, as each costs one.
    #[inline(never)]
    fn make_room(&self, stacks: &mut impl Stacks, class: usize) {
        let few = self.caps.eighth(class);
        let apart = stacks.block(class, 0).abs_diff(stacks.block(class, few as u64 - 1));
        // They fill a quarter of where they lie, going by the ends, or more.
        let are_close = few > 1 && apart >> self.caps.order(class) < 4 * few as u64;
        self.give_back(stacks, class, if are_close { self.caps.half(class) } else { few });
    }

    /// Gives back the `most` blocks that were freed longest ago.
    ///
    /// The oldest, since the other blocks may still be in the processor's cache; sorted, so that one compare-and-swap
    /// frees neighbours in one word.
    fn give_back(&self, stacks: &mut impl Stacks, class: usize, most: usize) {
        let mut blocks = [0; BATCH];
        let taken = stacks.take_oldest(class, &mut blocks[..most]);
        blocks[..taken].sort_unstable();
        let mut left = &blocks[..taken];
        // A refused block was freed twice, or with a wrong order: it is left alone, and counted.
        while let Err(refused) = self.lane.free_batch(self.caps.order(class), left) {
            stacks.count_refused();
            left = &left[refused.done + 1..];
        }
    }

    /// Gives everything back. Returns whether there was anything.
    #[cold]
    pub fn drain(&self, stacks: &mut impl Stacks) -> bool {
        let mut any = false;
        for class in 0..CLASSES {
            while stacks.count(class) > 0 {
                self.give_back(stacks, class, BATCH);
                any = true;
            }
        }
        any
    }
}
