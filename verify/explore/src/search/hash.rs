//! Computes hashes of states.
//!
//! The hashes have 61 bits, and stand for the states. A program has at most a few million states, so the chance that
//! two of them have the same hash is a millionth.

/// Mixes two numbers: each bit of either changes half of the bits of the result.
#[inline]
pub fn mix(one: u64, two: u64) -> u64 {
    let two = two.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
    let mut mixed =
        one.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1656_67b1_9e37_79f9) ^ two;
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53_u64] {
        mixed = (mixed ^ mixed >> 32).wrapping_mul(factor);
    }
    mixed ^ mixed >> 32
}
