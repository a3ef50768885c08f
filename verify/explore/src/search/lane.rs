//! What the search knows of a lane.

use std::ops::Range;

use testkit::program::Held;

use super::Step;
use super::hash::mix;
use super::reach::Footprint;

/// The most lanes that a program has.
pub const MOST_LANES: usize = 3;

/// Where a lane stands; all else about it is in its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The hash of the answers that others can change; of a lane that is done, of what it holds.
    pub hash: u64,
    /// Answers that it has got.
    pub answers: u32,
    /// The word of its last step that others can see.
    pub word: u32,
    /// What else is known, as bits.
    flags: u8,
}

/// The lane has taken a step.
pub const BEGUN: u8 = 1;
/// It has come to its end.
pub const DONE: u8 = 2;
/// Since another lane runs, a step depended on its last one.
pub const WOKEN: u8 = 4;
/// Its last step wrote.
pub const WROTE: u8 = 8;
/// With its last step, who holds what changed, or a call began or ended.
pub const EVENT: u8 = 16;
/// A call has begun and not returned.
pub const IN_CALL: u8 = 32;
/// During that call another lane took a step, or was in a call.
pub const DISTURBED: u8 = 64;

impl Standing {
    /// Of a lane at its end.
    pub fn done(hash: u64, answers: u32) -> Self {
        Self { hash, answers, word: 0, flags: DONE }
    }

    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn set(&mut self, flag: u8, value: bool) {
        self.flags = if value { self.flags | flag } else { self.flags & !flag };
    }

    /// The lane's part of a state.
    pub fn token(&self, lane: usize) -> u64 {
        mix(self.hash, u64::from(self.flags) << 2 | lane as u64)
    }

    /// Its last step that others can see.
    pub fn last(&self) -> Footprint {
        Footprint { word: self.word, wrote: self.is(WROTE), event: self.is(EVENT) }
    }

    /// Its last step is this one.
    pub fn take(&mut self, step: Footprint, answer: u64) {
        self.hash = mix(self.hash, answer);
        self.word = step.word;
        self.set(WROTE, step.wrote);
        self.set(EVENT, step.event);
    }

    /// Learns of another lane's step. Whether that changed anything.
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
    /// What its steps were answered.
    pub answers: Vec<u64>,
    /// The steps themselves, if they are to be told.
    pub steps: Vec<(u16, Step)>,
    pub now: Standing,
    /// What it holds when it is done.
    pub left: Left,
}

/// What a lane holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub held: Vec<Held>,
    pub reservations: Vec<Range<u64>>,
}

impl Left {
    /// A hash of it, whatever the order in which it came.
    pub fn hash(&self) -> u64 {
        let held = self.held.iter().map(|held| mix(held.index, held.len));
        let reservations = self.reservations.iter().map(|range| mix(!range.start, range.end));
        held.chain(reservations).fold(0, u64::wrapping_add)
    }
}
