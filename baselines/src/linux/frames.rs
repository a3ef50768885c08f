//! The record of each frame, and the free lists that are threaded through the records.

use alloc::{vec, vec::Vec};

/// No frame: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// The part of the kernel's `struct page` that the buddy uses: list links, the order, the buddy flag.
#[derive(Clone, Copy, Debug)]
struct Frame {
    prev: u32,
    next: u32,
    /// The order of the free block that begins here; only valid while `free_head` is set.
    order: u8,
    /// Whether a free block begins here: the kernel's `PageBuddy`.
    free_head: bool,
}

/// The ends of the list of free blocks of one order.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// The end of its list to which a block is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The block is handed out next.
    Head,
    /// The block is handed out last.
    Tail,
}

/// All frames, and one list of free blocks per order.
#[derive(Debug)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    lists: Vec<Ends>,
}

impl Frames {
    /// Creates `units` frames that are on no list, and lists for orders 0 to `max_order`.
    pub fn new(units: u32, max_order: u32) -> Self {
        let frame = Frame { prev: NONE, next: NONE, order: 0, free_head: false };
        let empty = Ends { first: NONE, last: NONE };
        Self { frames: vec![frame; units as usize], lists: vec![empty; max_order as usize + 1] }
    }

    /// Returns the number of frames.
    pub fn len(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.frames) + size_of_val(&*self.lists)
    }

    /// Returns the block at the head of the list of `order`.
    pub fn first(&self, order: u32) -> Option<u32> {
        let first = self.lists[order as usize].first;
        (first != NONE).then_some(first)
    }

    /// Returns whether a free block of any order begins at `index`.
    pub fn is_free_head(&self, index: u32) -> bool {
        self.frames.get(index as usize).is_some_and(|frame| frame.free_head)
    }

    /// Returns whether a free block of exactly `order` begins at `index`: the kernel's `page_is_buddy`.
    pub fn is_free_block(&self, index: u32, order: u32) -> bool {
        let frame = self.frames.get(index as usize);
        frame.is_some_and(|frame| frame.free_head && u32::from(frame.order) == order)
    }

    /// Puts the block on the list of `order`.
    pub fn insert(&mut self, index: u32, order: u32, end: End) {
        let ends = self.lists[order as usize];
        let (prev, next) = match end {
            End::Head => (NONE, ends.first),
            End::Tail => (ends.last, NONE),
        };
        self.frames[index as usize] = Frame { prev, next, order: order as u8, free_head: true };
        self.link(order, prev, index, next);
    }

    /// Takes the block off the list of `order`.
    pub fn remove(&mut self, index: u32, order: u32) {
        let Frame { prev, next, .. } = self.frames[index as usize];
        self.frames[index as usize].free_head = false;
        match prev {
            NONE => self.lists[order as usize].first = next,
            prev => self.frames[prev as usize].next = next,
        }
        match next {
            NONE => self.lists[order as usize].last = prev,
            next => self.frames[next as usize].prev = prev,
        }
    }

    /// Makes the neighbours of `index`, or the ends of the list, point to it.
    fn link(&mut self, order: u32, prev: u32, index: u32, next: u32) {
        match prev {
            NONE => self.lists[order as usize].first = index,
            prev => self.frames[prev as usize].next = index,
        }
        match next {
            NONE => self.lists[order as usize].last = index,
            next => self.frames[next as usize].prev = index,
        }
    }
}
