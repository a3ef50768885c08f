//! Blocks as both examples draw and hold them.

use std::ops::Range;

/// A block in somebody's hands: its place, and the number that its contents are made of.
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
    /// Its units.
    pub fn units(self) -> Range<u64> {
        self.index..self.index + (1 << self.order)
    }
}

/// The order of the next block. About half of all memory is in blocks of `large` and twice that, the rest in blocks of 1
/// to 32 units, each size half as often as the one before.
pub fn draw(random: &mut fastrand::Rng, large: u32) -> u32 {
    // A small block has 3.5 units; a large one as much as 1.5 of `large`, that is 3 for each block drawn.
    if random.u32(..1 << (large - 1)) == 0 {
        large + random.u32(..2)
    } else {
        random.u32(..).trailing_zeros().min(5)
    }
}

/// Takes one out of the blocks, whichever it is.
pub fn take_any(random: &mut fastrand::Rng, held: &mut Vec<Held>) -> Option<Held> {
    (!held.is_empty()).then(|| held.swap_remove(random.usize(..held.len())))
}
