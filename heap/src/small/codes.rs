//! The codes of units in one word. No atomics here.
//!
//! ```text
//! 00 free    11 head of a run    10 rest of a run    01 held: a head whose run is changing
//! ```
//!
//! These are the codes of the buddy allocator's leaf words, without those that tell blocks of several levels apart.

/// What contiguous units are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Free,
    /// A run, which may be held.
    Run,
    /// Rests of a run whose head was not there when its word was read.
    Rests,
}

/// The low bit of every unit.
const LOW: usize = usize::MAX / 3;

/// Both bits of `count` units from `at` on.
pub const fn bits(at: u32, count: u32) -> usize {
    if count == 0 { 0 } else { usize::MAX >> (usize::BITS - 2 * count) << (2 * at) }
}

/// `count` rests from `at` on.
pub const fn rests(at: u32, count: u32) -> usize {
    bits(at, count) & !LOW
}

/// The first `count` units of a run that begins at `at`: nothing for none.
pub const fn run(at: u32, count: u32) -> usize {
    rests(at, count) | LOW & bits(at, if count == 0 { 0 } else { 1 })
}

/// The first `count` units of a run that begins at `at` and is held.
pub const fn held(at: u32, count: u32) -> usize {
    run(at, count) ^ 0b10 << (2 * at)
}

/// The units in use, by their low bits.
pub const fn in_use(word: usize) -> usize {
    (word | word >> 1) & LOW
}

/// The free units, by their low bits.
pub const fn free(word: usize) -> usize {
    !in_use(word) & LOW
}

/// The units with rests, by their low bits.
const fn rest_units(word: usize) -> usize {
    word >> 1 & !word & LOW
}

/// Returns how many units of a set, given by their low bits, are contiguous from `at` on.
pub const fn length(set: usize, at: u32) -> u32 {
    if 2 * at >= usize::BITS {
        return 0;
    }
    let others = !(set >> (2 * at)) & LOW;
    if others == 0 { usize::BITS / 2 - at } else { others.trailing_zeros() / 2 }
}

/// Returns the first of the contiguous units of a set that end in front of `end`.
pub const fn start(set: usize, end: u32) -> u32 {
    let others = !set & LOW & bits(0, end);
    if others == 0 { 0 } else { (usize::BITS - 1 - others.leading_zeros()) / 2 + 1 }
}

/// Returns how many rests are contiguous from `at` on.
pub const fn rests_from(word: usize, at: u32) -> u32 {
    length(rest_units(word), at)
}

/// Returns whether the `count` units from `at` on hold `codes`, with no further rest behind them in the word.
pub const fn is_there(word: usize, at: u32, count: u32, codes: usize) -> bool {
    word & bits(at, count) == codes && rests_from(word, at + count) == 0
}

/// Returns what the units from `at` on are used for, and how many of them are, of one run at most.
pub const fn first_use(word: usize, at: u32) -> (Use, u32) {
    let (free, rests) = (length(free(word), at), rests_from(word, at));
    if free > 0 {
        (Use::Free, free)
    } else if rests > 0 {
        (Use::Rests, rests)
    } else {
        (Use::Run, 1 + rests_from(word, at + 1))
    }
}
