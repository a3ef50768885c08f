//! What the search knows about a lane.

use std::ops::Range;

use testkit::program::Held;

use super::Step;
use super::hash::mix;
use super::reach::Footprint;

/// The most lanes that a program has.
pub const MOST_LANES: usize = 3;

/// The state of a lane; everything else about it is in its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The hash of the answers that others can change, or, of a lane that is done, of what it holds.
    pub hash: u64,
    /// The number of answers that it has got.
    pub answers: u32,
    /// The word of its last visible step.
    pub word: u32,
    /// Other facts, as bits.
    flags: u8,
}

/// The lane has taken a step.
pub const BEGUN: u8 = 1;
/// The lane has come to its end.
pub const DONE: u8 = 2;
/// Since another lane has been running, a step depended on the lane's last one.
pub const WOKEN: u8 = 4;
/// Its last step wrote.
pub const WROTE: u8 = 8;
/// With the lane's last step, the owner of something changed, or a call began or ended.
pub const EVENT: u8 = 16;
/// A call has begun and not returned.
pub const IN_CALL: u8 = 32;
/// During that call another lane took a step, or was in a call.
pub const DISTURBED: u8 = 64;

impl Standing {
    /// Returns the state of a lane at its end.
    pub fn done(hash: u64, answers: u32) -> Self {
        Self { hash, answers, word: 0, flags: DONE }
    }

    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn set(&mut self, flag: u8, value: bool) {
        self.flags = if value { self.flags | flag } else { self.flags & !flag };
    }

    /// Returns the lane's part of a state.
    pub fn token(&self, lane: usize) -> u64 {
        mix(self.hash, u64::from(self.flags) << 2 | lane as u64)
    }

    /// Returns its last visible step.
    pub fn last(&self) -> Footprint {
        Footprint { word: self.word, wrote: self.is(WROTE), event: self.is(EVENT) }
    }

    /// Records its last step.
    pub fn take(&mut self, step: Footprint, answer: u64) {
        self.hash = mix(self.hash, answer);
        self.word = step.word;
        self.set(WROTE, step.wrote);
        self.set(EVENT, step.event);
    }

    /// Learns of another lane's step. Returns whether that changed anything.
    pub fn learn(&mut self, step: Footprint) -> bool {
        let before = self.flags;
        self.flags |= if self.last().depends_on(step) { WOKEN } else { 0 };
        self.flags |= if self.is(IN_CALL) { DISTURBED } else { 0 };
        self.flags != before
    }
}

/// A lane of the program.
#[derive(Debug, Default)]
pub struct Lane {
    /// The answers to its steps.
    pub answers: Vec<u64>,
    /// The steps themselves, if they are to be printed.
    pub steps: Vec<(u16, Step)>,
    pub now: Standing,
    /// What the lane holds when it is done.
    pub left: Left,
}

/// What a lane holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub held: Vec<Held>,
    pub reservations: Vec<Range<u64>>,
}

impl Left {
    /// Returns a hash of it, independent of the order in which it was received.
    pub fn hash(&self) -> u64 {
        let held = self.held.iter().map(|held| mix(held.index, held.len));
        let reservations = self.reservations.iter().map(|range| mix(!range.start, range.end));
        held.chain(reservations).fold(0, u64::wrapping_add)
    }
}
