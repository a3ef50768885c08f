//! What an actor holds, and the owner map that records it.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use testkit::program::Held;
use testkit::{Block, Oracle, Violation};

use crate::random;

/// An actor, which does one thing after another, at random: a thread with the handlers that interrupt it, or a process.
/// As long as all is well, acting takes no memory and waits for nobody, unless the allocator does.
pub trait Actor {
    /// Does one thing.
    ///
    /// # Errors
    /// The violation that was found.
    fn act(&self) -> Result<(), Violation>;

    /// Frees everything that is held.
    ///
    /// # Errors
    /// The violation that was found.
    fn give_back(&self) -> Result<(), Violation>;
}

/// What an actor holds, in slots from which its handlers take and into which they put.
#[derive(Debug)]
pub struct Hands<'a, M = Box<[AtomicU32]>> {
    /// The owner map: each unit by itself, as what is held is cut and joined.
    pub oracle: &'a Oracle<M>,
    /// The actor's number in the owner map.
    pub who: usize,
    /// The runs, each packed in a word; 0 is none. There are so few slots that what is in use comes and goes.
    pub slots: &'a [AtomicU64],
    /// What the current call may lose if the actor dies in it: a [`Stake`] in a word.
    pub stake: &'a AtomicU64,
}

/// What a call may lose if its caller dies in it.
#[derive(Clone, Copy, Debug)]
pub struct Stake {
    /// The number of units.
    pub units: u64,
    /// Their place, if that is known before.
    pub from: Option<u64>,
}

impl Stake {
    /// Returns the stake in such a word: none between two calls.
    #[must_use]
    pub fn of(word: u64) -> Option<Self> {
        let Held { index, len: units } = unpack(word)?;
        Some(Self { units, from: (index != ANYWHERE).then_some(index) })
    }

    /// Returns the units, if their place is known.
    #[must_use]
    pub fn place(&self) -> Option<Range<u64>> {
        self.from.map(|from| from..from + self.units)
    }
}

/// The place of units of a stake that have not been found yet.
const ANYWHERE: u64 = u32::MAX as u64;

/// Draws a number below another, which is not 0.
pub fn below(end: u64) -> u64 {
    random() % end
}

/// Packs a run into a word that is not 0.
fn pack(held: Held) -> u64 {
    held.index << 32 | held.len
}

/// Unpacks the run in a word.
fn unpack(word: u64) -> Option<Held> {
    (word != 0).then_some(Held { index: word >> 32, len: word & 0xffff_ffff })
}

impl<M: Deref<Target = [AtomicU32]>> Hands<'_, M> {
    /// Records that this many units may be lost from now on, at any place.
    pub fn stakes(&self, units: u64) {
        self.stakes_on(Held { index: ANYWHERE, len: units });
    }

    /// Records that these units may be lost from now on.
    pub fn stakes_on(&self, held: Held) {
        // AcqRel, so that what comes before and after stays there: another process only looks after a death.
        self.stake.swap(pack(held), Ordering::AcqRel);
    }

    /// Records that nothing is at stake any more.
    pub fn stakes_nothing(&self) {
        self.stake.swap(0, Ordering::AcqRel);
    }

    /// Records units that were handed out.
    ///
    /// # Errors
    /// One of them is held.
    pub fn take(&self, held: Held) -> Result<(), Violation> {
        units(held).try_for_each(|unit| self.oracle.take(self.who, unit, 0).map(drop))
    }

    /// Records units that are about to be freed.
    ///
    /// # Errors
    /// One of them is not held.
    pub fn give(&self, held: Held) -> Result<(), Violation> {
        units(held).try_for_each(|index| self.oracle.give(Block { index, order: 0 }))
    }

    /// Puts a run into a slot, and takes out what is there, if anything.
    pub fn exchange(&self, held: Option<Held>) -> Option<Held> {
        let slot = &self.slots[below(self.slots.len() as u64) as usize];
        // Relaxed: handlers and what they interrupt run on one thread.
        unpack(slot.swap(held.map_or(0, pack), Ordering::Relaxed))
    }

    /// Takes what is in the slots, one after the other.
    pub fn empty(&self) -> impl Iterator<Item = Held> {
        // Relaxed: as above.
        self.slots.iter().filter_map(|slot| unpack(slot.swap(0, Ordering::Relaxed)))
    }
}

fn units(held: Held) -> Range<u64> {
    held.index..held.index + held.len
}
