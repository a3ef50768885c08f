//! A red-black tree of all blocks by address, each node on the heap, and a list per order of the free ones.

use std::cell::Cell;

use intrusive_collections::{
    KeyAdapter, RBTree, RBTreeLink, SinglyLinkedList, SinglyLinkedListLink, intrusive_adapter,
};

use crate::guarded::{Sequential, largest_blocks};

/// A block in the tree.
#[derive(Debug)]
pub struct Block {
    link: RBTreeLink,
    index: u64,
    order: Cell<u32>,
    free: Cell<bool>,
}

intrusive_adapter!(ByIndex = Box<Block>: Block { link => RBTreeLink });

impl<'a> KeyAdapter<'a> for ByIndex {
    type Key = u64;

    fn get_key(&self, block: &'a Block) -> u64 {
        block.index
    }
}

/// The operations of both kinds of list.
pub trait FreeList: Default + Send {
    /// Returns the bytes on the heap.
    fn heap_bytes(&self) -> usize;

    /// Adds a block to be handed out next.
    fn add(&mut self, index: u64);

    /// Takes the next block off the list.
    fn next(&mut self) -> Option<u64>;

    /// Searches for a block, and takes it off the list.
    fn take_out(&mut self, index: u64);
}

impl FreeList for Vec<u64> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<u64>()
    }

    fn add(&mut self, index: u64) {
        self.push(index);
    }

    fn next(&mut self) -> Option<u64> {
        self.pop()
    }

    fn take_out(&mut self, index: u64) {
        if let Some(place) = self.iter().position(|&other| other == index) {
            self.remove(place);
        }
    }
}

#[derive(Debug)]
pub struct Entry {
    link: SinglyLinkedListLink,
    index: u64,
}

intrusive_adapter!(Entries = Box<Entry>: Entry { link => SinglyLinkedListLink });

/// A singly linked list.
#[derive(Debug, Default)]
pub struct Singly(SinglyLinkedList<Entries>);

impl FreeList for Singly {
    fn heap_bytes(&self) -> usize {
        self.0.iter().count() * size_of::<Entry>()
    }

    fn add(&mut self, index: u64) {
        self.0.push_front(Box::new(Entry { link: SinglyLinkedListLink::new(), index }));
    }

    fn next(&mut self) -> Option<u64> {
        self.0.pop_front().map(|entry| entry.index)
    }

    fn take_out(&mut self, index: u64) {
        let mut before = self.0.cursor_mut();
        while let Some(entry) = before.peek_next().get() {
            if entry.index == index {
                before.remove_next();
                return;
            }
            before.move_next();
        }
    }
}

/// The tree, and the lists by order.
#[derive(Debug)]
pub struct Tree<L> {
    blocks: RBTree<ByIndex>,
    count: usize,
    free: Vec<L>,
}

impl<L: FreeList> Tree<L> {
    fn insert(&mut self, index: u64, order: u32) {
        let (order, free) = (Cell::new(order), Cell::new(true));
        self.blocks.insert(Box::new(Block { link: RBTreeLink::new(), index, order, free }));
        self.count += 1;
    }

    /// Takes a free block of the order off its list, split from a larger one if there is none.
    fn find_or_split(&mut self, order: u32) -> Option<u64> {
        if let Some(index) = self.free.get_mut(order as usize)?.next() {
            return Some(index);
        }
        let index = self.find_or_split(order + 1)?;
        let upper = index + (1 << order);
        self.blocks.find(&index).get()?.order.set(order);
        self.insert(upper, order);
        self.free[order as usize].add(upper);
        Some(index)
    }

    /// Takes the block out of the tree.
    fn remove(&mut self, index: u64) {
        self.blocks.find_mut(&index).remove();
        self.count -= 1;
    }

    /// Returns whether a block of the order, free or in use as given, begins at the unit.
    fn has(&self, index: u64, order: u32, free: bool) -> bool {
        let block = self.blocks.find(&index);
        block.get().is_some_and(|block| block.order.get() == order && block.free.get() == free)
    }
}

impl<L: FreeList> Sequential for Tree<L> {
    fn new(units: u64, max_order: u32) -> Self {
        let free = (0..=max_order).map(|_| L::default()).collect();
        let mut tree = Self { blocks: RBTree::default(), count: 0, free };
        for (index, order) in largest_blocks(units, max_order) {
            tree.insert(index, order);
            tree.free[order as usize].add(index);
        }
        tree
    }

    fn alloc(&mut self, order: u32) -> Option<u64> {
        let index = self.find_or_split(order)?;
        self.blocks.find(&index).get()?.free.set(false);
        Some(index)
    }

    fn free(&mut self, mut index: u64, mut order: u32) -> bool {
        if !self.has(index, order, false) {
            return false;
        }
        while (order as usize) + 1 < self.free.len() {
            let buddy = index ^ (1 << order);
            if !self.has(buddy, order, true) {
                break;
            }
            self.free[order as usize].take_out(buddy);
            self.remove(index.max(buddy));
            index &= buddy;
            order += 1;
        }
        if let Some(block) = self.blocks.find(&index).get() {
            block.order.set(order);
            block.free.set(true);
        }
        self.free[order as usize].add(index);
        true
    }

    fn heap_bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(|list| size_of::<L>() + list.heap_bytes()).sum();
        lists + self.count * size_of::<Block>()
    }
}
