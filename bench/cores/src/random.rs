//! Random places and orders, which each hart draws for itself.

/// Marsaglia's xorshift. It takes few instructions, since these count.
pub struct Random(u64);

impl Random {
    /// Creates a different sequence for each hart.
    pub fn new(hart: usize) -> Self {
        Self((hart as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Draws a number below a power of two.
    pub fn below(&mut self, power: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize & (power - 1)
    }
}
