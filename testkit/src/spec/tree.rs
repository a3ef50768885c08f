//! A tree with the largest free block inside each aligned block of each order.

use crate::Block;

/// The tree: `largest[k][i]` is 1 + the order of the largest free block inside the block of order `k` at `i << k`, or 0
/// if there is none.
///
/// Setting a block of order k costs 2^(k+1) bytes written, plus one step per order above.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    largest: Vec<Vec<u8>>,
}

impl Tree {
    /// Creates the tree of `units` free units.
    pub fn new(units: u64) -> Self {
        let orders = 0..=units.ilog2();
        let largest = orders.map(|order| vec![0; units.div_ceil(1 << order) as usize]);
        let mut tree = Self { largest: largest.collect() };
        tree.largest[0].fill(1);
        for order in 1..=tree.max_order() {
            for node in 0..tree.largest[order as usize].len() {
                tree.recompute(order, node);
            }
        }
        tree
    }

    pub fn max_order(&self) -> u32 {
        self.largest.len() as u32 - 1
    }

    /// Returns a free block of `order`, if there is one.
    pub fn free_block(&self, order: u32) -> Option<Block> {
        let offers = |level: u32, node: &usize| {
            let largest = self.largest[level as usize].get(*node);
            largest.is_some_and(|&largest| u32::from(largest) > order)
        };
        let mut level = self.max_order();
        // Two blocks of the largest order may begin in the arena; its end cuts off the second.
        let mut node = (0..2).find(|node| offers(level, node))?;
        while level > order {
            level -= 1;
            let halves = [2 * node, 2 * node + 1];
            node = halves.into_iter().find(|node| offers(level, node))?;
        }
        let index = (node as u64) << order;
        Some(Block { index, order })
    }

    /// Returns whether all of the block is free.
    pub fn is_free(&self, block: Block) -> bool {
        let node = (block.index >> block.order) as usize;
        let largest = self.largest.get(block.order as usize);
        let largest = largest.and_then(|level| level.get(node));
        block.is_aligned() && largest.is_some_and(|&largest| u32::from(largest) == block.order + 1)
    }

    /// Returns how many blocks of `order` are wholly free.
    pub fn whole_blocks(&self, order: u32) -> u64 {
        let largest = self.largest.get(order as usize).map_or(&[][..], Vec::as_slice);
        let whole = largest.iter().filter(|&&largest| u32::from(largest) == order + 1);
        whole.count() as u64
    }

    /// Updates the tree below, in and above a block that became wholly free or wholly used.
    pub fn set(&mut self, block: Block, free: bool) {
        for order in 0..=block.order {
            let nodes = (block.index >> order) as usize..(block.units().end >> order) as usize;
            self.largest[order as usize][nodes].fill(if free { order as u8 + 1 } else { 0 });
        }
        for order in block.order + 1..=self.max_order() {
            self.recompute(order, (block.index >> order) as usize);
        }
    }

    /// Recomputes a node: two wholly free halves make a wholly free block; otherwise the better half counts.
    fn recompute(&mut self, order: u32, node: usize) {
        let halves = &self.largest[order as usize - 1];
        let left = halves[2 * node];
        let right = halves.get(2 * node + 1).copied().unwrap_or(0);
        let both_whole = u32::from(left) == order && u32::from(right) == order;
        self.largest[order as usize][node] =
            if both_whole { order as u8 + 1 } else { left.max(right) };
    }
}
