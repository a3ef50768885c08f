//! A tag: the owner of the block that begins at a unit, and its order. One word for each unit.
//!
//! ```text
//! 63           30 29   24 23          10 9        0
//! +--------------+-------+--------------+----------+
//! | version      | order | generation   | seat + 1 |      0 below: nobody
//! +--------------+-------+--------------+----------+
//! ```
//!
//! The version grows with every change, so that a compare-and-swap of a tag that was read long ago fails. The order is
//! that of the last block that was granted there: its holder frees it without looking it up.
//!
//! The last possible seat is the segment's: it holds slabs, and its generation is the class of their slots.

const SEAT_BITS: u32 = 10;
const GENERATION_BITS: u32 = 14;
const OWNER_BITS: u32 = SEAT_BITS + GENERATION_BITS;
const ORDER_BITS: u32 = 6;
const ORDER: u64 = ((1 << ORDER_BITS) - 1) << OWNER_BITS;
const VERSION: u32 = OWNER_BITS + ORDER_BITS;

/// The most seats that a table may have: a tag has no room for more, apart from the segment itself.
pub(crate) const MAX_SEATS: usize = (1 << SEAT_BITS) - 2;

/// The segment's seat, as tags name it.
const SEGMENT: u64 = (1 << SEAT_BITS) - 1;

/// An owner, as tags name it: a member, by its seat and its generation on that seat; nobody; or the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    pub const NOBODY: Self = Self(0);

    /// Returns the member of `generation` on `seat`, which is less than [`MAX_SEATS`].
    pub const fn new(seat: usize, generation: u64) -> Self {
        let generation = generation & ((1 << GENERATION_BITS) - 1);
        Self((generation << SEAT_BITS) | (seat as u64 + 1))
    }

    /// A slab that nobody may use any more.
    pub const CLOSED: Self = Self::slab((1 << GENERATION_BITS) - 1);

    /// Returns the segment as the owner of a slab of a class, which is less than 2^14 - 1.
    pub const fn slab(class: usize) -> Self {
        Self(((class as u64) << SEAT_BITS) | SEGMENT)
    }

    /// Returns the seat and the generation, unless it is nobody, or the segment.
    pub const fn seat(self) -> Option<(usize, u64)> {
        match self.0 & ((1 << SEAT_BITS) - 1) {
            0 | SEGMENT => None,
            seat => Some((seat as usize - 1, self.0 >> SEAT_BITS)),
        }
    }

    /// Returns the class of the slab, if the owner is the segment.
    pub const fn class(self) -> Option<usize> {
        match self.0 & ((1 << SEAT_BITS) - 1) {
            SEGMENT => Some((self.0 >> SEAT_BITS) as usize),
            _ => None,
        }
    }

    /// Returns the owner that `tag` names.
    pub const fn of(tag: u64) -> Self {
        let owner = tag & ((1 << OWNER_BITS) - 1);
        // A generation without a seat, which is never written, means nobody.
        if owner & ((1 << SEAT_BITS) - 1) == 0 { Self::NOBODY } else { Self(owner) }
    }

    /// Returns the tag that follows `tag` when the same block becomes this owner's.
    #[inline(always)]
    pub const fn after(self, tag: u64) -> u64 {
        (((tag >> VERSION) + 1) << VERSION) | (tag & ORDER) | self.0
    }

    /// Returns the tag that follows `tag` when the same slot becomes this owner's: it names no order.
    #[inline(always)]
    pub const fn after_in_slot(self, tag: u64) -> u64 {
        (((tag >> VERSION) + 1) << VERSION) | self.0
    }

    /// Returns the same for a slot that is only kept from being allocated, so that its slab can be closed. An order,
    /// which no slot has, marks it.
    pub const fn closing(self, tag: u64) -> u64 {
        self.after_in_slot(tag) | ORDER
    }

    /// Returns the owner of a slot that has this tag. A slot that is being closed is nobody's.
    pub const fn of_slot(tag: u64) -> Self {
        if is_closing(tag) { Self::NOBODY } else { Self::of(tag) }
    }

    /// Returns whether `taker` may take what this owner has handed over: if it is a member, and the one that the taker
    /// names, if it names one, or the taker itself.
    pub fn gives_to(self, taker: Self, named: Option<Self>) -> bool {
        self.seat().is_some() && (self == taker || named.is_none_or(|named| self == named))
    }
}

/// Returns the same tag, with a version as new as the newest of `others`, none of which is older.
pub(crate) fn as_new_as(tag: u64, others: impl Iterator<Item = u64>) -> u64 {
    let version = tag >> VERSION;
    let ahead = others.map(|other| (other >> VERSION).wrapping_sub(version) << VERSION).max();
    tag.wrapping_add(ahead.unwrap_or(0))
}

/// Returns whether a slot is only kept from being allocated.
pub(crate) const fn is_closing(tag: u64) -> bool {
    tag & ORDER == ORDER
}

/// Returns the order that `tag` names.
#[inline(always)]
pub(crate) const fn order_of(tag: u64) -> u32 {
    ((tag & ORDER) >> OWNER_BITS) as u32
}

/// Returns the same tag for a block of `order`; no arena has an order of 64 or more.
#[inline(always)]
pub(crate) const fn with_order(tag: u64, order: u32) -> u64 {
    (tag & !ORDER) | ((order as u64) << OWNER_BITS & ORDER)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SEATS, Owner, order_of, with_order};

    #[test]
    fn tags_say_what_was_written() {
        for seat in [0, 1, MAX_SEATS - 1] {
            for generation in [0, 1, (1 << 14) - 1] {
                let owner = Owner::new(seat, generation);
                for order in [0, 1, 40, 63] {
                    let tag = owner.after(with_order(0x1234_5678_9fff_ffff, order));
                    assert_eq!(Owner::of(tag).seat(), Some((seat, generation)));
                    assert_eq!(order_of(tag), order);
                    assert_eq!(tag >> 30, (0x1234_5678_9fff_ffff >> 30) + 1);
                }
            }
        }
        assert_eq!(Owner::new(3, 1 << 14), Owner::new(3, 0));
    }

    #[test]
    fn versions_wrap_without_touching_the_owner() {
        let owner = Owner::new(5, 7);
        assert_eq!(Owner::of(owner.after(u64::MAX)), owner);
        assert_eq!(owner.after(u64::MAX) >> 30, 0);
        assert_eq!(Owner::of(Owner::NOBODY.after(u64::MAX)), Owner::NOBODY);
    }

    #[test]
    fn slabs_are_no_members() {
        for class in [0, 1, 27] {
            let slab = Owner::of(Owner::slab(class).after(u64::MAX));
            assert_eq!((slab.class(), slab.seat()), (Some(class), None));
            assert_ne!(slab, Owner::CLOSED);
        }
        assert_eq!(Owner::new(MAX_SEATS - 1, 27).class(), None);
        assert_eq!((Owner::CLOSED.seat(), Owner::NOBODY.class()), (None, None));
    }

    #[test]
    fn what_nobody_writes_is_nobody() {
        assert_eq!(Owner::of(5 << 10), Owner::NOBODY);
        assert_eq!(Owner::of(5 << 10).seat(), None);
    }
}
