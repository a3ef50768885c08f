//! Random numbers, good enough to draw orders and places by.

/// Marsaglia's xorshift.
pub struct Random(u64);

impl Random {
    /// A sequence for each seed.
    pub const fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.draw() >> 16) % end
    }

    /// An order: each half as often as the one below, and now and then any up to `max`.
    pub fn order(&mut self, max: u32) -> u32 {
        if self.below(1024) == 0 {
            self.below(u64::from(max) + 1) as u32
        } else {
            self.draw().trailing_zeros().min(max)
        }
    }
}
