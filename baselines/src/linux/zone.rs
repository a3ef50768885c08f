//! Splitting and merging over the free lists.

use super::frames::{End, Frames};

/// A zone: a run of frames with its free lists. The caller holds the lock.
#[derive(Debug)]
pub struct Zone {
    frames: Frames,
    max_order: u32,
}

impl Zone {
    /// Creates a zone with all units free, in the largest aligned blocks that fit, the lowest address at the head.
    pub fn new(units: u32, max_order: u32) -> Self {
        let mut frames = Frames::new(units, max_order);
        let mut index = 0;
        while index < units {
            let order = index.trailing_zeros().min((units - index).ilog2()).min(max_order);
            frames.insert(index, order, End::Tail);
            index += 1 << order;
        }
        Self { frames, max_order }
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes()
    }

    /// Allocates the first block of the smallest order that suffices, cut to size: `__rmqueue_smallest`.
    pub fn alloc(&mut self, order: u32) -> Option<u32> {
        for found in order..=self.max_order {
            if let Some(index) = self.frames.first(found) {
                self.frames.remove(index, found);
                self.give_back_upper_halves(index, order, found);
                return Some(index);
            }
        }
        None
    }

    /// Halves a block of order `high` until `low` is left, and puts each upper half on its list: `expand`.
    fn give_back_upper_halves(&mut self, index: u32, low: u32, high: u32) {
        for order in (low..high).rev() {
            self.frames.insert(index + (1 << order), order, End::Head);
        }
    }

    /// Merges the block with its buddy as long as the buddy is free, then lists it: `__free_one_page`. Returns `false`,
    /// and changes nothing, if a free block begins at `index`.
    pub fn free(&mut self, mut index: u32, mut order: u32) -> bool {
        if self.frames.is_free_head(index) {
            return false;
        }
        while order < self.max_order {
            let buddy = index ^ (1 << order);
            if !self.frames.is_free_block(buddy, order) {
                break;
            }
            self.frames.remove(buddy, order);
            index &= buddy;
            order += 1;
        }
        let end = if self.merge_is_likely(index, order) { End::Tail } else { End::Head };
        self.frames.insert(index, order, end);
        true
    }

    /// Returns whether a free of the block's buddy would let the two merge with a free block of the next order. If so,
    /// the block should wait at the tail: the kernel's `buddy_merge_likely`.
    fn merge_is_likely(&self, index: u32, order: u32) -> bool {
        if order + 1 >= self.max_order {
            return false;
        }
        let parent = index & !(1 << order);
        let uncle = parent ^ (1 << (order + 1));
        uncle < self.frames.len() && self.frames.is_free_block(uncle, order + 1)
    }
}
