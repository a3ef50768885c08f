//! Four levels of the tree in one word (section III-D): pure arithmetic.
//!
//! A bunch is a node on level 0, 4, 8 and so on with the three levels below it. Its word has the status of its eight
//! lowest nodes; the status of the other seven follows from these. Where the tree ends within a bunch, its leaves stand
//! for the nodes that would be below them.
//!
//! ```text
//! 63      40 39    35 34    30        9      5 4      0
//! +---------+--------+--------+ .... +--------+--------+
//! | unused  | lowest | lowest |      | lowest | lowest |
//! |         | node 7 | node 6 |      | node 1 | node 0 |
//! +---------+--------+--------+ .... +--------+--------+
//! ```

use super::level;
use super::status::{BITS, BUSY, COAL, OCC};

/// The levels of a bunch.
const LEVELS: u32 = 4;

/// The number of lowest nodes of a bunch, which are at positions 8 to 15.
const LOWEST: u32 = 8;

/// All bits of a status.
const STATUS: u64 = (1 << BITS) - 1;

/// For each position, the lowest bit of the status of each lowest node there or below.
const EACH: [u64; 16] = {
    let mut each = [0; 16];
    let mut position = 15;
    while position > 0 {
        each[position as usize] = if position >= LOWEST {
            1 << (BITS * (position - LOWEST))
        } else {
            each[2 * position as usize] | each[2 * position as usize + 1]
        };
        position -= 1;
    }
    each
};

/// All occupancy bits in the whole bunch.
const ANY_BUSY: u64 = EACH[1] * BUSY;

/// The place of the status of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The topmost node of the bunch.
    pub root: u64,
    /// The level of the topmost node.
    pub root_level: u32,
    /// The position of the node in the bunch, counted as nodes are in the tree: the topmost is 1.
    position: usize,
}

/// Returns how many bunches a tree of `depth` levels below the root has.
pub fn count(depth: u32) -> u64 {
    number(1 << (depth / LEVELS * LEVELS + LEVELS), depth / LEVELS + 1)
}

/// Returns the number of a bunch in a tier, by its topmost node. Each tier has 16 times as many bunches as the one
/// above.
fn number(root: u64, tier: u32) -> u64 {
    root - ((14 << (LEVELS * tier)) + 1) / 15
}

impl Place {
    /// Returns the place of a node.
    pub fn of(node: u64) -> Self {
        let depth = level(node) % LEVELS;
        let position = 1 << depth | node & ((1 << depth) - 1);
        let root_level = level(node) - depth;
        Self { root: node >> depth, root_level, position: position as usize }
    }

    /// Returns the place of the parent of the topmost node, which is a lowest node of the bunch above.
    pub fn above(self) -> Self {
        let position = LOWEST as usize | (self.root >> 1 & 7) as usize;
        Self { root: self.root >> LEVELS, root_level: self.root_level - LEVELS, position }
    }

    /// Returns the number of the bunch.
    pub fn bunch(self) -> usize {
        number(self.root, self.root_level / LEVELS) as usize
    }

    /// Returns the bits `status` in every lowest node at or below the node.
    pub fn bits(self, status: u64) -> u64 {
        EACH[self.position] * status
    }

    /// Returns the status of a lowest node.
    pub fn status(self, word: u64) -> u64 {
        word >> self.shift() & STATUS
    }

    /// Returns the word with another status for a lowest node.
    pub fn with_status(self, word: u64, status: u64) -> u64 {
        word & !(STATUS << self.shift()) | status << self.shift()
    }

    fn shift(self) -> u32 {
        BITS * (self.position as u32 - LOWEST)
    }

    /// Returns the word with the node and all below it neither occupied nor coalescing.
    pub fn cleared(self, word: u64) -> u64 {
        word & !self.bits(STATUS)
    }

    /// Returns whether the status of every lowest node at or below the node is 0.
    pub fn is_clear(self, word: u64) -> bool {
        word & self.bits(STATUS) == 0
    }

    /// Returns whether nothing at or below the node is allocated: no occupancy bit, in the logical OR.
    pub fn is_free(self, word: u64) -> bool {
        word & self.bits(BUSY) == 0
    }

    /// Returns whether the buddy of the node, or of an ancestor in the bunch, is occupied: anything except the node.
    pub fn has_occ_buddy(self, word: u64) -> bool {
        self.cleared(word) & ANY_BUSY != 0
    }

    /// Returns whether the buddy of the node, or of an ancestor in the bunch, is occupied and not coalescing, both in
    /// the logical OR.
    pub fn has_settled_buddy(self, word: u64) -> bool {
        let settled = |each| word & (each * BUSY) != 0 && word & (each * COAL) == 0;
        self.has_occ_buddy(word) && self.path().any(|position| settled(EACH[position ^ 1]))
    }

    /// Returns the topmost ancestor in the bunch that is wholly allocated, or the node itself: the occupied bits, in
    /// the logical AND.
    pub fn topmost_occupied(self, word: u64) -> u64 {
        let occupied = |position: usize| !word & (EACH[position] * OCC) == 0;
        let ancestors = self.path().map(|position| position / 2);
        self.node_at(
            ancestors.filter(|&ancestor| occupied(ancestor)).last().unwrap_or(self.position),
        )
    }

    /// Iterates over the positions of the node and its ancestors in the bunch, except the topmost.
    fn path(self) -> impl Iterator<Item = usize> {
        (0..LEVELS - 1).map(move |up| self.position >> up).take_while(|&position| position > 1)
    }

    fn node_at(self, position: usize) -> u64 {
        let depth = position.ilog2();
        self.root << depth | (position & ((1 << depth) - 1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterates over the nodes of a bunch, with their positions.
    fn bunch_of(root: u64) -> impl Iterator<Item = (u64, usize)> {
        (1..16).map(move |position: usize| {
            let depth = position.ilog2();
            ((root << depth) + position as u64 - (1 << depth), position)
        })
    }

    #[test]
    fn every_node_has_a_place_of_its_own() {
        let mut next = 0;
        for root in [1..2, 16..32, 256..512].into_iter().flatten() {
            for (node, position) in bunch_of(root) {
                let place = Place::of(node);
                assert_eq!((place.root, place.root_level), (root, level(root)));
                assert_eq!((place.position, place.bunch()), (position, next));
                assert_eq!(place.node_at(position), node);
            }
            next += 1;
        }
        assert_eq!([count(0), count(3), count(4), count(7), count(8)], [1, 1, 17, 17, 273]);
        assert_eq!(count(11), next as u64);
    }

    #[test]
    fn above_is_the_parent_of_the_topmost_node() {
        for root in (16..32).chain(256..512) {
            for (node, _) in bunch_of(root) {
                assert_eq!(Place::of(node).above(), Place::of(root / 2));
            }
        }
    }

    /// Compares with the eight statuses one by one.
    #[test]
    fn states_follow_from_the_lowest_nodes() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let pick = |_| *random.choice(&[0, 0, BUSY, 1, 2, 4, 8, 6, 9, 3]).unwrap();
            let lowest: Vec<u64> = (0..8).map(pick).collect();
            let word = (0..).zip(&lowest).map(|(place, status)| status << (5 * place)).sum();
            let below = |position: usize| {
                let span = 8 >> position.ilog2();
                &lowest[(position * span - 8)..][..span]
            };
            let occ = |position| below(position).iter().any(|status| status & BUSY != 0);
            let coal = |position| below(position).iter().any(|status| status & COAL != 0);
            let full = |position| below(position).iter().all(|status| status & OCC != 0);
            for (node, position) in bunch_of(16) {
                let place = Place::of(node);
                let path = || (0..position.ilog2()).map(|up| position >> up);
                assert_eq!(place.is_free(word), !occ(position));
                assert_eq!(place.is_clear(word), below(position).iter().all(|&status| status == 0));
                assert_eq!(place.has_occ_buddy(word), path().any(|on_path| occ(on_path ^ 1)));
                let settled = |buddy| occ(buddy) && !coal(buddy);
                assert_eq!(place.has_settled_buddy(word), path().any(|up| settled(up ^ 1)));
                let topmost = path().map(|up| up / 2).rev().find(|&up| full(up));
                let topmost = place.node_at(topmost.unwrap_or(position));
                assert_eq!(place.topmost_occupied(word), topmost);
                let cleared = place.cleared(word);
                assert!(place.is_clear(cleared) && (word ^ cleared) & !place.bits(STATUS) == 0);
            }
        }
    }
}
