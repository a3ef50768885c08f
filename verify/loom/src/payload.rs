//! The managed memory, as its holders use it.

use std::ops::Range;

use loom::cell::UnsafeCell;

/// Nobody holds the cell.
const FREE: usize = usize::MAX;

/// A plain cell for every `2^grain` units, in which each holder writes its number. It is an owner map and, for loom,
/// memory that two threads may not touch unless one access happens before the other.
#[derive(Debug)]
pub struct Payload {
    cells: Box<[UnsafeCell<usize>]>,
    grain: u32,
}

// SAFETY: the cells are only touched through loom's accessors, which run one thread at a time and end the run if two
// accesses are not ordered.
unsafe impl Sync for Payload {}

impl Payload {
    /// Creates cells for `units` units, and blocks of order `grain` or more.
    pub fn new(units: u64, grain: u32) -> Self {
        Self { cells: (0..units >> grain).map(|_| UnsafeCell::new(FREE)).collect(), grain }
    }

    /// Records that `holder` was given a block.
    pub fn take(&self, holder: usize, index: u64, order: u32) {
        self.take_units(holder, index..index + (1 << order));
    }

    /// Records that `holder` is about to free a block.
    pub fn give(&self, holder: usize, index: u64, order: u32) {
        self.give_units(holder, index..index + (1 << order));
    }

    /// Records that `holder` was given units.
    pub fn take_units(&self, holder: usize, units: Range<u64>) {
        self.change(units, FREE, holder);
    }

    /// Records that `holder` is about to give units back.
    pub fn give_units(&self, holder: usize, units: Range<u64>) {
        self.change(units, holder, FREE);
    }

    fn change(&self, units: Range<u64>, from: usize, to: usize) {
        let cells = (units.start >> self.grain) as usize..(units.end >> self.grain) as usize;
        for cell in &self.cells[cells] {
            let found = cell.with_mut(|cell| {
                // SAFETY: loom has just checked that every other access is ordered with this one.
                unsafe { std::mem::replace(&mut *cell, to) }
            });
            assert_eq!(found, from, "overlap in units {units:?}");
        }
    }
}
