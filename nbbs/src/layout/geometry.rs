//! Orders, levels and indices: pure arithmetic, no atomics.
//!
//! A *leaf word* (level 0) describes 32 units, an *inner word* (level 1 and up) 16 slots, each of which
//! stands for one word of the level below. One word at the top covers the arena.
//!
//! ```text
//! level   slots   one slot is           holds blocks of order
//!   0       32    1 unit                0  to 4
//!   1       16    1 leaf word,   2^5    5  to 8
//!   2       16    1 level-1 word, 2^9   9  to 12
//!   h       16    2^(5+4(h-1)) units    5+4(h-1)  to 5+4h-1
//! ```

use core::marker::PhantomData;
use core::ops::Range;

use crate::error::MetadataError;
use crate::layout::shape::{MAX_LEVELS, Shape};
use crate::sync::Word;

/// The largest number of units that an arena may have: 2^40, which is 4 PiB in pages of 4 KiB.
pub const MAX_UNITS: u64 = 1 << 40;

/// The largest number of orders: 0 to 40.
pub const MAX_ORDERS: usize = 41;

/// Words in a cache line: the granularity at which levels and lanes are kept apart.
pub(crate) const LINE: usize = 8;

/// Words of a lane: four cache lines.
pub(crate) const LANE_WORDS: usize = 4 * LINE;

/// The largest number of lanes that an arena has in its metadata.
const MAX_LANES: u64 = 256;

/// An arena has one lane for this many units (a power of two).
const UNITS_PER_LANE: u64 = 1 << 14;

/// The smallest number of lanes, as long as each then has four cache lines of leaf words: threads that share a lane
/// share the words that it claims in.
const FEW_LANES: u64 = 4;

/// Returns how many 64-bit words of metadata an arena of `units` units needs, everything included.
///
/// These are at most 2.34 bits for each unit of an arena of 2^18 units or more. The result is 0 for `units == 0`, and
/// `usize::MAX` if `units` is above [`MAX_UNITS`] or the count does not fit: [`Buddy::new`](crate::Buddy::new) refuses
/// all of these.
///
/// ```
/// // 1 GiB in pages of 4 KiB: 75 KiB of metadata.
/// assert_eq!(nbbs::metadata_words(1 << 18) * 8, 76_352);
/// ```
#[must_use]
pub const fn metadata_words(units: u64) -> usize {
    Shape::STANDARD.metadata_words(units)
}

/// Returns how many words `lanes` lanes take in [`Buddy::with_lanes`](crate::Buddy::with_lanes): 256 bytes each.
///
/// ```
/// assert_eq!(nbbs::lane_words(64) * 8, 16_384);
/// ```
#[must_use]
pub const fn lane_words(lanes: usize) -> usize {
    lanes.saturating_mul(LANE_WORDS)
}

/// The fewest units that [`lanes_for`] gives each lane.
const UNITS_PER_MORE_LANE: u64 = 1 << 10;

/// Returns how many lanes an arena of `units` units should be given for `cpus` CPUs, by
/// [`Buddy::with_lanes`](crate::Buddy::with_lanes). The result is 0 where its metadata has as many, otherwise
/// the number of CPUs rounded up to a power of two, but no more than one for each 2^10 units, which is 2 bits per
/// unit.
///
/// ```
/// use nbbs::lanes_for;
///
/// assert_eq!(lanes_for(1 << 18, 16), 0); // 1 GiB of pages has 16
/// assert_eq!(lanes_for(1 << 22, 256), 0); // and 16 GiB has 256
/// assert_eq!(lanes_for(1 << 18, 17), 32);
/// assert_eq!(lanes_for(1 << 18, 256), 256); // 64 KiB
/// assert_eq!(lanes_for(1 << 14, 256), 16);
/// ```
#[must_use]
pub const fn lanes_for(units: u64, cpus: usize) -> usize {
    let own = lanes(Shape::STANDARD, units) as usize;
    let most = match (units / UNITS_PER_MORE_LANE).checked_ilog2() {
        Some(log2) => 1 << log2,
        None => 1,
    };
    let wanted = match cpus.checked_next_power_of_two() {
        Some(wanted) if wanted as u64 <= most => wanted,
        _ => most as usize,
    };
    if wanted > own { wanted } else { 0 }
}

/// The layout of an arena's metadata.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Units in the arena.
    pub units: u64,
    /// The level whose one word covers the arena.
    pub top: usize,
    /// The largest order of which a block fits.
    pub max_order: u32,
    /// Position of each level's first word.
    base: [usize; MAX_LEVELS],
}

/// log2 of the distance between the words of `level`. From level 2 on each word has a cache line of its own, so that
/// lanes that claim large blocks in different words do not disturb each other.
#[inline(always)]
const fn stride_log2(level: usize) -> u32 {
    if level < 2 { 0 } else { LINE.trailing_zeros() }
}

/// Returns how many lanes an arena of `units` units has: a power of two.
const fn lanes(shape: Shape, units: u64) -> u64 {
    let (many, few) = (units / UNITS_PER_LANE, units >> shape.few_units_per_lane());
    if many >= MAX_LANES {
        MAX_LANES
    } else if many >= FEW_LANES {
        1 << many.ilog2()
    } else if few >= FEW_LANES {
        FEW_LANES
    } else {
        1 << (few | 1).ilog2()
    }
}

impl Layout {
    pub const fn new(shape: Shape, units: u64) -> Result<Self, MetadataError> {
        let max = shape.max_units();
        if units == 0 || units > max {
            return Err(MetadataError::Units { units, max });
        }
        let max_order = units.ilog2();
        // A word of this level covers at least 2^(max_order + 1) units, hence the whole arena.
        let top = shape.level_of(max_order);

        let lanes = lanes(shape, units);

        // The order is: the lanes, the epoch, level 0, level 1 and so on, each part on cache lines of its own. A load
        // waits for a store to an address that differs by a multiple of 4 KiB, so words that are used together must not
        // be at such a distance: there is a line between the levels.
        let mut base = [0; MAX_LEVELS];
        let mut words = lanes * LANE_WORDS as u64 + LINE as u64;
        let mut level = 0;
        while level <= top {
            base[level] = words as usize;
            let of_level = units.div_ceil(1 << shape.word_order(level));
            words += (of_level << stride_log2(level)).next_multiple_of(LINE as u64) + LINE as u64;
            level += 1;
        }
        if words > (usize::MAX / 8) as u64 {
            return Err(MetadataError::NoMemory { words: usize::MAX });
        }
        Ok(Self { units, top, max_order, base })
    }

    /// Words in all: the last are a line with the word at the top, and one behind it.
    pub const fn words(&self) -> usize {
        self.base[self.top] + 2 * LINE
    }

    /// Position of the epoch, whose line is in front of the leaf words.
    pub const fn epoch(&self) -> usize {
        self.base[0] - LINE
    }
}

/// The geometry of an arena over words of type `W`: its layout, and their shape.
pub(crate) struct Geometry<W> {
    layout: Layout,
    words: PhantomData<fn() -> W>,
}

copy!(Geometry<W>);

impl<W> Geometry<W> {
    /// Units in the arena.
    #[inline(always)]
    pub const fn units(&self) -> u64 {
        self.layout.units
    }

    /// The largest order of which a block fits.
    #[inline(always)]
    pub const fn max_order(&self) -> u32 {
        self.layout.max_order
    }

    /// The level whose one word covers the arena.
    #[inline(always)]
    pub const fn top(&self) -> usize {
        self.layout.top
    }

    /// Words in all.
    pub const fn words(&self) -> usize {
        self.layout.words()
    }

    /// Returns the position of the epoch in the metadata, behind the lanes.
    pub const fn epoch(&self) -> usize {
        self.layout.epoch()
    }
}

impl<W: Word> Geometry<W> {
    pub const fn new(units: u64) -> Result<Self, MetadataError> {
        match Layout::new(W::SHAPE, units) {
            Ok(layout) => Ok(Self { layout, words: PhantomData }),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a range has units, all of them inside the arena.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.start < range.end && range.end <= self.layout.units
    }

    /// Returns the position behind the last leaf word that lies wholly inside the arena.
    pub const fn whole_leaves_end(&self) -> usize {
        self.layout.base[0] + (self.layout.units >> W::SHAPE.word_order(0)) as usize
    }

    /// Returns the position of word `idx` of `level` in the metadata. For an `idx` outside the level, as a stray cursor
    /// may name, it is any position.
    #[inline(always)]
    pub fn place(&self, level: usize, idx: u64) -> usize {
        self.layout.base[level].wrapping_add((idx as usize) << stride_log2(level))
    }

    /// Returns the position of the word that stands `words` words of `level` after the one at `place`.
    #[inline(always)]
    pub fn place_after(&self, level: usize, place: usize, words: u32) -> usize {
        place.wrapping_add((words as usize) << stride_log2(level))
    }

    /// Returns the word of `level` at position `place`.
    #[inline(always)]
    pub fn idx_at(&self, level: usize, place: usize) -> u64 {
        (place.wrapping_sub(self.layout.base[level]) >> stride_log2(level)) as u64
    }

    /// Returns the positions of the first words of each level above inner `level`. They are a [`LINE`] apart.
    #[inline(always)]
    pub fn bases_above(&self, level: usize) -> impl Iterator<Item = usize> {
        let above = self.layout.base.get(level + 1..).unwrap_or(&[]);
        above.iter().copied().take(self.layout.top.saturating_sub(level))
    }

    /// Returns the unused positions behind the words of `level`.
    pub fn padding(&self, level: usize) -> Range<usize> {
        let end = self.place(level, self.words_of(level));
        end..end.next_multiple_of(LINE) + LINE
    }

    /// Returns the number of words of `level`.
    pub fn words_of(&self, level: usize) -> u64 {
        self.layout.units.div_ceil(1 << W::SHAPE.word_order(level))
    }

    /// Returns whether word `idx` of `level` lies wholly inside the arena.
    #[inline(always)]
    pub fn is_whole(&self, level: usize, idx: u64) -> bool {
        idx < self.layout.units >> W::SHAPE.word_order(level)
    }

    /// Returns how many slots of word `idx` of `level` lie wholly inside the arena.
    #[inline(always)]
    pub fn whole_slots(&self, level: usize, idx: u64) -> u32 {
        if self.is_whole(level, idx) {
            return 1 << W::SHAPE.slots_log2(level);
        }
        (self.layout.units >> W::SHAPE.slot_order(level))
            .saturating_sub(idx << W::SHAPE.slots_log2(level)) as u32
    }

    /// Returns how many slots of word `idx` of `level` lie inside the arena, wholly or in part.
    pub fn slots(&self, level: usize, idx: u64) -> u32 {
        self.whole_slots(level, idx) + u32::from(self.partial_slot(level, idx).is_some())
    }

    /// Returns the slot of word `idx` of `level` of which only a part lies inside the arena, and the largest order of
    /// which a block fits into that part.
    #[inline(always)]
    pub fn partial_slot(&self, level: usize, idx: u64) -> Option<(u32, u32)> {
        let part = self.layout.units & ((1 << W::SHAPE.slot_order(level)) - 1);
        let slot = self.layout.units >> W::SHAPE.slot_order(level);
        (part != 0 && slot >> W::SHAPE.slots_log2(level) == idx)
            .then(|| ((slot & ((1 << W::SHAPE.slots_log2(level)) - 1)) as u32, part.ilog2()))
    }
}
