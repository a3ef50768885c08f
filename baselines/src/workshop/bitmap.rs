//! A tree with the largest free order at or below each node of a complete binary tree.

use crate::guarded::Sequential;

/// The root is node 1, the children of node n are 2n and 2n + 1. An entry is 1 more than the order, or 0 if there is
/// none.
#[derive(Debug)]
pub struct Bitmap {
    entries: Box<[u8]>,
    depth: u32,
}

impl Bitmap {
    fn node(&self, index: u64, order: u32) -> usize {
        ((1 << self.depth | index) >> order) as usize
    }

    /// Sets the entry of a node of the order, and updates those of all nodes above.
    fn set(&mut self, mut node: usize, order: u32, entry: u8) {
        self.entries[node] = entry;
        let mut whole = order as u8 + 1;
        while node > 1 {
            let (this, other) = (self.entries[node], self.entries[node ^ 1]);
            node /= 2;
            let both_whole = this == whole && other == whole;
            whole += 1;
            self.entries[node] = if both_whole { whole } else { this.max(other) };
        }
    }
}

impl Sequential for Bitmap {
    fn new(units: u64, _max_order: u32) -> Self {
        let depth = units.next_power_of_two().ilog2();
        let mut entries = vec![0; 2 << depth].into_boxed_slice();
        for node in (1..entries.len()).rev() {
            let order = depth - node.ilog2();
            let end = ((node as u64 + 1) << order) - (1 << depth);
            entries[node] = if end <= units {
                order as u8 + 1
            } else if order == 0 {
                0
            } else {
                entries[2 * node].max(entries[2 * node + 1])
            };
        }
        Self { entries, depth }
    }

    fn alloc(&mut self, order: u32) -> Option<u64> {
        let wanted = order as u8 + 1;
        if self.entries[1] < wanted {
            return None;
        }
        let mut node = 1;
        for _ in order..self.depth {
            node *= 2;
            if self.entries[node] < wanted {
                node += 1;
            }
        }
        self.set(node, order, 0);
        Some(((node as u64) << order) - (1 << self.depth))
    }

    /// It trusts the caller for the order, as the workshop's does.
    fn free(&mut self, index: u64, order: u32) -> bool {
        let node = self.node(index, order);
        let in_use = self.entries[node] == 0;
        if in_use {
            self.set(node, order, order as u8 + 1);
        }
        in_use
    }

    fn heap_bytes(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Bitmap;
    use crate::guarded::Sequential;

    #[test]
    fn every_node_has_the_largest_free_order_below() {
        let mut tree = Bitmap::new(8, 3);
        assert_eq!(tree.alloc(0), Some(0));
        assert_eq!(tree.entries[1..8], [3, 2, 3, 1, 2, 2, 2]);
        assert_eq!(tree.entries[8..], [0, 1, 1, 1, 1, 1, 1, 1]);
        assert!(tree.free(0, 0) && !tree.free(0, 0));
        assert_eq!(tree.entries[1..4], [4, 3, 3]);
    }

    #[test]
    fn what_is_behind_the_last_unit_is_in_use() {
        let mut tree = Bitmap::new(5, 2);
        assert_eq!([tree.alloc(2), tree.alloc(1), tree.alloc(0)], [Some(0), None, Some(4)]);
        assert_eq!(tree.alloc(0), None);
    }
}
