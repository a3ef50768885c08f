//! A list per order of all blocks, free and used; every search begins at its head.

use std::collections::LinkedList;

use crate::guarded::{Sequential, largest_blocks};

/// A block on the list of its order.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    index: u64,
    free: bool,
}

/// The operations of both kinds of list.
pub trait BlockList: Default + Send {
    /// Returns the bytes on the heap.
    fn heap_bytes(&self) -> usize;

    /// Returns how many blocks it has.
    fn count(&self) -> usize;

    /// Adds a block at the end.
    fn add(&mut self, block: Block);

    /// Returns the place of the first suitable block.
    fn place(&self, will_do: impl Fn(&Block) -> bool) -> Option<usize>;

    /// Returns the block at a place.
    fn at(&mut self, place: usize) -> &mut Block;

    /// Takes the block at a place out.
    fn take_out(&mut self, place: usize) -> Block;
}

impl BlockList for Vec<Block> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<Block>()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, block: Block) {
        self.push(block);
    }

    fn place(&self, will_do: impl Fn(&Block) -> bool) -> Option<usize> {
        self.iter().position(will_do)
    }

    fn at(&mut self, place: usize) -> &mut Block {
        &mut self[place]
    }

    fn take_out(&mut self, place: usize) -> Block {
        self.remove(place)
    }
}

impl BlockList for LinkedList<Block> {
    fn heap_bytes(&self) -> usize {
        self.len() * (size_of::<Block>() + 2 * size_of::<usize>())
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, block: Block) {
        self.push_back(block);
    }

    fn place(&self, will_do: impl Fn(&Block) -> bool) -> Option<usize> {
        self.iter().position(will_do)
    }

    /// Searches from the nearer end.
    fn at(&mut self, place: usize) -> &mut Block {
        let from_behind = self.len() - 1 - place;
        let block = if place < from_behind {
            self.iter_mut().nth(place)
        } else {
            self.iter_mut().nth_back(from_behind)
        };
        block.expect("a place in the list")
    }

    fn take_out(&mut self, place: usize) -> Block {
        let mut tail = self.split_off(place);
        let block = tail.pop_front().expect("a place in the list");
        self.append(&mut tail);
        block
    }
}

/// The lists, by order.
#[derive(Debug)]
pub struct Lists<L>(Vec<L>);

impl<L: BlockList> Lists<L> {
    fn list(&mut self, order: u32) -> &mut L {
        &mut self.0[order as usize]
    }

    /// Returns the place of the first free block of the order, split from a larger one if there is none.
    fn find_or_split(&mut self, order: u32) -> Option<usize> {
        if let Some(place) = self.0.get(order as usize)?.place(|block| block.free) {
            return Some(place);
        }
        let place = self.find_or_split(order + 1)?;
        let whole = self.list(order + 1).take_out(place);
        let halves = self.list(order);
        halves.add(whole);
        halves.add(Block { index: whole.index + (1 << order), free: true });
        Some(halves.count() - 2)
    }
}

impl<L: BlockList> Sequential for Lists<L> {
    fn new(units: u64, max_order: u32) -> Self {
        let mut lists = Self((0..=max_order).map(|_| L::default()).collect());
        for (index, order) in largest_blocks(units, max_order) {
            lists.list(order).add(Block { index, free: true });
        }
        lists
    }

    fn alloc(&mut self, order: u32) -> Option<u64> {
        let place = self.find_or_split(order)?;
        let block = self.list(order).at(place);
        block.free = false;
        Some(block.index)
    }

    fn free(&mut self, mut index: u64, mut order: u32) -> bool {
        let in_use = |block: &Block| block.index == index && !block.free;
        let Some(mut place) = self.list(order).place(in_use) else { return false };
        self.list(order).at(place).free = true;
        while (order as usize) + 1 < self.0.len() {
            let buddy = index ^ (1 << order);
            let free_buddy = |block: &Block| block.index == buddy && block.free;
            let Some(buddys) = self.list(order).place(free_buddy) else { break };
            self.list(order).take_out(place.max(buddys));
            self.list(order).take_out(place.min(buddys));
            index &= buddy;
            order += 1;
            self.list(order).add(Block { index, free: true });
            place = self.list(order).count() - 1;
        }
        true
    }

    fn heap_bytes(&self) -> usize {
        self.0.iter().map(|list| size_of::<L>() + list.heap_bytes()).sum()
    }
}
