//! Statistics: how much of an arena is free, used and reserved, and in which blocks.

use core::fmt;

use super::{Look, Piece};
use crate::layout::geometry::MAX_ORDERS;
use crate::sync::Word;
use crate::word;

/// What a walk over the arena counted: see [`Buddy::stats`](crate::Buddy::stats).
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// buddy.alloc(4)?;
/// buddy.here().alloc_units(7)?;
/// let stats = buddy.stats();
/// assert_eq!((stats.used_blocks[4], stats.used_runs, stats.used_units), (1, 1, 23));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Units in the arena; the four counts below add up to it.
    pub units: u64,
    /// Units that are free.
    pub free_units: u64,
    /// Units in blocks and runs in use.
    pub used_units: u64,
    /// Units that are reserved.
    pub reserved_units: u64,
    /// Units that caches keep, counted by the `stats` of caches only, such as
    /// [`Caches::stats`](crate::Caches::stats). To the buddy allocator, and so to
    /// [`Buddy::stats`](crate::Buddy::stats), they are in use.
    pub cached_units: u64,
    /// Free blocks of each order, every unit counted once, in the largest block that contains it.
    pub free_blocks: [u64; MAX_ORDERS],
    /// Blocks in use of each order.
    pub used_blocks: [u64; MAX_ORDERS],
    /// Runs in use that are not blocks.
    pub used_runs: u64,
}

/// One line, in units.
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// buddy.reserve(0..4)?;
/// buddy.alloc(3)?;
/// let said = "64 units: 52 free, 8 in use, 4 reserved, 0 in caches; largest free block 32";
/// assert_eq!(buddy.stats().to_string(), said);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { units, free_units: free, used_units: used, .. } = self;
        write!(f, "{units} units: {free} free, {used} in use, ")?;
        write!(f, "{} reserved, {} in caches; ", self.reserved_units, self.cached_units)?;
        let largest = self.largest_free_order().map_or(0, |order| 1_u64 << order);
        write!(f, "largest free block {largest}")
    }
}

impl Stats {
    /// Returns the largest order of which a block is free.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.stats().largest_free_order(), Some(6));
    /// buddy.alloc(0)?;
    /// assert_eq!(buddy.stats().largest_free_order(), Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn largest_free_order(&self) -> Option<u32> {
        self.free_blocks.iter().rposition(|&blocks| blocks > 0).map(|order| order as u32)
    }

    /// Returns the thousandths of the free units that lie outside the largest free block. 0 means that all free memory
    /// is one block, or that there is none.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.alloc(4)?; // 16 of 64 units: 16 + 32 are left
    /// assert_eq!(buddy.stats().fragmentation_permille(), 333);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fragmentation_permille(&self) -> u32 {
        let largest = self.largest_free_order().map_or(0, |order| 1 << order);
        permille(self.free_units - largest, self.free_units)
    }

    /// Returns the thousandths of the free units that lie in blocks smaller than `order`, and so are useless to an
    /// allocation of that order: Gorman's unusable free space index.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.alloc(4)?;
    /// assert_eq!(buddy.stats().unusable_permille(5), 333);
    /// assert_eq!(buddy.stats().unusable_permille(4), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unusable_permille(&self, order: u32) -> u32 {
        let small = self.free_blocks.iter().enumerate().take(order as usize);
        permille(small.map(|(order, &blocks)| blocks << order).sum(), self.free_units)
    }
}

/// Returns `part` of `whole` in thousandths, rounded down; 0 if `whole` is 0.
fn permille(part: u64, whole: u64) -> u32 {
    // Arenas have at most 2^40 units, so the product fits.
    (part * 1000).checked_div(whole).unwrap_or(0) as u32
}

impl<W: Word> Look<'_, W> {
    /// Counts the arena by a walk.
    pub fn stats(self) -> Stats {
        let mut stats = Stats {
            units: self.0.geometry.units(),
            free_units: 0,
            used_units: 0,
            reserved_units: 0,
            cached_units: 0,
            free_blocks: [0; MAX_ORDERS],
            used_blocks: [0; MAX_ORDERS],
            used_runs: 0,
        };
        self.walk(|piece| match piece {
            Piece::Free { order, .. } => {
                stats.free_units += 1 << order;
                stats.free_blocks[order as usize] += 1;
            }
            Piece::Used { order, .. } => {
                stats.used_units += 1 << order;
                stats.used_blocks[order as usize] += 1;
            }
            Piece::Run { len, .. } => {
                stats.used_units += len;
                stats.used_runs += 1;
            }
            Piece::Reserved { len, .. } => stats.reserved_units += len,
        });
        stats
    }

    /// Returns how many units are free.
    pub fn count_free(self) -> u64 {
        self.count_free_below(self.0.geometry.top(), 0)
    }

    /// Returns how many of the units that a word stands for are free.
    fn count_free_below(self, level: usize, idx: u64) -> u64 {
        let codes = word::codes(level, self.0.read(level, idx));
        let whole = word::first_slots(self.0.geometry.whole_slots(level, idx));
        let free = self.0.free_slots(level, idx, codes).count_ones();
        let here = u64::from(free) << W::SHAPE.slot_order(level);
        let split = if level > 0 { word::split_slots(codes) & whole } else { 0 };
        let partial = self.0.geometry.partial_slot(level, idx).map(|(slot, _)| slot);
        let below = word::from_slot(split, 0).chain(partial);
        below.fold(here, |sum, slot| {
            sum + self.count_free_below(level - 1, W::SHAPE.child(idx, slot))
        })
    }

    /// Returns an upper bound on the orders that can be allocated now.
    pub fn order_bound(self) -> Option<u32> {
        let top = self.0.geometry.top();
        let offer = self.0.offer(top, 0, self.0.read(top, 0)) as u32;
        offer.checked_sub(1).map(|order| order.min(self.0.geometry.max_order()))
    }
}
