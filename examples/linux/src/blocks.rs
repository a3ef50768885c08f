//! Blocks as both examples draw and hold them.

use std::ops::Range;

/// A held block: its place, and the number from which its contents are made.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// First unit.
    pub index: u64,
    /// log2 of its units.
    pub order: u32,
    /// Never the same twice.
    pub tag: u64,
}

impl Held {
    /// Returns its units.
    pub fn units(self) -> Range<u64> {
        self.index..self.index + (1 << self.order)
    }
}

/// Draws the order of the next block. About half of all memory is in blocks of `large` and twice that, and the rest in
/// blocks of 1 to 32 units, each size half as often as the one before.
pub fn draw(random: &mut fastrand::Rng, large: u32) -> u32 {
    // A small block has 3.5 units; a large one as much as 1.5 of `large`, that is 3 for each block drawn.
    if random.u32(..1 << (large - 1)) == 0 {
        large + random.u32(..2)
    } else {
        random.u32(..).trailing_zeros().min(5)
    }
}

/// Takes a random one out of the blocks.
pub fn take_any(random: &mut fastrand::Rng, held: &mut Vec<Held>) -> Option<Held> {
    (!held.is_empty()).then(|| held.swap_remove(random.usize(..held.len())))
}
