//! How large regions are, and their bookkeeping. Pure arithmetic.

use nbbs::metadata_words;

use super::fresh::fresh_words;
use super::idle::IDLE_WORDS;
use super::sweeps::SWEEP_WORDS;
use crate::class::{PAGE, UNIT};
use crate::slabs::WORDS_OF_CLASSES;

/// The most units of a region: a number of units takes half a word.
const MOST_UNITS: u64 = u32::MAX as u64 - 1;

/// Returns the words of bookkeeping of a region of this many units.
pub const fn words(units: u64) -> usize {
    let of_units = metadata_words(units) + 2 * units as usize + fresh_words(units);
    of_units + WORDS_OF_CLASSES + SWEEP_WORDS + IDLE_WORDS
}

/// Returns the bytes of bookkeeping of a region of this many units, up to the first unit.
pub const fn bookkeeping(units: u64) -> usize {
    (8 * words(units)).next_multiple_of(PAGE)
}

/// The fewest bytes that make a region, from a page on.
pub const LEAST_BYTES: usize = bookkeeping(1) + UNIT;

/// Returns how many bytes, at any address, make a region that hands out `bytes` bytes; `None` if there is no such
/// region.
pub const fn bytes_for(bytes: usize) -> Option<usize> {
    let units = bytes.div_ceil(UNIT) as u64;
    if units == 0 || units > MOST_UNITS || bytes > isize::MAX as usize / 2 + 1 {
        return None;
    }
    Some(PAGE - 1 + bookkeeping(units) + units as usize * UNIT)
}

/// Returns the most units that fit into this many bytes, beside their bookkeeping.
pub const fn units_in(bytes: usize) -> u64 {
    let most = (bytes / UNIT) as u64;
    let (mut fit, mut above) = (0, if most < MOST_UNITS { most + 1 } else { MOST_UNITS + 1 });
    while above - fit > 1 {
        let units = fit + (above - fit) / 2;
        if bookkeeping(units) + units as usize * UNIT <= bytes {
            fit = units
        } else {
            above = units
        }
    }
    fit
}
