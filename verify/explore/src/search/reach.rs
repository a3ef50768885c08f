//! Records which words are stepped on.

/// A step, as far as others depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The bit of the word; 0 for none.
    pub word: u32,
    pub wrote: bool,
    /// Whether an owner changed with it, or a call began or ended.
    pub event: bool,
}

/// The footprints of many steps: which words were read, and which written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    read: u32,
    written: u32,
}

/// Events write to a word of their own.
const EVENT: u32 = 1 << 31;

/// Returns the bit of word number `number` among those that several lanes use. If there are more than 31, some count as
/// one.
pub fn bit(number: usize) -> u32 {
    1 << (number % 31)
}

impl Footprint {
    /// Returns whether two steps may not change places.
    pub fn depends_on(self, other: Self) -> bool {
        self.word & other.word != 0 && (self.wrote || other.wrote) || self.event && other.event
    }
}

impl Reach {
    pub fn add(&mut self, step: Footprint) {
        self.read |= step.word;
        self.written |= if step.wrote { step.word } else { 0 } | if step.event { EVENT } else { 0 };
    }

    pub fn merge(&mut self, other: Self) {
        self.read |= other.read;
        self.written |= other.written;
    }

    /// Returns whether a step may not change places with one of these.
    pub fn meets(self, step: Footprint) -> bool {
        step.word & self.written != 0
            || step.wrote && step.word & self.read != 0
            || step.event && self.written & EVENT != 0
    }
}
