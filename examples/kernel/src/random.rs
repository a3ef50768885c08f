//! Draws at random.

use fastrand::Rng;

/// A sequence of numbers, for one context: a CPU, or one of its handlers.
pub struct Random(Rng);

impl Random {
    /// A sequence for each seed.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Draws an order: each half as often as the one below, and now and then any up to `max`.
    pub fn order(&mut self, max: u32) -> u32 {
        if self.below(1024) == 0 {
            self.0.u32(..=max)
        } else {
            self.draw().trailing_zeros().min(max)
        }
    }
}
