//! Pins: which slabs a member is looking at. Pinned memory stays that of a slab, although the slab may be closed in the
//! meantime.
//!
//! The member writes the pin and reads the slab's tag; a trimmer writes the tag and reads the pins. All of these are
//! sequentially consistent: so either the member sees that the slab is closed, or the trimmer sees the pin.

use nbbs::sync::{Ordering, Word};

use super::class::CLASSES;
use super::{Memory, Slab, Slabs};
use crate::ledger::{Liveness, Owner, Seat, order_of};

/// Words of a seat: a pin for each cursor, and one for visits. Each is a slab's first unit, plus one; 0: none.
pub(crate) const PIN_STRIDE: usize = 32;

/// The pin for visits to other slabs.
pub(super) const VISIT: usize = CLASSES;

const _: () = assert!(VISIT < PIN_STRIDE);

impl<W: Word, M: Memory<W>> Slabs<'_, W, M> {
    /// Pins the slab that begins at a unit, replacing the former pin. `None`: it is not a slab, or is closed; then
    /// nothing is pinned.
    pub(super) fn pin(&self, seat: &Seat, pin: usize, index: u64) -> Option<Slab> {
        let word = self.pins_of(seat.number)?.get(pin)?;
        // SeqCst: before the tag is read. Release, also: what was done in the formerly pinned slab.
        word.store(index.wrapping_add(1), Ordering::SeqCst);
        W::store_load_fence();
        let tag = self.ledger.tag_when_pinned(index);
        let slab = tag.and_then(|tag| self.slab_with(index, tag));
        if slab.is_none() {
            self.unpin(seat.number, pin);
        }
        slab
    }

    pub(super) fn unpin(&self, seat: usize, pin: usize) {
        if let Some(word) = self.pins_of(seat).and_then(|pins| pins.get(pin)) {
            // Release: pairs with the Acquire in `pinned`. What was done in the slab was done before.
            word.store(0, Ordering::Release);
        }
    }

    /// Does something with a slot's word, if its slab is still one: nothing else need keep the slab.
    pub(super) fn with_pinned<T>(
        &self,
        seat: &Seat,
        slab: Slab,
        slot: usize,
        work: impl FnOnce(&W) -> T,
    ) -> Option<T> {
        let pinned = self.pin(seat, VISIT, slab.index).filter(|&now| now == slab);
        let word = pinned.and_then(|slab| self.words_of(slab)?.get(slot));
        let done = word.map(work);
        self.unpin(seat.number, VISIT);
        done
    }

    /// Takes back all pins of a seat that the caller has, or that nobody else can have now.
    pub fn unpin_all(&self, seat: usize) {
        (0..=VISIT).for_each(|pin| self.unpin(seat, pin));
    }

    /// Returns what live members have pinned, in ascending order, including the member itself, which may have a cursor
    /// there.
    pub(super) fn pinned(&self, seat: &Seat, liveness: &impl Liveness) -> Vec<u64> {
        W::store_load_fence();
        let mut pinned = Vec::new();
        for number in 0..self.ledger.seats() {
            let pins = self.pins_of(number).unwrap_or_default().iter();
            // SeqCst: after the tags were written. Acquire, also: pairs with the Release in `pin` and `unpin`.
            let pins = pins.map(|pin| pin.load(Ordering::SeqCst)).filter(|&pin| pin != 0);
            let pins: Vec<u64> = pins.map(|pin| pin - 1).collect();
            // Checked afterwards: a member that is dead now touches nothing any more, and one that comes finds the tags
            // that were written. Whoever has a seat's lock without a turn has not come yet.
            let has_turn = || self.ledger.turn(number).is_some_and(|turn| turn.is_live());
            let is_there = || number == seat.number || has_turn() && liveness.is_alive(number);
            if !pins.is_empty() && is_there() {
                pinned.extend(pins);
            }
        }
        pinned.sort_unstable();
        pinned
    }

    /// Returns whether a slab is still open, which the member has pinned, or of which it has a slot.
    #[inline(always)]
    pub(super) fn is_open(&self, slab: Slab) -> bool {
        let tag = self.ledger.tag_of(slab.index);
        tag.and_then(|tag| self.slab_with(slab.index, tag)) == Some(slab)
    }

    /// Returns the slab that begins at a unit with this tag.
    #[inline(always)]
    pub(super) fn slab_with(&self, index: u64, tag: u64) -> Option<Slab> {
        let class = Owner::of(tag).class().filter(|_| order_of(tag) == self.shape.order)?;
        let aligned = index & ((1 << self.shape.order) - 1) == 0;
        self.shape.slots(class).filter(|_| aligned).map(|_| Slab { index, class })
    }

    fn pins_of(&self, seat: usize) -> Option<&[W]> {
        let first = seat.checked_mul(PIN_STRIDE)?;
        self.pins.get(first..first.checked_add(PIN_STRIDE)?)
    }
}
