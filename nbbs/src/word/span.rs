//! The codes of runs that need not be blocks. No atomics here.
//!
//! A run is *closed* if it lies in one word: a head and its rests. A run that extends beyond its word is *open*. It
//! begins in a leaf word with an open head, code `01` (otherwise: reserved) with a rest behind it, and fills that word
//! to its end; all units that follow, in whatever words, are rests. If the head is the last unit of its word, that rest
//! is the first unit of the next word.
//!
//! While a run is claimed, changed or freed, it is *hidden*: its codes in the first word are reserved except the last,
//! which is a head. So unless it is hidden, a head with its rests is the whole of what is held there, and nobody needs
//! to look further.
//!
//! ```text
//! closed   [. . H r r r r . ...]
//! open     [. . o r r r r r ...r]  [r r r r r . ...]        o: 01 before a rest
//!          [. . . . . . . . ...o]  [r r r r r . ...]
//! hidden   [. . o o o o o o ...H]  [r r r r r . ...]
//! ```
//!
//! A whole word is never a closed run: it would look like a block of the level above.

use crate::word::{self, HEAD, LOW, RESERVED};

/// Both bits of `count` slots from `slot` on.
pub(crate) const fn bits(slot: u32, count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - 2 * count) << (2 * slot) }
}

/// `count` rests from `slot` on.
pub(crate) const fn rests(slot: u32, count: u32) -> u64 {
    bits(slot, count) & !LOW
}

/// A closed run of `count` slots at `slot`.
pub(crate) const fn closed(slot: u32, count: u32) -> u64 {
    bits(slot, count) & !LOW | 1 << (2 * slot)
}

/// The part of an open run that lies in the leaf word of its head: `count` slots from `slot` to the end of the word.
pub(crate) const fn open(slot: u32, count: u32) -> u64 {
    closed(slot, count) ^ (HEAD ^ RESERVED) << (2 * slot)
}

/// `count` slots with the reserved code from `slot` on.
pub(crate) const fn reserved_at(slot: u32, count: u32) -> u64 {
    bits(slot, count) & LOW
}

/// Returns the part of a hidden run that lies in the leaf word where it begins: `count` slots from `slot` to the end of
/// the word.
pub(crate) const fn hidden(slot: u32, count: u32) -> u64 {
    // The last is not reserved: before a rest that would be an open head.
    reserved_at(slot, count) | HEAD << (2 * (slot + count - 1))
}

/// The slots with rests, by their low bits.
pub(crate) const fn rest_slots(codes: u64) -> u64 {
    codes >> 1 & !codes & LOW
}

/// The slots with heads, by their low bits.
pub(crate) const fn heads(codes: u64) -> u64 {
    codes & codes >> 1 & LOW
}

/// Returns the reserved slots of a leaf word, by their low bits. The last may be an open head, if the next word has
/// rests.
pub(crate) const fn reserved(codes: u64) -> u64 {
    word::split_slots(codes) & !(rest_slots(codes) >> 2)
}

/// Returns how many slots of a set, given by their low bits, are contiguous from `slot` on.
pub(crate) const fn length_from(set: u64, slot: u32) -> u32 {
    if slot >= 32 {
        return 0;
    }
    let others = !(set >> (2 * slot)) & LOW;
    if others == 0 { 32 } else { others.trailing_zeros() / 2 }
}

/// Returns the first of the contiguous slots of a set that end at `slot`; the slot after `slot` if the set does not
/// contain it.
pub(crate) const fn start_to(set: u64, slot: u32) -> u32 {
    let others = !set & word::first_slots(slot + 1);
    if others == 0 { 0 } else { (63 - others.leading_zeros()) / 2 + 1 }
}

/// Returns how many rests are contiguous from `slot` on.
pub(crate) const fn rests_from(codes: u64, slot: u32) -> u32 {
    length_from(rest_slots(codes), slot)
}

/// Returns the first of the contiguous rests that end at `slot`.
pub(crate) const fn rests_to(codes: u64, slot: u32) -> u32 {
    start_to(rest_slots(codes), slot)
}

/// Returns whether the `count` slots from `slot` on hold `codes`, with no further rest behind them.
pub(crate) const fn is_there(word: u64, slot: u32, count: u32, codes: u64) -> bool {
    let bits = bits(slot, count);
    word & bits == codes & bits && rests_from(word, slot + count) == 0
}

/// Returns where `count` contiguous slots begin among `free`.
pub(crate) const fn starts(free: u64, count: u32) -> u64 {
    let mut starts = free;
    let mut len = 1;
    while len < count {
        let step = if len < count - len { len } else { count - len };
        starts &= starts >> (2 * step);
        len += step;
    }
    starts
}

/// Finds where to claim `count` slots among `free`: at the start of the shortest stretch that has room.
pub(crate) fn fit(free: u64, count: u32) -> Option<u32> {
    let candidates = starts(free, count) & !(free << 2);
    word::from_slot(candidates, 0).min_by_key(|&slot| length_from(free, slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_runs_read_back_and_only_blocks_look_like_blocks() {
        for slot in 0..32 {
            for count in 1..=32 - slot {
                let codes = closed(slot, count);
                assert_eq!(word::code(codes, slot), HEAD);
                assert_eq!(rests_from(codes, slot + 1), count - 1);
                assert!(is_there(codes, slot, count, codes));
                let is_block = count.is_power_of_two() && slot.is_multiple_of(count);
                assert_eq!(word::block_order(codes, slot).is_some(), is_block);
                for order in 0..5 {
                    let looks_so = slot % (1 << order) == 0 && word::is_block(codes, slot, order);
                    assert_eq!(looks_so, is_block && count == 1 << order, "{slot} {count}");
                }
            }
        }
    }

    #[test]
    fn open_and_hidden_heads_are_no_blocks() {
        for slot in 0..31 {
            let codes = open(slot, 32 - slot);
            assert!(word::code(codes, slot) == RESERVED && reserved(codes) == 0);
            assert_eq!(rests_to(codes, 31), slot + 1);
            assert!((0..5).all(|order| !word::is_block(codes, slot, order)));
            let codes = hidden(slot, 32 - slot);
            assert_eq!(reserved(codes), reserved_at(slot, 31 - slot));
            assert!((0..5).all(|order| !word::is_block(codes, slot, order)));
            assert_eq!(codes & !bits(slot, 32 - slot), 0);
        }
        assert_eq!(rests_to(rests(0, 32), 31), 0);
        assert_eq!(rests_from(rests(0, 32), 0), 32);
    }

    #[test]
    fn in_the_last_slot_a_head_is_open_or_hidden_by_its_code() {
        assert_eq!(open(31, 1), reserved_at(31, 1));
        assert_eq!(hidden(31, 1), closed(31, 1));
    }

    #[test]
    fn the_shortest_stretch_that_suffices() {
        let free = bits(1, 5) & LOW | bits(10, 3) & LOW | bits(20, 12) & LOW;
        assert_eq!([3, 4, 6, 12].map(|count| fit(free, count)), [10, 1, 20, 20].map(Some));
        assert_eq!(fit(free, 13), None);
        assert_eq!(fit(LOW, 31), Some(0));
    }
}
