//! The codes in a word, and the arithmetic on them. No atomics here.
//!
//! ```text
//! leaf word (level 0): 32 units x 2 bits          inner word (level 1 and up)
//!                                                   63  62    57 56       32 31            0
//!   00 free    01 reserved                        +-----+--------+-----------+---------------+
//!   11 head    10 rest (of a block)               | mark| bound 6| version 25| 16 slots x 2  |
//!                                                 +-----+--------+-----------+---------------+
//!                                                  00 free   01 split   11 head   10 rest
//! ```
//!
//! Slot s takes bits 2s and 2s + 1; slot 0 stands for the lowest units. A *set* of slots is a word with the low bit of
//! each. An `order` that a function here takes or returns is in slots, of which 2^order are meant; a bound's is in units.
//!
//! *split*: the state is in the word below. *bound*: no block below the split slots has a larger order; stored as the
//! order plus 1, 0 for none, [`UNSETTLED`] where a merge may be waiting below. *mark*: somebody is inspecting the words
//! below. *version*: grows with every mark, so that no two marks look alike.

pub(crate) mod span;

pub(crate) const FREE: u64 = 0b00;
pub(crate) const SPLIT: u64 = 0b01;
pub(crate) const RESERVED: u64 = 0b01;
pub(crate) const REST: u64 = 0b10;
pub(crate) const HEAD: u64 = 0b11;

/// The mark of an inner word.
pub(crate) const MARK: u64 = 1 << 63;

/// The bound of a word below which a merge may be waiting.
pub(crate) const UNSETTLED: u64 = 63;

const CODES: u64 = (1 << 32) - 1;
const VERSION_ONE: u64 = 1 << 32;
const VERSION: u64 = (1 << 57) - VERSION_ONE;
const BOUND_SHIFT: u32 = 57;

/// The low bit of every slot.
const LOW: u64 = 0x5555_5555_5555_5555;
/// The high bit of every slot.
const HIGH: u64 = !LOW;

/// The low bits of the slots at multiples of `2^order`.
const ALIGNED: [u64; 8] = [
    LOW,
    0x1111_1111_1111_1111,
    0x0101_0101_0101_0101,
    0x0001_0001_0001_0001,
    0x0000_0001_0000_0001,
    0x0000_0000_0000_0001,
    0,
    0,
];

/// The codes of a word of `level`.
#[inline(always)]
pub(crate) const fn codes(level: usize, word: u64) -> u64 {
    if level == 0 { word } else { word & CODES }
}

/// The bound of an inner word.
#[inline(always)]
pub(crate) const fn bound(word: u64) -> u64 {
    word >> BOUND_SHIFT & 63
}

/// Returns the successor of inner word `old`, with other codes and another bound, and no mark.
#[inline(always)]
pub(crate) const fn inner(old: u64, codes: u64, bound: u64) -> u64 {
    old & VERSION | bound << BOUND_SHIFT | codes
}

/// Returns the successor of inner word `old` with a mark, and a version that no mark since has had.
#[inline(always)]
pub(crate) const fn marked(old: u64) -> u64 {
    old & !VERSION | ((old & VERSION) + VERSION_ONE) & VERSION | MARK
}

/// The bound of an inner word, and 64 more if it is marked: the mark is directly above the bound.
#[inline(always)]
pub(crate) const fn bound_and_mark(word: u64) -> u64 {
    word >> BOUND_SHIFT
}

/// Returns the bound of an inner word that is unmarked.
#[inline(always)]
pub(crate) fn unmarked_bound(word: u64) -> Option<u64> {
    let bound = bound_and_mark(word);
    (bound < 64).then_some(bound)
}

/// Returns whether an inner word is unmarked and has a bound of at least `offer`.
#[inline(always)]
pub(crate) const fn allows(word: u64, offer: u64) -> bool {
    // A marked word is out of range too.
    bound_and_mark(word).wrapping_sub(offer) < 64 - offer
}

/// Returns whether an inner word is unmarked and its `slot` split.
#[inline(always)]
pub(crate) const fn passes(word: u64, slot: u32) -> bool {
    (word ^ SPLIT << (2 * slot)) & (0b11 << (2 * slot) | MARK) == 0
}

/// Returns the successor of `old`, a word of `level`, with other codes and no mark.
#[inline(always)]
pub(crate) const fn with_codes(level: usize, old: u64, codes: u64) -> u64 {
    if level == 0 { codes } else { old & !(CODES | MARK) | codes }
}

/// Returns the slots whose codes differ, by their low bits.
#[inline(always)]
const fn changed_slots(from: u64, to: u64) -> u64 {
    let changed = from ^ to;
    (changed | changed >> 1) & LOW
}

/// Returns whether every slot in which the codes of a word of `level` differ is free in `from`, and neither free nor
/// split in `to`.
#[inline(always)]
pub(crate) const fn only_fills(level: usize, from: u64, to: u64) -> bool {
    let changed = changed_slots(from, to);
    let split = if level == 0 { 0 } else { split_slots(to) };
    free_slots(from) & changed == changed && split & changed == 0
}

/// Returns whether the same slots of a word of `level` are split in both. A leaf word has no split slots.
#[inline(always)]
pub(crate) const fn keeps_split(level: usize, from: u64, to: u64) -> bool {
    level == 0 || split_slots(from) == split_slots(to)
}

/// The code of `slot`.
#[inline(always)]
pub(crate) const fn code(word: u64, slot: u32) -> u64 {
    word >> (2 * slot) & 0b11
}

/// The first `count` slots, by their low bits.
#[inline(always)]
pub(crate) const fn first_slots(count: u32) -> u64 {
    if count == 0 { 0 } else { LOW >> (64 - 2 * count) }
}

/// Both bits of the slots of a set, given by their low bits.
#[inline(always)]
pub(crate) const fn both_bits(set: u64) -> u64 {
    set | set << 1
}

/// The free slots, by their low bits.
#[inline(always)]
pub(crate) const fn free_slots(codes: u64) -> u64 {
    !(codes | codes >> 1) & LOW
}

/// The slots with code `01`, by their low bits: split in an inner word, reserved in a leaf word.
#[inline(always)]
pub(crate) const fn split_slots(codes: u64) -> u64 {
    codes & !(codes >> 1) & LOW
}

/// Both bits of a block of `2^order` slots at slot 0.
#[inline(always)]
pub(crate) const fn block_bits(order: u32) -> u64 {
    BLOCK_BITS[order as usize & 7]
}

const BLOCK_BITS: [u64; 8] = [
    (1 << 2) - 1,
    (1 << 4) - 1,
    (1 << 8) - 1,
    (1 << 16) - 1,
    (1 << 32) - 1,
    u64::MAX,
    u64::MAX,
    u64::MAX,
];

/// The codes of a block of `2^order` slots at slot 0.
#[inline(always)]
pub(crate) const fn block(order: u32) -> u64 {
    block_bits(order) & HIGH | 1
}

/// Returns the order, in slots, of the block whose head is in `slot`; `None` if no block looks like that.
#[inline(always)]
pub(crate) const fn block_order(codes: u64, slot: u32) -> Option<u32> {
    let rests = (codes >> (2 * slot) >> 2 ^ HIGH).trailing_zeros() / 2;
    let length = rests + 1;
    if length.is_power_of_two() && slot.is_multiple_of(length) {
        Some(length.trailing_zeros())
    } else {
        None
    }
}

/// Returns whether a block of `2^order` slots, no more and no less, begins in `slot`.
#[inline(always)]
pub(crate) const fn is_block(codes: u64, slot: u32, order: u32) -> bool {
    let from_slot = codes >> (2 * slot);
    // The slot after the block, the lowest that is not in it, must not be a rest.
    let after = !block_bits(order) & (block_bits(order) << 2);
    from_slot & block_bits(order) == block(order) && from_slot & after != after & HIGH
}

/// Returns the places of `2^order` slots, aligned, that are all among `free`, by the low bits of their first slots.
#[inline(always)]
pub(crate) const fn places(free: u64, order: u32) -> u64 {
    let last = LAST_BITS[order as usize & 7];
    // The addition carries into the last bit of each place in which a slot is missing, and no further.
    let missing = (!free & LOW).wrapping_add(!last);
    (!missing & last).wrapping_shr((2 << order) - 1)
}

/// The last bit of each place of `2^order` slots.
const LAST_BITS: [u64; 8] = [
    HIGH,
    0x8888_8888_8888_8888,
    0x8080_8080_8080_8080,
    0x8000_8000_8000_8000,
    0x8000_0000_8000_0000,
    0x8000_0000_0000_0000,
    0,
    0,
];

/// Finds where to claim `2^order` slots, aligned, among `free`: a place whose buddy is in use, if there is one.
#[inline(always)]
pub(crate) fn fit(free: u64, order: u32) -> Option<u32> {
    let places = places(free, order);
    // Tested first, as most words that are full have no room at all.
    if places == 0 {
        return None;
    }
    let lone = lone(places, order);
    let choice = if lone != 0 { lone } else { places };
    Some(choice.trailing_zeros() / 2)
}

/// Finds where to claim `2^order` slots, aligned, among `free`, at a place whose buddy is in use.
#[inline(always)]
pub(crate) fn lone_fit(free: u64, order: u32) -> Option<u32> {
    let lone = lone(places(free, order), order);
    (lone != 0).then(|| lone.trailing_zeros() / 2)
}

/// Returns those of `places`, which are of `2^order` slots, whose buddy is not among them.
#[inline(always)]
const fn lone(places: u64, order: u32) -> u64 {
    let pairs = places & places >> (2 << order) & ALIGNED[(order as usize + 1) & 7];
    places & !(pairs | pairs << (2 << order))
}

/// Returns whether all of `2^order` slots at `slot` are free.
#[inline(always)]
pub(crate) const fn is_free(codes: u64, slot: u32, order: u32) -> bool {
    codes & block_bits(order) << (2 * slot) == 0
}

/// Returns the successor of `old`, a word of `level`, with another block, of `2^order` free slots at `slot`.
#[inline(always)]
pub(crate) const fn claim(level: usize, old: u64, slot: u32, order: u32) -> u64 {
    with_codes(level, old, codes(level, old) | block(order) << (2 * slot))
}

/// Returns a word of `level` without the block of `2^order` slots at `slot`, and its codes; `None` if there is no such
/// block.
#[inline(always)]
pub(crate) fn without_block(level: usize, old: u64, slot: u32, order: u32) -> Option<(u64, u64)> {
    let codes = codes(level, old);
    let left = codes & !(block_bits(order) << (2 * slot));
    is_block(codes, slot, order).then(|| (with_codes(level, old, left), left))
}

/// The largest order, in slots, of a place among `free`.
#[inline]
pub(crate) fn largest(free: u64) -> Option<u32> {
    if free == 0 {
        return None;
    }
    let mut order = 0;
    let mut places = free;
    while order < 5 {
        places &= places >> (2 << order) & ALIGNED[order as usize + 1];
        if places == 0 {
            break;
        }
        order += 1;
    }
    Some(order)
}

/// The largest order, in slots, of a place among `free` that begins at `slot`.
pub(crate) const fn largest_at(free: u64, slot: u32) -> u32 {
    let mut order = 0;
    while order < 5 && slot.is_multiple_of(2 << order) {
        let place = block_bits(order + 1) & LOW;
        if free >> (2 * slot) & place != place {
            break;
        }
        order += 1;
    }
    order
}

/// Returns the largest order, in slots, of a place of free slots that contains `slot`, which is free, in a word of
/// `2^most` slots.
#[inline(always)]
pub(crate) fn grown(codes: u64, slot: u32, most: u32) -> u32 {
    // The nearest slots in use on both sides, or, if there is none, one outside the word.
    let behind = slot + (codes >> (2 * slot)).trailing_zeros() / 2;
    let before = slot.wrapping_sub(1 + (codes << (62 - 2 * slot) << 2).leading_zeros() / 2);
    // A place that contains a slot contains those from which its number differs in bits below the order.
    let order = |used: u32| (slot ^ used | 1).ilog2();
    order(behind).min(order(before)).min(most)
}

/// Iterates over the slots of `set`, given by their low bits, beginning with `start` and wrapping around.
#[inline]
pub(crate) fn from_slot(set: u64, start: u32) -> impl Iterator<Item = u32> {
    let mut rest = set.rotate_right(2 * start);
    core::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let slot = (rest.trailing_zeros() / 2 + start) & 31;
        rest &= rest - 1;
        Some(slot)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of a leaf word, unit 0 first: `.` free, `o` reserved, `B` head, `b` rest.
    fn leaf(picture: &str) -> u64 {
        picture.bytes().enumerate().fold(0, |word, (unit, code)| {
            let code = match code {
                b'.' => FREE,
                b'o' => RESERVED,
                b'B' => HEAD,
                _ => REST,
            };
            word | code << (2 * unit)
        })
    }

    #[test]
    fn a_block_reads_back() {
        for order in 0..=5 {
            for slot in (0..32).step_by(1 << order) {
                let codes = block(order) << (2 * slot);
                assert_eq!(code(codes, slot), HEAD);
                assert_eq!(block_order(codes, slot), Some(order), "order {order} at {slot}");
                assert_eq!(codes & !(block_bits(order) << (2 * slot)), 0);
                for other in 0..=4 {
                    assert_eq!(is_block(codes, slot, other), order == other, "{order} {other}");
                }
            }
        }
    }

    #[test]
    fn neighbours_do_not_lengthen_a_block() {
        assert_eq!(block_order(leaf("BbBbBBoo"), 0), Some(1));
        assert_eq!(block_order(leaf("BbBbBBoo"), 4), Some(0));
        assert_eq!(block_order(leaf("BbBbBBoo"), 5), Some(0));
        assert_eq!(block_order(leaf("Bbb."), 0), None);
        assert_eq!(block_order(leaf(".Bb."), 1), None);
    }

    #[test]
    fn fit_spares_the_larger_places() {
        let fit_in = |picture, order| fit(free_slots(leaf(picture)) & first_slots(8), order);
        assert_eq!(fit_in("........", 0), Some(0));
        assert_eq!(fit_in("....B.bo", 0), Some(5));
        assert_eq!(fit_in("..Bb....", 1), Some(0));
        assert_eq!(fit_in(".B......", 1), Some(2));
        assert_eq!(fit_in("B.......", 2), Some(4));
        assert_eq!(fit_in("B...b...", 2), None);
        assert_eq!(fit_in("BBBBBBBB", 0), None);
    }

    #[test]
    fn largest_counts_only_aligned_slots() {
        let in_8 = |picture| largest(free_slots(leaf(picture)) & first_slots(8));
        assert_eq!(in_8("BBBBBBBB"), None);
        assert_eq!(in_8("B..BBBBB"), Some(0));
        assert_eq!(in_8("B...BBBB"), Some(1));
        assert_eq!(in_8("........"), Some(3));
        assert_eq!(largest(free_slots(0)), Some(5));
    }

    #[test]
    fn the_version_wraps_without_touching_its_neighbours() {
        let newest = VERSION | UNSETTLED << BOUND_SHIFT | 7;
        assert_eq!(marked(newest), 7 | UNSETTLED << BOUND_SHIFT | MARK);
        assert_eq!(inner(marked(newest), 9, 5), 9 | 5 << BOUND_SHIFT);
        assert_eq!(marked(0), VERSION_ONE | MARK);
    }

    #[test]
    fn what_fills_and_what_keeps_the_split_slots() {
        assert!(
            only_fills(0, leaf("B..."), leaf("BBbo")) && !only_fills(0, leaf("B..."), leaf("bB.."))
        );
        assert!(
            only_fills(1, leaf(".o.."), leaf("BoBb")) && !only_fills(1, leaf("...."), leaf("o..."))
        );
        assert!(keeps_split(0, leaf("Bboo"), leaf("..Bb")));
        assert!(
            keeps_split(1, leaf("Bb.o"), leaf("..Bo"))
                && !keeps_split(1, leaf("Bbbo"), leaf("Bbb."))
        );
        assert!(
            !keeps_split(1, leaf("Bbb."), leaf("obb."))
                && !keeps_split(1, leaf("oBo."), leaf("oBB."))
        );
    }

    #[test]
    fn a_word_allows_what_its_bound_says_unless_marked() {
        for bound in 0..64 {
            for offer in 0..64 {
                assert_eq!(allows(inner(0, 0, bound), offer), bound >= offer);
                assert!(!allows(marked(inner(0, 0, bound)), offer));
            }
        }
        assert!(passes(SPLIT << 6, 3) && !passes(SPLIT << 6 | MARK, 3));
        assert!(!passes(HEAD << 6, 3) && !passes(REST << 6, 3) && !passes(FREE, 3));
    }

    #[test]
    fn rotation_visits_every_slot_once() {
        let set = first_slots(5) & !(1 << 2);
        assert!(from_slot(set, 3).eq([3, 4, 0, 2]));
        assert!(from_slot(set, 0).eq([0, 2, 3, 4]));
        assert!(from_slot(0, 7).eq([]));
    }
}
