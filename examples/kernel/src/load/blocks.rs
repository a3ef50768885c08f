//! Blocks of all orders, allocated and freed at random.

use arrayvec::ArrayVec;

use crate::memory::{Context, Held, memory};
use crate::random::Random;

/// The most blocks that a CPU holds.
const MOST: usize = 256;

/// The blocks that a CPU holds.
pub struct Blocks {
    held: ArrayVec<Held, MOST>,
}

impl Blocks {
    pub const fn new() -> Self {
        Self { held: ArrayVec::new_const() }
    }

    /// Allocates or frees a block.
    pub fn step(&mut self, random: &mut Random) {
        if random.below(MOST as u64) < self.held.len() as u64 {
            let which = random.below(self.held.len() as u64) as usize;
            self.held.swap_remove(which).free();
        } else {
            let order = random.order(memory().buddy().max_order());
            self.held.extend(Held::alloc(Context::Program, order));
        }
    }

    /// Frees all.
    pub fn free_all(&mut self) {
        self.held.drain(..).for_each(Held::free);
    }
}
