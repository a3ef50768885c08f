//! Places and orders, drawn by each hart for itself.

/// Marsaglia's xorshift: few instructions, as they count.
pub struct Random(u64);

impl Random {
    /// Another sequence for each hart.
    pub fn new(hart: usize) -> Self {
        Self((hart as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a power of two.
    pub fn below(&mut self, power: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize & (power - 1)
    }
}
