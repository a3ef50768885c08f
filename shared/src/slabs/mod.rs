//! Slots: what is smaller than a block, or no power of two. A block cut into slots of one class is a *slab*.
//!
//! ```text
//! class     sizes of slots, and how many a slab has      pins      who is looking at which slab
//! find      a slab with a free slot, or a new one        trim      empty slabs become blocks again
//! recover   what the dead hold of them
//! ```
//!
//! A slab begins with a word for each slot, and ends with the slots, the first of them last. A slot's word is a tag, as a
//! block's is: nobody's if the slot is free, otherwise its holder's. So each operation on a slot is one compare-and-swap, and
//! there is nothing half done that could be found:
//!
//! | | from | to |
//! |---|---|---|
//! | allocation | nobody's | the member's |
//! | free | the member's | nobody's |
//! | take | the giver's | the taker's |
//! | recovery | that of one who is gone | the recoverer's |
//!
//! The block itself has the segment's tag, which names the class: these tags are all that says what is a slab, and of what.
//! While a slab is made, or has been taken apart, its tag is the member's that does so, as any block's.
//!
//! A member may go for a free slot in a slab that somebody else is taking apart, so it *pins* the slab first. Nobody needs a
//! pin for a slot that is its own: a slab that has one stays. Who takes a slot from another needs one, and so does who goes back to
//! one that he recovered, which its new holder may have taken and freed meanwhile.

pub(crate) mod class;
mod find;
mod pins;
mod recover;
#[cfg(test)]
mod tests;
mod trim;

use std::cell::Cell;

use nbbs::sync::{Ordering, Word};

use crate::ledger::{Ledger, NotHeld, Owner, Seat, order_of};
use class::{CLASSES, Shape, size};
pub(crate) use pins::PIN_STRIDE;
use pins::VISIT;

/// Words for hints of each class.
const HINTS_OF_CLASS: usize = 16;

/// Words for hints.
pub(crate) const HINTS: usize = CLASSES * HINTS_OF_CLASS;

/// The memory of the arena.
pub(crate) trait Memory<W> {
    /// `count` words from so many bytes on. `None` if they are not within it.
    fn words(&self, at: u64, count: usize) -> Option<&[W]>;
}

/// The slabs of an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slabs<'a, W, M> {
    pub ledger: Ledger<'a, W>,
    memory: M,
    /// By seat, [`PIN_STRIDE`] apart.
    pins: &'a [W],
    /// By class: slabs in which a slot was freed, perhaps. Nothing depends on them.
    hints: &'a [W],
    pub shape: Shape,
}

/// A slab: its first unit, and the class of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slab {
    index: u64,
    class: usize,
}

/// Where a member looks first for a free slot of a class: in a slab that it has pinned.
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
    /// The slabs over these words. All zero: there are none.
    pub fn new(
        ledger: Ledger<'a, W>,
        memory: M,
        pins: &'a [W],
        hints: &'a [W],
        shape: Shape,
    ) -> Self {
        Self { ledger, memory, pins, hints, shape }
    }

    /// Sits down, as [`Ledger::sit`].
    pub fn sit(&self, number: usize) -> Option<Seat> {
        let seat = self.ledger.sit(number)?;
        self.unpin_all(&seat);
        Some(seat)
    }

    /// Allocates a slot of a class, and returns where it begins, in bytes from the beginning of the arena. `None`: no slot is
    /// free, nor a block for a slab.
    #[inline]
    pub fn alloc(&self, seat: &Seat, cursors: &Cursors, class: usize) -> Option<u64> {
        let place = cursors.at(class)?;
        if let Some(Cursor { index, slot }) = place.get()
            && let Some(slot) = self.claim(seat, Slab { index, class }, slot)
        {
            // The next is looked for behind it.
            place.set(Some(Cursor { index, slot: slot + 1 }));
            return Some(self.start(Slab { index, class }, slot));
        }
        self.find(seat, place, class)
    }

    /// Frees the member's slot that begins so many bytes from the beginning of the arena, and returns its bytes.
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
            // What was used last is used next.
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
    /// It is nobody's, or there is none.
    pub fn take(&self, seat: &Seat, at: u64) -> Option<Result<Owner, NotHeld>> {
        // Until the slot is the member's, nothing else keeps the slab.
        let pinned = self.pin(seat, VISIT, self.slab_at(at)?.index);
        let taken = pinned.and_then(|_| self.take_pinned(seat, at));
        self.unpin(seat, VISIT);
        taken
    }

    fn take_pinned(&self, seat: &Seat, at: u64) -> Option<Result<Owner, NotHeld>> {
        let word = match self.word_at(at)? {
            Ok((_, word)) => word,
            Err(error) => return Some(Err(error)),
        };
        loop {
            // Relaxed: what depends on it, the swap acquires.
            let tag = word.load(Ordering::Relaxed);
            let owner = Owner::of_slot(tag);
            if owner.seat().is_none() {
                return Some(Err(NotHeld::By(owner)));
            }
            if owner == seat.owner || Self::swap(word, tag, seat.owner) {
                return Some(Ok(owner));
            }
        }
    }

    /// The bytes of a slot, and whose it is. `None`: there is no slab.
    ///
    /// # Errors
    /// No slot begins there.
    pub fn owner_at(&self, at: u64) -> Option<Result<(u64, Owner), NotHeld>> {
        Some(self.word_at(at)?.map(|(slab, word)| {
            // Acquire: pairs with the Release of who gave it that tag, and what he wrote into the slot.
            (size(slab.class) as u64, Owner::of_slot(word.load(Ordering::Acquire)))
        }))
    }

    /// Makes the first free slot of a slab the member's that is found from `first` on. The member has pinned the slab.
    #[inline(always)]
    fn claim(&self, seat: &Seat, slab: Slab, first: usize) -> Option<usize> {
        let words = self.words_of(slab)?;
        let (before, behind) = words.split_at(first.min(words.len()));
        let from = |words: &[W], first: usize| {
            let free = words.iter().position(|word| {
                // Relaxed: what depends on it, the swap acquires.
                let tag = word.load(Ordering::Relaxed);
                Owner::of(tag) == Owner::NOBODY && Self::swap(word, tag, seat.owner)
            });
            free.map(|slot| first + slot)
        };
        from(behind, words.len() - behind.len()).or_else(|| from(before, 0))
    }

    /// Frees a slot of the member's.
    #[inline(always)]
    fn give(&self, seat: &Seat, slab: Slab, slot: usize) -> Result<(), NotHeld> {
        let word = self.words_of(slab).and_then(|words| words.get(slot));
        let word = word.ok_or(NotHeld::Outside)?;
        // Relaxed: if it is the member's, only who takes it changes it, and the swap fails.
        let tag = word.load(Ordering::Relaxed);
        if Owner::of(tag) != seat.owner {
            return Err(NotHeld::By(Owner::of(tag)));
        }
        Self::try_swap(word, tag, Owner::NOBODY).map_err(|now| NotHeld::By(Owner::of(now)))
    }

    /// Whether the slot was made this owner's, as its tag was `tag` yet.
    #[inline(always)]
    fn swap(word: &W, tag: u64, owner: Owner) -> bool {
        Self::try_swap(word, tag, owner).is_ok()
    }

    #[inline(always)]
    fn try_swap(word: &W, tag: u64, owner: Owner) -> Result<(), u64> {
        Self::try_swap_to(word, tag, owner.after_in_slot(tag))
    }

    #[inline(always)]
    fn swap_to(word: &W, tag: u64, new: u64) -> bool {
        Self::try_swap_to(word, tag, new).is_ok()
    }

    #[inline(always)]
    fn try_swap_to(word: &W, tag: u64, new: u64) -> Result<(), u64> {
        // Acquire: what the last holder did with the slot. Release: what this one did; and who sees this member's name
        // sees that it lives.
        word.compare_exchange(tag, new, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }

    /// The slab that covers a place in the arena.
    #[inline(always)]
    fn slab_at(&self, at: u64) -> Option<Slab> {
        let index = at >> self.shape.unit_log2 >> self.shape.order << self.shape.order;
        let tag = self.ledger.tag_of(index)?;
        let class = Owner::of(tag).class().filter(|_| order_of(tag) == self.shape.order)?;
        self.shape.slots(class).map(|_| Slab { index, class })
    }

    /// The slot that begins at a place in the arena. `None`: there is no slab.
    #[inline(always)]
    fn slot_at(&self, at: u64) -> Option<Result<(Slab, usize), NotHeld>> {
        let slab = self.slab_at(at)?;
        let size = size(slab.class) as u64;
        let behind = (slab.index << self.shape.unit_log2) + self.shape.bytes() - at;
        // In 32 bits, which a slab with slots has room in unless a unit is as large.
        let (slots, rest) = match (u32::try_from(behind), size as u32) {
            (Ok(behind), size) => (u64::from(behind / size), u64::from(behind % size)),
            (Err(_), _) => (behind / size, behind % size),
        };
        let slot = usize::try_from(slots).ok().and_then(|slots| slots.checked_sub(1));
        let within =
            slot.filter(|&slot| self.shape.slots(slab.class).is_some_and(|all| slot < all));
        Some(within.filter(|_| rest == 0).map(|slot| (slab, slot)).ok_or(NotHeld::NoSlot(size)))
    }

    /// The slab and the word of the slot that begins at a place in the arena. `None`: there is no slab.
    fn word_at(&self, at: u64) -> Option<Result<(Slab, &W), NotHeld>> {
        Some(self.slot_at(at)?.and_then(|(slab, slot)| {
            let word = self.words_of(slab).and_then(|words| words.get(slot));
            Ok((slab, word.ok_or(NotHeld::Outside)?))
        }))
    }

    /// A word for each slot of a slab.
    #[inline(always)]
    fn words_of(&self, slab: Slab) -> Option<&[W]> {
        let slots = self.shape.slots(slab.class)?;
        self.memory.words(slab.index << self.shape.unit_log2, slots)
    }

    /// Where a slot begins.
    #[inline(always)]
    fn start(&self, slab: Slab, slot: usize) -> u64 {
        let end = (slab.index << self.shape.unit_log2) + self.shape.bytes();
        end - (slot as u64 + 1) * size(slab.class) as u64
    }
}
