//! Tests of rows, whose words are the processor's or narrower.

mod plain;
#[cfg(all(not(miri), target_pointer_width = "64"))]
mod races;
#[cfg(not(miri))]
mod random;
#[cfg(not(miri))]
mod steps;

use core::sync::atomic::Ordering;
use std::vec::Vec;

use super::bounds::Bounds;
use super::row::Row;
use super::word::Word;
use crate::words::AtomicUsize;

/// A word of `UNITS` units, as on narrower machines.
#[derive(Debug, Default)]
pub struct Narrow<const UNITS: u32>(AtomicUsize);

impl<const UNITS: u32> Word for Narrow<UNITS> {
    const UNITS: u32 = UNITS;

    fn load(&self, order: Ordering) -> usize {
        self.0.load(order)
    }

    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        assert!(UNITS == usize::BITS / 2 || new >> (2 * UNITS) == 0, "{new:#x} in {UNITS} units");
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// The words and bounds of a row.
#[derive(Debug)]
pub struct Memory<W> {
    words: Vec<W>,
    bounds: Vec<AtomicUsize>,
    units: usize,
}

impl<W: Word + Default> Memory<W> {
    pub fn new(units: usize) -> Self {
        let words: Vec<_> = (0..Row::<W>::words_for(units)).map(|_| W::default()).collect();
        let bounds = (0..Bounds::of_words(words.len())).map(|_| AtomicUsize::default()).collect();
        Self { words, bounds, units }
    }

    pub fn row(&self) -> Row<'_, W> {
        Row { words: &self.words, bounds: Bounds(&self.bounds), units: self.units }
    }
}
