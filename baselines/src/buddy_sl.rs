//! The array-tree buddy with a spin lock, with which the paper compares under the name `buddy-sl`.
//!
//! It follows <https://github.com/cloudwu/buddy>: a status for each node of a complete binary tree in an array, first
//! fit by a walk that starts at the root, merging on every free, and one lock around everything.

use spin::mutex::SpinMutex;
use testkit::BackEnd;

use crate::lock::Apart;

/// The most units of an arena.
pub const MAX_UNITS: u64 = 1 << 36;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Free as a whole.
    Unused,
    /// Allocated as a whole.
    Used,
    /// Some unit below is free.
    Split,
    /// All units below are allocated.
    Full,
}

/// The array-tree buddy behind one spin lock.
#[derive(Debug)]
pub struct BuddySl {
    units: u64,
    metadata_bytes: usize,
    tree: Apart<SpinMutex<Tree>>,
}

impl BuddySl {
    /// Creates an arena of `units` free units.
    ///
    /// # Panics
    /// If `units` is 0 or above 2^36.
    #[must_use]
    pub fn new(units: u64) -> Self {
        assert!((1..=MAX_UNITS).contains(&units), "1 to {MAX_UNITS} units, not {units}");
        let tree = Tree::new(units);
        let metadata_bytes = size_of::<Self>() + size_of_val(&*tree.nodes);
        Self { units, metadata_bytes, tree: Apart(SpinMutex::new(tree)) }
    }
}

impl BackEnd for BuddySl {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.units.ilog2()
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        if order <= self.max_order() { self.tree.lock().alloc(order) } else { None }
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        if index < self.units && self.tree.lock().free(index, order) {
            Ok(())
        } else {
            Err(format!("no block of order {order} is in use at {index}"))
        }
    }
}

/// The root is node 1, the children of node n are 2n and 2n + 1.
#[derive(Debug)]
struct Tree {
    nodes: Box<[Status]>,
    depth: u32,
}

impl Tree {
    /// Creates a complete tree, in which everything after the last unit is in use permanently.
    fn new(units: u64) -> Self {
        let depth = units.next_power_of_two().ilog2();
        let nodes = vec![Status::Unused; 2 << depth].into_boxed_slice();
        let mut tree = Self { nodes, depth };
        let mut behind = units;
        while behind < 1 << depth {
            let order = behind.trailing_zeros();
            tree.claim(behind, order);
            behind += 1 << order;
        }
        tree
    }

    /// Allocates the first free block of the order, from the left.
    fn alloc(&mut self, order: u32) -> Option<u64> {
        let mut node = 1;
        loop {
            let height = self.depth - level(node);
            match self.nodes[node] {
                Status::Unused if height == order => {
                    self.nodes[node] = Status::Used;
                    self.mark_full_above(node);
                    return Some(self.unit(node));
                }
                Status::Unused => {
                    self.split(node);
                    node *= 2;
                }
                Status::Split if height > order => node *= 2,
                _ => node = next_to_the_right(node)?,
            }
        }
    }

    /// Frees the block of the order at the unit. Returns `false`, and changes nothing, if no such block is in use.
    fn free(&mut self, unit: u64, order: u32) -> bool {
        let mut node = 1;
        loop {
            let height = self.depth - level(node);
            match self.nodes[node] {
                Status::Used => {
                    let found = height == order && self.unit(node) == unit;
                    if found {
                        self.merge(node);
                    }
                    return found;
                }
                Status::Unused => return false,
                Status::Split | Status::Full => {
                    node = 2 * node + (unit >> (height - 1) & 1) as usize;
                }
            }
        }
    }

    /// Allocates this very block, all of which is free.
    fn claim(&mut self, unit: u64, order: u32) {
        let node = ((1 << self.depth | unit) >> order) as usize;
        for above in (1..=level(node)).rev().map(|up| node >> up) {
            if self.nodes[above] == Status::Unused {
                self.split(above);
            }
        }
        self.nodes[node] = Status::Used;
        self.mark_full_above(node);
    }

    fn split(&mut self, node: usize) {
        self.nodes[node] = Status::Split;
        self.nodes[2 * node..2 * node + 2].fill(Status::Unused);
    }

    /// Marks the ancestors of a node that became used or full as full, as far as their other halves are.
    fn mark_full_above(&mut self, mut node: usize) {
        while node > 1 && matches!(self.nodes[node ^ 1], Status::Used | Status::Full) {
            node /= 2;
            self.nodes[node] = Status::Full;
        }
    }

    /// Frees the node together with its ancestors as far as their other halves are free.
    fn merge(&mut self, mut node: usize) {
        while node > 1 && self.nodes[node ^ 1] == Status::Unused {
            node /= 2;
        }
        self.nodes[node] = Status::Unused;
        while node > 1 && self.nodes[node / 2] == Status::Full {
            node /= 2;
            self.nodes[node] = Status::Split;
        }
    }

    /// Returns the first unit of the node.
    fn unit(&self, node: usize) -> u64 {
        ((node as u64) << (self.depth - level(node))) - (1 << self.depth)
    }
}

fn level(node: usize) -> u32 {
    node.ilog2()
}

/// Returns the right-hand buddy of the node, or of its nearest ancestor that has one.
fn next_to_the_right(node: usize) -> Option<usize> {
    let left = node >> node.trailing_ones();
    (left > 0).then_some(left + 1)
}

#[cfg(test)]
mod tests {
    use super::{Status, Tree};

    #[test]
    fn the_walk_goes_from_left_to_right() {
        let mut tree = Tree::new(8);
        assert_eq!([tree.alloc(0), tree.alloc(1), tree.alloc(0)], [Some(0), Some(2), Some(1)]);
        assert_eq!([tree.alloc(2), tree.alloc(0)], [Some(4), None]);
        assert!(tree.free(2, 1) && !tree.free(2, 1) && !tree.free(4, 1));
        assert_eq!([tree.alloc(2), tree.alloc(0)], [None, Some(2)]);
    }

    #[test]
    fn full_halves_are_full_as_a_whole() {
        let mut tree = Tree::new(6);
        assert_eq!(tree.nodes[1], Status::Split);
        assert_eq!([tree.alloc(2), tree.alloc(1), tree.alloc(0)], [Some(0), Some(4), None]);
        assert_eq!((tree.nodes[1], tree.nodes[3]), (Status::Full, Status::Full));
        assert!(tree.free(4, 1));
        assert_eq!((tree.nodes[1], tree.nodes[3]), (Status::Split, Status::Split));
    }
}
