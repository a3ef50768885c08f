//! The set of states that were met.

use super::lane::MOST_LANES;
use super::reach::Reach;

/// For each lane, the words on which the others stepped until it went on.
pub type Reached = [Reach; MOST_LANES];

/// What is known about a state.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The high bits of its hash and, in the low bits, [`BUDGET`], one more than the preemptions that were left when it
    /// was met; 0 if there is no state.
    entry: u64,
    /// What all schedules that follow reach, except for the running lane.
    reached: [Reach; MOST_LANES - 1],
}

/// A set of states, each with the preemptions that were left when it was met, and what followed.
#[derive(Debug)]
pub struct Visited {
    /// The slots: their number is a power of two.
    slots: Vec<Known>,
    count: usize,
    /// Changes when slots are moved.
    pub generation: u32,
}

const BUDGET: u64 = 7;

/// The number of slots of an empty set. A set with more than [`LARGE`] slots is not kept for the next program.
const SMALL: usize = 1 << 10;
const LARGE: usize = 1 << 15;

/// The place of a state, while it is valid.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    entry: u64,
    slot: u32,
    generation: u32,
}

impl Visited {
    pub fn new() -> Self {
        Self { slots: vec![Known::default(); SMALL], count: 0, generation: 0 }
    }

    pub fn clear(&mut self) {
        if self.slots.len() > LARGE {
            *self = Self::new();
        } else {
            self.slots.fill(Known::default());
            self.count = 0;
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a state in which `running` runs. Returns `Err` with what followed if it was met before with as many
    /// preemptions left.
    pub fn meet(&mut self, hash: u64, preemptions: u8, running: usize) -> Result<Place, Reached> {
        if 2 * self.count > self.slots.len() {
            self.grow();
        }
        let entry = hash & !BUDGET | (u64::from(preemptions) + 1);
        let slot = self.find(entry);
        let known = &mut self.slots[slot];
        if known.entry >= entry {
            let mut reached = Reached::default();
            let others = (0..MOST_LANES).filter(|&lane| lane != running);
            others.zip(known.reached).for_each(|(lane, reach)| reached[lane] = reach);
            return Err(reached);
        }
        self.count += usize::from(known.entry == 0);
        known.entry = entry;
        Ok(Place { entry, slot: slot as u32, generation: self.generation })
    }

    /// Records what followed a state.
    pub fn reach(&mut self, place: Place, running: usize, reached: &Reached) {
        let Place { entry, slot, generation } = place;
        let slot = if generation == self.generation { slot as usize } else { self.find(entry) };
        let others = (0..MOST_LANES).filter(|&lane| lane != running);
        let known = &mut self.slots[slot].reached;
        others.zip(known).for_each(|(lane, reach)| reach.merge(reached[lane]));
    }

    /// Returns the slot of a state, or the empty slot where it belongs.
    fn find(&self, entry: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (entry >> 3) as usize & mask;
        while self.slots[slot].entry != 0 && (self.slots[slot].entry ^ entry) > BUDGET {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let larger = vec![Known::default(); self.slots.len() * 4];
        self.generation += 1;
        for known in std::mem::replace(&mut self.slots, larger) {
            if known.entry != 0 {
                let slot = self.find(known.entry);
                self.slots[slot] = known;
            }
        }
    }
}
