//! Who holds which block: the protocol by which members allocate and free, and by which the dead are recovered.
//!
//! ```text
//! tag       one word for each unit: who holds the block that begins there, and a version
//! turn      one word for each seat: its member, and whether that is in the middle of an operation
//! recover   takes over blocks whose owner is gone
//! settle    takes over blocks that were claimed and never tagged, or untagged and never freed
//! watch     what a recoverer remembers of them, from one recovery to the next
//! replaced  members that had died when another took their seat
//! ```
//!
//! To the operations of the buddy allocator a member adds only plain loads and stores:
//!
//! | allocation | free |
//! |---|---|
//! | turn: odd | tag is mine? |
//! | the buddy claims a block | turn: odd |
//! | tag: mine | tag: nobody's |
//! | turn: even | the buddy clears the block |
//! | | turn: even |
//!
//! So a block whose tag names a member belongs to that member, whole. A block whose tag names nobody is in the hands of
//! an operation that has not returned, or was when its member died: an *orphan*. `settle` tells these two apart.
//!
//! Nothing here is unsafe, and nothing read from the words is used as an index before it is compared with a limit.

mod recover;
mod replaced;
mod settle;
mod tag;
#[cfg(test)]
pub(crate) mod tests;
mod turn;
mod watch;

use std::cell::{Cell, RefCell};

use nbbs::sync::{Ordering, Word};
use nbbs::{AllocError, Buddy};

pub(crate) use recover::{Dead, Deaths, Found, Whose};
pub use recover::{Fate, Recovery};
pub(crate) use replaced::Replaced;
use tag::with_order;
pub(crate) use tag::{MAX_SEATS, Owner, as_new_as, is_closing, order_of};
pub(crate) use turn::Turn;
use watch::Watch;

/// Words from one turn to the next: a cache line.
pub(crate) const TURN_STRIDE: usize = 8;

/// The blocks of an arena, their tags, and the turns of the members.
#[derive(Clone, Copy)]
pub(crate) struct Ledger<'a, W> {
    pub buddy: Buddy<'a, W>,
    /// By unit.
    tags: &'a [W],
    /// By seat, [`TURN_STRIDE`] apart.
    turns: &'a [W],
}

/// A member's place in the table. It may be used for one operation at a time.
#[derive(Debug)]
pub(crate) struct Seat {
    pub number: usize,
    pub owner: Owner,
    /// The turn that the member last wrote.
    turn: Cell<Turn>,
    /// What its last recovery could not tell.
    watch: RefCell<Option<Watch>>,
}

/// Why a block is not the member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotHeld {
    /// The arena has no such unit.
    Outside,
    /// It belongs to this owner, or to nobody.
    By(Owner),
    /// It is within a slab, and no slot of this many bytes begins there.
    NoSlot(u64),
    /// The tag says that it is the member's, and the buddy allocator has no block there: somebody has written where it
    /// must not.
    Damaged,
}

/// Tells whether the member on a seat is alive. The source must be reliable, such as the kernel.
pub(crate) trait Liveness {
    /// Returns whether somebody has the seat, dead members not counted.
    fn is_alive(&self, seat: usize) -> bool;
}

impl<'a, W: Word> Ledger<'a, W> {
    /// Creates the ledger over these words. All zero: no members, nothing allocated.
    pub fn new(buddy: Buddy<'a, W>, tags: &'a [W], turns: &'a [W]) -> Self {
        Self { buddy, tags, turns }
    }

    /// Returns the number of seats in the table.
    pub fn seats(&self) -> usize {
        self.turns.len() / TURN_STRIDE
    }

    /// Says so if the member on a seat has died: from then on, whoever gets to have the seat does not make that member
    /// look alive. Returns whether somebody can have the seat now, as far as is known.
    pub fn desert(&self, number: usize, liveness: &impl Liveness) -> bool {
        if let Some((word, dead)) = self.turn_word(number).zip(self.dead_on(number, liveness)) {
            // Release: as in `end`. If it fails, another has done so, or has recovered the member.
            let _ = word.compare_exchange(
                dead.turn.0,
                dead.turn.deserted().0,
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        self.turn(number).is_some_and(|turn| !turn.is_live())
    }

    /// Takes a seat whose last member has left, been recovered, or [deserted](Self::desert) it; `None` if another has
    /// come and died since. The caller has ensured that nobody else has the seat, or can have it before this member is
    /// dead.
    pub fn sit(&self, number: usize) -> Option<Seat> {
        let word = self.turn_word(number)?;
        loop {
            // Relaxed: its member had died or left before the caller got the lock, and the swap sees what others have
            // said of it since.
            let former = Turn(word.load(Ordering::Relaxed));
            if former.is_live() {
                return None;
            }
            let turn = former.seated();
            if former.is_deserted() {
                self.replace(number, turn.generation());
            } else {
                self.forget_replaced(number, turn.generation());
            }
            // Release: pairs with the Acquire in `turn`. Tags of this generation are written afterwards. If it fails,
            // the former member has been recovered since.
            let seated =
                word.compare_exchange(former.0, turn.0, Ordering::Release, Ordering::Relaxed);
            if seated.is_ok() {
                let owner = Owner::new(number, turn.generation());
                let (turn, watch) = (Cell::new(turn), RefCell::default());
                return Some(Seat { number, owner, turn, watch });
            }
        }
    }

    /// Leaves the seat. Anybody may recover what the member still holds.
    pub fn leave(&self, seat: &Seat) {
        if let Some(word) = self.turn_word(seat.number) {
            // Release: as in `end`.
            word.store(seat.turn.get().gone().0, Ordering::Release);
        }
    }

    /// Allocates a block of `2^order` units. `None` if the buddy allocator names a unit that is not in the arena:
    /// somebody has written where it must not.
    #[inline]
    pub fn alloc(&self, seat: &Seat, order: u32) -> Option<Result<u64, AllocError>> {
        let turn = self.begin(seat)?;
        let granted = self.buddy.on(seat.number).alloc(order);
        let tagged = match granted {
            // Relaxed: the last holder's store happens before the claim, and nobody has changed it since.
            Ok(index) => self.tags.get(index as usize).map(|tag| {
                let next = seat.owner.after(with_order(tag.load(Ordering::Relaxed), order));
                // Release: pairs with the Acquire in `tag_of`. Anybody who sees this member's name sees that it is
                // alive.
                tag.store(next, Ordering::Release);
            }),
            Err(_) => Some(()),
        };
        self.end(seat, turn);
        tagged.map(|()| granted)
    }

    /// Frees the member's block at `index`, and returns its units.
    ///
    /// # Errors
    /// It is not the member's. Nothing has changed.
    #[inline]
    pub fn free(&self, seat: &Seat, index: u64) -> Result<u64, NotHeld> {
        let tag = self.tags.get(index as usize).ok_or(NotHeld::Outside)?;
        // Relaxed: if it is the member's, nobody else changes it: it was handed over to nobody.
        let held = tag.load(Ordering::Relaxed);
        if Owner::of(held) != seat.owner {
            return Err(NotHeld::By(Owner::of(held)));
        }
        let turn = self.begin(seat).ok_or(NotHeld::Outside)?;
        // Release: pairs with the Acquire in `tag_of`. Anybody who sees that it is nobody's sees the turn.
        tag.store(Owner::NOBODY.after(held), Ordering::Release);
        // With the order that the tag has had since the block was granted or settled.
        let order = tag::order_of(held);
        let freed = self.buddy.on(seat.number).free_sized(index, order);
        self.end(seat, turn);
        freed.map(|()| 1 << order).map_err(|_| NotHeld::Damaged)
    }

    /// Makes the block at `index` the member's if `from` owns it, or whoever owns it, and returns its former owner.
    /// That owner has handed it over, and neither uses nor frees it any more.
    ///
    /// # Errors
    /// It is nobody's, or not that owner's nor the member's, or a slab, or there is none.
    pub fn take(&self, seat: &Seat, index: u64, from: Option<Owner>) -> Result<Owner, NotHeld> {
        loop {
            let tag = self.tag_of(index).ok_or(NotHeld::Outside)?;
            let owner = Owner::of(tag);
            if !owner.gives_to(seat.owner, from) {
                return Err(NotHeld::By(owner));
            }
            if owner == seat.owner || self.swap_tag(index, tag, seat.owner.after(tag)) {
                return Ok(owner);
            }
        }
    }

    /// Returns the owner that the tag of a unit names.
    pub fn owner_at(&self, index: u64) -> Option<Owner> {
        self.tag_of(index).map(Owner::of)
    }

    /// Returns the units of the member's block at `index`.
    ///
    /// # Errors
    /// It is not the member's.
    pub fn len(&self, seat: &Seat, index: u64) -> Result<u64, NotHeld> {
        let tag = self.tag_of(index).ok_or(NotHeld::Outside)?;
        if Owner::of(tag) != seat.owner {
            return Err(NotHeld::By(Owner::of(tag)));
        }
        self.buddy.order_of(index).map(|order| 1 << order).map_err(|_| NotHeld::Damaged)
    }

    /// Records that an operation begins, and returns the turn with which it ends.
    #[inline(always)]
    fn begin(&self, seat: &Seat) -> Option<Turn> {
        let turn = seat.turn.get().next();
        // Release: pairs with the Acquire in `turn`. Anybody who sees this sees everything that the operation before
        // did: `settle` need not meet the turn between the two.
        self.turn_word(seat.number)?.store(turn.0, Ordering::Release);
        Some(turn.next())
    }

    #[inline(always)]
    fn end(&self, seat: &Seat, turn: Turn) {
        seat.turn.set(turn);
        if let Some(word) = self.turn_word(seat.number) {
            // Release: pairs with the Acquire in `turn`. Anybody who sees this sees everything that the operation did.
            word.store(turn.0, Ordering::Release);
        }
    }

    #[inline(always)]
    fn turn_word(&self, seat: usize) -> Option<&'a W> {
        self.word_of(seat, 0)
    }

    /// Returns a word of the line of a seat's turn.
    #[inline(always)]
    fn word_of(&self, seat: usize, number: usize) -> Option<&'a W> {
        self.turns.get(seat.checked_mul(TURN_STRIDE)?.checked_add(number)?)
    }

    /// Returns the turn of a seat.
    pub fn turn(&self, seat: usize) -> Option<Turn> {
        // Acquire: pairs with the Release of each that writes it.
        self.turn_word(seat).map(|word| Turn(word.load(Ordering::Acquire)))
    }

    /// Returns the tag of a unit.
    pub fn tag_of(&self, index: u64) -> Option<u64> {
        // Acquire: pairs with the Release of the tag's writer: its turn, and what it wrote into the block.
        Some(self.tags.get(usize::try_from(index).ok()?)?.load(Ordering::Acquire))
    }

    /// Returns the tag of a unit that was just pinned.
    pub fn tag_when_pinned(&self, index: u64) -> Option<u64> {
        // SeqCst: after the pin was written. Acquire, also: as in `tag_of`.
        Some(self.tags.get(usize::try_from(index).ok()?)?.load(Ordering::SeqCst))
    }

    /// Gives a block the tag `new` if its tag is still `tag`.
    pub fn swap_tag(&self, index: u64, tag: u64, new: u64) -> bool {
        // Acquire: what the last holder wrote into the block. Release: as when a tag is stored. SeqCst: when a slab is
        // closed, before the pins are read.
        usize::try_from(index).ok().and_then(|index| self.tags.get(index)).is_some_and(|word| {
            word.compare_exchange(tag, new, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        })
    }
}
