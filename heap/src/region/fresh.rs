//! Which memory is known to be zero: a bit for each stretch of units, set when one of them is first handed out.
//!
//! A thread that is handed units sets the bits of their stretches, and frees them later. So a thread that holds units and
//! finds the bit of their stretch clear is the first to hold them, or the first since they were made zero: what the last
//! holder did comes before its free, and the free before the next claim.

use core::ops::Range;

use nbbs::sync::Ordering;
#[cfg(test)]
use nbbs::sync::Word;

use crate::words::HeapWord;

/// log2 of the units of a stretch: 64 KiB.
pub const STRETCH_LOG2: u32 = 6;

/// Returns the number of words for the stretches of this many units.
pub const fn fresh_words(units: u64) -> usize {
    units.div_ceil(64 << STRETCH_LOG2) as usize
}

/// The stretch bits of a region.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'a> {
    words: &'a [HeapWord],
}

impl<'a> Fresh<'a> {
    /// Creates the bits over these words, all zero at first if the memory is.
    pub fn new(words: &'a [HeapWord]) -> Self {
        Self { words }
    }

    /// Records that nothing is known of any stretch.
    pub fn touch_all(&self) {
        // Relaxed, here and below: orders nothing, as above.
        self.words.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Records that the units, which the caller holds, may be written to. Returns of how many units they are the first.
    ///
    /// Cost: a load for each 4 MiB, and a read-modify-write where they are the first units of a stretch.
    pub fn touch(&self, units: Range<u64>) -> u64 {
        let mut first = 0;
        for (word, bits) in self.bits(Self::stretches(units)) {
            if bits & !word.load(Ordering::Relaxed) != 0 {
                first += (bits & !word.fetch_or(bits, Ordering::Relaxed)).count_ones();
            }
        }
        u64::from(first) << STRETCH_LOG2
    }

    /// Records that units, which the caller holds, are zero. Only the stretches that lie wholly in the units are then
    /// known to be. Returns how many units they have that were not known to be.
    pub fn renew(&self, units: Range<u64>) -> u64 {
        let stretch = 1 << STRETCH_LOG2;
        let whole = units.start.div_ceil(stretch)..units.end / stretch;
        let cleared =
            self.bits(whole).map(|(word, bits)| bits & word.fetch_and(!bits, Ordering::Relaxed));
        cleared.map(|bits| u64::from(bits.count_ones())).sum::<u64>() << STRETCH_LOG2
    }

    /// Returns how many of the units, whole stretches of them at each end, may be other than zero.
    pub fn touched(&self, units: Range<u64>) -> u64 {
        let stretches = self.bits(Self::stretches(units));
        let touched =
            stretches.map(|(word, bits)| (word.load(Ordering::Relaxed) & bits).count_ones());
        touched.map(u64::from).sum::<u64>() << STRETCH_LOG2
    }

    /// Returns whether some of the units may be other than zero.
    pub fn is_touched(&self, units: Range<u64>) -> bool {
        self.first_touched(units).is_some()
    }

    /// Returns the first of the units that may be other than zero.
    pub fn first_touched(&self, units: Range<u64>) -> Option<u64> {
        let stretches = Self::stretches(units.clone());
        let words = self.bits(stretches.clone()).zip(stretches.start / 64..);
        let mut touched =
            words.map(|((word, bits), number)| (word.load(Ordering::Relaxed) & bits, number));
        let (bits, number) = touched.find(|&(bits, _)| bits != 0)?;
        let stretch = 64 * number + u64::from(bits.trailing_zeros());
        Some(units.start.max(stretch << STRETCH_LOG2))
    }

    /// Returns the stretches that contain such units.
    fn stretches(units: Range<u64>) -> Range<u64> {
        if units.is_empty() {
            return 0..0;
        }
        units.start >> STRETCH_LOG2..units.end.div_ceil(1 << STRETCH_LOG2)
    }

    /// Returns the words of stretches, and the bits in each.
    fn bits(&self, stretches: Range<u64>) -> impl Iterator<Item = (&'a HeapWord, u64)> + use<'a> {
        let words = self.words;
        let numbers = if stretches.is_empty() {
            0..0
        } else {
            stretches.start / 64..stretches.end.div_ceil(64)
        };
        let of = move |number: u64| {
            let first = stretches.start.max(64 * number) - 64 * number;
            let end = stretches.end.min(64 * number + 64) - 64 * number;
            let below_end = u64::MAX >> (64 - end);
            words.get(number as usize).map(|word| (word, below_end & u64::MAX << first))
        };
        numbers.filter_map(of)
    }
}
