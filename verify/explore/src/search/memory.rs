//! The words and the owner map, with changes that can be undone.

use std::ops::Range;

use testkit::program::Held;
use testkit::{Block, Oracle, Violation};

use super::Step;
use super::hash::mix;

/// A change of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The lane holds these units from now on.
    Take(Held),
    /// The lane no longer holds these units.
    Give(Held),
    /// These units are reserved from now on.
    Reserve(Range<u64>),
    /// These units are reserved no longer.
    Release(Range<u64>),
}

/// How to undo a change.
#[derive(Debug)]
enum Undo {
    Write { place: u16, old: u64 },
    Event { lane: usize, event: Box<Event> },
}

/// The memory that the lanes share.
#[derive(Debug)]
pub struct Memory {
    values: Vec<u64>,
    /// The sum of the hashes of all words.
    hash: u64,
    pub oracle: Oracle,
    undo: Vec<Undo>,
}

impl Memory {
    /// Creates zeroed words for an arena of `units` units.
    pub fn new(words: usize, units: u64) -> Self {
        Self { values: vec![0; words], hash: 0, oracle: Oracle::new(units), undo: Vec::new() }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns how many changes can be undone.
    pub fn changes(&self) -> usize {
        self.undo.len()
    }

    /// Takes a step. Returns what the word held before, and whether the step wrote.
    pub fn perform(&mut self, place: usize, step: Step) -> (u64, bool) {
        let old = self.values[place];
        let new = match step {
            Step::Store(value) => value,
            Step::Swap { current, new } if current == old => new,
            Step::Load | Step::Swap { .. } => return (old, false),
        };
        self.write(place, new);
        self.undo.push(Undo::Write { place: place as u16, old });
        (old, true)
    }

    /// Records an event.
    pub fn happen(&mut self, lane: usize, event: Event) -> Result<(), Violation> {
        self.apply(lane, &event)?;
        self.undo.push(Undo::Event { lane, event: Box::new(event) });
        Ok(())
    }

    /// Undoes changes until only `changes` are left.
    pub fn back_to(&mut self, changes: usize) {
        while self.undo.len() > changes {
            match self.undo.pop() {
                Some(Undo::Write { place, old }) => self.write(place.into(), old),
                Some(Undo::Event { lane, event }) => {
                    let opposite = match *event {
                        Event::Take(held) => Event::Give(held),
                        Event::Give(held) => Event::Take(held),
                        Event::Reserve(range) => Event::Release(range),
                        Event::Release(range) => Event::Reserve(range),
                    };
                    self.apply(lane, &opposite).expect("what happened can be taken back");
                }
                None => unreachable!("there are more than {changes}"),
            }
        }
    }

    fn write(&mut self, place: usize, value: u64) {
        let old = std::mem::replace(&mut self.values[place], value);
        let token = |value| mix(value, place as u64 + 4);
        self.hash = self.hash.wrapping_sub(token(old)).wrapping_add(token(value));
    }

    fn apply(&self, lane: usize, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Take(held) => blocks(*held)
                .try_for_each(|block| self.oracle.take(lane, block.index, block.order).map(|_| ())),
            Event::Give(held) => blocks(*held).try_for_each(|block| self.oracle.give(block)),
            Event::Reserve(range) => self.oracle.reserve(range.clone()),
            Event::Release(range) => self.oracle.release(range.clone()),
        }
    }
}

/// Iterates over what is held, in the form of the owner map: a run that is not a block is given unit by unit.
fn blocks(held: Held) -> impl Iterator<Item = Block> {
    let whole = Block::of(held.index, held.len);
    let units = if whole.is_some() { 0..0 } else { held.index..held.index + held.len };
    whole.into_iter().chain(units.map(|index| Block { index, order: 0 }))
}
