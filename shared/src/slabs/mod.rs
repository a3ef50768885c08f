//! Slots: memory that is smaller than a block, or not a power of two. A block cut into slots of one class is a *slab*.
//!
//! ```text
//! class     sizes of slots, and how many a slab has      pins      which member is looking at which slab
//! find      finds a slab with a free slot, or makes one  trim      turns empty slabs into blocks again
//! recover   recovers the slots of the dead
//! ```
//!
//! A slab begins with a word for each slot, and ends with the slots, the first of them last. A slot's word is a tag, as
//! a block's is: nobody's if the slot is free, otherwise its holder's. So each operation on a slot is one
//! compare-and-swap, and nothing is ever left half done:
//!
//! | | from | to |
//! |---|---|---|
//! | allocation | nobody's | the member's |
//! | free | the member's | nobody's |
//! | take | the giver's | the taker's |
//! | recovery | that of a member that is gone | the recoverer's |
//!
//! The block itself has the segment's tag, which names the class: these tags alone say what is a slab, and of which
//! class. While a slab is being made, or after it was taken apart, its tag is that of the member that does so, as for
//! any block.
//!
//! A member may try to take a free slot in a slab that somebody else is taking apart, so it *pins* the slab first. A
//! member needs no pin for a slot of its own: a slab with a slot in use stays. It needs one to take a slot from another
//! member, and to go back to a slot that it recovered, which its new holder may have taken and freed in the meantime.

pub(crate) mod class;
mod find;
mod pins;
mod recover;
#[cfg(test)]
mod tests;
mod trim;

use std::cell::Cell;

use nbbs::sync::{Ordering, Word};

use crate::ledger::{Ledger, NotHeld, Owner, Seat};
use class::{CLASSES, Shape, size};
pub(crate) use pins::PIN_STRIDE;
use pins::VISIT;

/// The number of hint words of each class.
const HINTS_OF_CLASS: usize = 16;

/// The number of hint words.
pub(crate) const HINTS: usize = CLASSES * HINTS_OF_CLASS;

/// The memory of the arena.
pub(crate) trait Memory<W> {
    /// Returns `count` words from byte `at` on. `None` if they are not within it.
    fn words(&self, at: u64, count: usize) -> Option<&[W]>;
}

/// The slabs of an arena.
#[derive(Clone, Copy)]
pub(crate) struct Slabs<'a, W, M> {
    pub ledger: Ledger<'a, W>,
    memory: M,
    /// By seat, [`PIN_STRIDE`] apart.
    pins: &'a [W],
    /// By class: slabs in which a slot may have been freed. Nothing depends on them.
    hints: &'a [W],
    pub shape: Shape,
}

/// A slab: its first unit, and the class of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slab {
    index: u64,
    class: usize,
}

/// Where a member first looks for a free slot of a class: in a slab that it has pinned.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    index: u64,
    slot: usize,
}

/// A member's cursors, by class.
#[derive(Debug, Default)]
pub(crate) struct Cursors([Cell<Option<Cursor>>; CLASSES]);

impl Cursors {
    fn at(&self, class: usize) -> Option<&Cell<Option<Cursor>>> {
        self.0.get(class)
    }
}

impl<'a, W: Word, M: Memory<W>> Slabs<'a, W, M> {
    /// Creates the slabs over these words. All zero: there are none.
    pub fn new(
        ledger: Ledger<'a, W>,
        memory: M,
        pins: &'a [W],
        hints: &'a [W],
        shape: Shape,
    ) -> Self {
        Self { ledger, memory, pins, hints, shape }
    }

    /// Takes a seat, as [`Ledger::sit`] does.
    pub fn sit(&self, number: usize) -> Option<Seat> {
        // Before anybody takes the former member's pins for this one's.
        self.unpin_all(number);
        self.ledger.sit(number)
    }

    /// Allocates a slot of a class, and returns its position in bytes from the beginning of the arena. `None`: no slot
    /// is free, nor a block for a slab.
    #[inline]
    pub fn alloc(&self, seat: &Seat, cursors: &Cursors, class: usize) -> Option<u64> {
        let place = cursors.at(class)?;
        if let Some(Cursor { index, slot }) = place.get()
            && let Some(slot) = self.claim(seat, Slab { index, class }, slot)
        {
            // The next search starts behind it.
            place.set(Some(Cursor { index, slot: slot + 1 }));
            return Some(self.start(Slab { index, class }, slot));
        }
        self.find(seat, place, class)
    }

    /// Frees the member's slot at position `at`, in bytes from the beginning of the arena, and returns its bytes.
    /// `None`: there is no slab.
    ///
    /// # Errors
    /// The slot is not the member's. Nothing has changed.
    #[inline]
    pub fn free(&self, seat: &Seat, cursors: &Cursors, at: u64) -> Option<Result<u64, NotHeld>> {
        let (slab, slot) = match self.slot_at(at)? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        if let Err(error) = self.give(seat, slab, slot) {
            return Some(Err(error));
        }
        match cursors.at(slab.class) {
            // The slot used last is used next.
            Some(place) if place.get().is_some_and(|cursor| cursor.index == slab.index) => {
                place.set(Some(Cursor { index: slab.index, slot }));
            }
            _ => self.hint(slab),
        }
        Some(Ok(size(slab.class) as u64))
    }

    /// Makes a slot the member's, as [`Ledger::take`] does a block. `None`: there is no slab.
    ///
    /// # Errors
    /// It is nobody's, or not that owner's nor the member's, or there is none.
    pub fn take(
        &self,
        seat: &Seat,
        at: u64,
        from: Option<Owner>,
    ) -> Option<Result<Owner, NotHeld>> {
        // Until the slot is the member's, nothing else keeps the slab.
        let pinned = self.pin(seat, VISIT, self.slab_at(at)?.index);
        let taken = pinned.and_then(|_| self.take_pinned(seat, at, from));
        self.unpin(seat.number, VISIT);
        taken
    }

    fn take_pinned(
        &self,
        seat: &Seat,
        at: u64,
        from: Option<Owner>,
    ) -> Option<Result<Owner, NotHeld>> {
        let word = match self.word_at(at)? {
            Ok((_, word)) => word,
            Err(error) => return Some(Err(error)),
        };
        loop {
            // Relaxed: the swap acquires what depends on it.
            let tag = word.load(Ordering::Relaxed);
            let owner = Owner::of_slot(tag);
            if !owner.gives_to(seat.owner, from) {
                return Some(Err(NotHeld::By(owner)));
            }
            if owner == seat.owner || Self::swap(word, tag, seat.owner).is_ok() {
                return Some(Ok(owner));
            }
        }
    }

    /// Returns the bytes of a slot, and its owner, which may be anybody: nothing keeps the slab. `None`: there is no
    /// slab.
    ///
    /// # Errors
    /// No slot begins there.
    pub fn owner_at(&self, at: u64) -> Option<Result<(u64, Owner), NotHeld>> {
        loop {
            let before = self.ledger.tag_of(self.slab_index(at))?;
            let found = self.word_at(at)?.map(|(slab, word)| {
                // Acquire: pairs with the Release of the tag's writer, and what it wrote into the slot. Also, the slab's
                // tag is read afterwards.
                (size(slab.class) as u64, Owner::of_slot(word.load(Ordering::Acquire)))
            });
            // Otherwise the word may be data of somebody's block, and the load have met a plain write. A trimmer writes
            // the tag, then passes a fence, in `pinned`, before the memory is anybody's; no tag comes back.
            if self.ledger.tag_of(self.slab_index(at)) == Some(before) {
                return Some(found);
            }
        }
    }

    /// Makes the first free slot of a slab, from `first` on, the member's. The member has pinned the slab.
    #[inline(always)]
    fn claim(&self, seat: &Seat, slab: Slab, first: usize) -> Option<usize> {
        let words = self.words_of(slab)?;
        let (before, behind) = words.split_at(first.min(words.len()));
        let from = |words: &[W], first: usize| {
            let free = words.iter().position(|word| {
                // Relaxed: the swap acquires what depends on it.
                let tag = word.load(Ordering::Relaxed);
                Owner::of(tag) == Owner::NOBODY && Self::swap(word, tag, seat.owner).is_ok()
            });
            free.map(|slot| first + slot)
        };
        from(behind, words.len() - behind.len()).or_else(|| from(before, 0))
    }

    /// Frees a slot of the member.
    #[inline(always)]
    fn give(&self, seat: &Seat, slab: Slab, slot: usize) -> Result<(), NotHeld> {
        let word = self.words_of(slab).and_then(|words| words.get(slot));
        let word = word.ok_or(NotHeld::Outside)?;
        // Acquire: the slab's tag is read afterwards. If it is the member's, only a member that takes it changes it,
        // and then the swap fails.
        let tag = word.load(Ordering::Acquire);
        if Owner::of(tag) != seat.owner {
            return Err(NotHeld::By(Owner::of(tag)));
        }
        // Otherwise the word may be data of somebody's block, as in `owner_at`. A slab whose slot is the member's
        // stays.
        if !self.is_open(slab) {
            return Err(NotHeld::Outside);
        }
        Self::swap(word, tag, Owner::NOBODY).map_err(|now| NotHeld::By(Owner::of(now)))
    }

    /// Makes a slot with the tag `tag` this owner's. Returns what was found instead of `tag`.
    #[inline(always)]
    fn swap(word: &W, tag: u64, owner: Owner) -> Result<(), u64> {
        Self::swap_to(word, tag, owner.after_in_slot(tag))
    }

    /// Gives a slot with the tag `tag` the tag `new`. Returns what was found instead of `tag`.
    #[inline(always)]
    fn swap_to(word: &W, tag: u64, new: u64) -> Result<(), u64> {
        // Acquire: what the last holder did with the slot. Release: what this one did; and anybody who sees this
        // member's name sees that it is alive.
        word.compare_exchange(tag, new, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }

    /// Returns the first unit of the slab that would cover a position in the arena.
    #[inline(always)]
    fn slab_index(&self, at: u64) -> u64 {
        at >> self.shape.unit_log2 >> self.shape.order << self.shape.order
    }

    /// Returns the slab that covers a position in the arena.
    #[inline(always)]
    fn slab_at(&self, at: u64) -> Option<Slab> {
        let index = self.slab_index(at);
        self.slab_with(index, self.ledger.tag_of(index)?)
    }

    /// Returns the slot that begins at a position in the arena. `None`: there is no slab.
    #[inline(always)]
    fn slot_at(&self, at: u64) -> Option<Result<(Slab, usize), NotHeld>> {
        let slab = self.slab_at(at)?;
        let size = size(slab.class) as u64;
        let behind = (slab.index << self.shape.unit_log2) + self.shape.bytes() - at;
        // In 32 bits: a slab with slots fits, unless a unit is as large.
        let (slots, rest) = match (u32::try_from(behind), size as u32) {
            (Ok(behind), size) => (u64::from(behind / size), u64::from(behind % size)),
            (Err(_), _) => (behind / size, behind % size),
        };
        let slot = usize::try_from(slots).ok().and_then(|slots| slots.checked_sub(1));
        let within =
            slot.filter(|&slot| self.shape.slots(slab.class).is_some_and(|all| slot < all));
        Some(within.filter(|_| rest == 0).map(|slot| (slab, slot)).ok_or(NotHeld::NoSlot(size)))
    }

    /// Returns the slab and the word of the slot that begins at a position in the arena. `None`: there is no slab.
    fn word_at(&self, at: u64) -> Option<Result<(Slab, &W), NotHeld>> {
        Some(self.slot_at(at)?.and_then(|(slab, slot)| {
            let word = self.words_of(slab).and_then(|words| words.get(slot));
            Ok((slab, word.ok_or(NotHeld::Outside)?))
        }))
    }

    /// Returns the words of a slab, one for each slot.
    #[inline(always)]
    fn words_of(&self, slab: Slab) -> Option<&[W]> {
        let slots = self.shape.slots(slab.class)?;
        self.memory.words(slab.index << self.shape.unit_log2, slots)
    }

    /// Returns the position of a slot.
    #[inline(always)]
    fn start(&self, slab: Slab, slot: usize) -> u64 {
        let end = (slab.index << self.shape.unit_log2) + self.shape.bytes();
        end - (slot as u64 + 1) * size(slab.class) as u64
    }
}
