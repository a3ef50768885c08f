//! Judges operations with an owner map, where it is wanted.

use std::cell::Cell;

use nbbs::Buddy;
use nbbs::sync::Word;
use testkit::{Block, Oracle};

/// A judge: records the owner of each unit, unless it is off, and whether a violation occurred.
pub struct Judge {
    oracle: Option<Oracle>,
    content: Cell<bool>,
}

impl Judge {
    pub fn new(units: u64) -> Self {
        Self { oracle: Some(Oracle::new(units)), content: Cell::new(true) }
    }

    pub fn off() -> Self {
        Self { oracle: None, content: Cell::new(true) }
    }

    /// Returns whether nothing was wrong.
    pub fn is_content(&self) -> bool {
        self.content.get()
    }

    /// Returns the number of units in use, or 0 if the judge is off: counting them would be timed.
    pub fn used_units<W: Word>(&self, buddy: Buddy<'_, W>) -> u64 {
        self.oracle.as_ref().map_or(0, |_| buddy.stats().used_units)
    }

    /// Records that `len` units at `index` were handed out.
    pub fn take(&self, index: u64, len: u64) {
        self.each(index, len, |oracle, unit| oracle.take(0, unit, 0).is_ok());
    }

    /// Records that `len` units at `index` are about to be given back.
    pub fn give(&self, index: u64, len: u64) {
        self.each(index, len, |oracle, index| oracle.give(Block { index, order: 0 }).is_ok());
    }

    /// Records a violation unless `so` holds.
    pub fn expect(&self, so: bool) {
        self.content.set(self.content.get() && so);
    }

    fn each(&self, index: u64, len: u64, act: impl Fn(&Oracle, u64) -> bool) {
        if let Some(oracle) = &self.oracle {
            (index..index + len).for_each(|unit| self.expect(act(oracle, unit)));
        }
    }
}
