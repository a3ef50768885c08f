//! What goes to and fro between a cache and its buddy allocator.

use super::caps::Caps;
use super::stacks::{BATCH, CLASSES, Stacks};
use crate::api::Lane;
use crate::error::{AllocError, FreeError};
use crate::sync::Word;

/// By which lane blocks come and go, and how many a cache keeps.
pub(super) struct Front<'b, W> {
    pub lane: Lane<'b, W>,
    pub caps: &'b Caps,
}

/// What became of a block that was to be freed.
pub(super) enum Freed {
    /// It is in the cache.
    Kept,
    /// It has to go to the buddy allocator, which knows best why not.
    Past,
}

impl<W: Word> Front<'_, W> {
    /// Puts a block of a small `order`, which is its class, into the stacks, if nothing speaks against it: the common
    /// case. Anything else, and what is to be checked, is left to [`free`](Self::free).
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

    /// Puts a block of `order` into the stacks, after the older half has gone if there is no room, or says where else
    /// it has to go.
    pub fn free(
        &self,
        stacks: &mut impl Stacks,
        class: usize,
        index: u64,
        order: u32,
    ) -> Result<Freed, FreeError> {
        if !self.fits(index, order) || self.caps.cap(class) == 0 {
            return Ok(Freed::Past);
        }
        // The one double free that costs nothing to see.
        let mut count = stacks.count(class);
        if is_on_top(stacks, class, count, index) {
            return Err(FreeError::NotAllocated { index });
        }
        if count >= self.caps.cap(class) {
            self.give_back(stacks, class);
            count = stacks.count(class);
        }
        stacks.push(class, count, index);
        Ok(Freed::Kept)
    }

    /// Whether a block of `order` may be at `index`.
    #[inline(always)]
    fn fits(&self, index: u64, order: u32) -> bool {
        // Bits below the order come to stand at the top, above any number of blocks.
        index.rotate_right(order) < self.lane.units() >> order
    }

    /// If frees are checked, looks whether a block of `order` at `index` is allocated and not cached.
    pub fn check(
        &self,
        is_cached: impl FnOnce() -> bool,
        index: u64,
        order: u32,
    ) -> Result<Freed, FreeError> {
        if !self.caps.is_checked() {
            return Ok(Freed::Kept);
        }
        if is_cached() {
            return Err(FreeError::NotAllocated { index });
        }
        match self.lane.order_at(index) {
            Ok(actual) if actual == order => Ok(Freed::Kept),
            Ok(actual) => Err(FreeError::WrongOrder { index, order, actual }),
            // Perhaps a run of as many units.
            Err(_) => Ok(Freed::Past),
        }
    }

    /// Allocates half of what the class may keep, where it keeps nothing, and returns the first of it.
    fn refill(&self, stacks: &mut impl Stacks, class: usize) -> Result<u64, AllocError> {
        let mut blocks = [0; BATCH];
        let half = &mut blocks[..self.caps.half(class)];
        let got = self.lane.alloc_batch(self.caps.order(class), half)?;
        // The lowest is on top.
        for (count, &block) in (0..).zip(half[1..got].iter().rev()) {
            stacks.push(class, count, block);
        }
        Ok(half[0])
    }

    /// Allocates a block of `order`, of a class that is kept or none, where the stacks have none; if the buddy
    /// allocator refuses, again after everything was given back.
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

    /// Gives the oldest half of what the class may keep back. Returns whether there was any.
    ///
    /// The oldest, since the others may still be in the processor's cache; sorted, so that neighbours in one word go
    /// back by one compare-and-swap.
    #[inline(never)]
    pub fn give_back(&self, stacks: &mut impl Stacks, class: usize) -> bool {
        let mut blocks = [0; BATCH];
        let taken = stacks.take_oldest(class, &mut blocks[..self.caps.half(class)]);
        blocks[..taken].sort_unstable();
        let mut left = &blocks[..taken];
        // What is refused was freed twice, or by a wrong order: it is left alone, and counted.
        while let Err(refused) = self.lane.free_batch(self.caps.order(class), left) {
            stacks.count_refused();
            left = &left[refused.done + 1..];
        }
        taken > 0
    }

    /// Gives everything back. Returns whether there was anything.
    #[cold]
    pub fn drain(&self, stacks: &mut impl Stacks) -> bool {
        let mut any = false;
        for class in 0..CLASSES {
            while self.give_back(stacks, class) {
                any = true;
            }
        }
        any
    }
}

/// Whether the block on top of the `count` of a class is this one.
#[inline(always)]
fn is_on_top(stacks: &impl Stacks, class: usize, count: u64, index: u64) -> bool {
    count.checked_sub(1).is_some_and(|top| stacks.block(class, top) == index)
}
