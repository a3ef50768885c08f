//! Looking at the arena while others use it. Nothing here writes, and the fast paths pay nothing for it.

use super::Buddy;
use crate::error::AllocError;
use crate::geometry::MAX_ORDERS;
use crate::sync::Word;
use crate::word::{self, span};

/// A stretch of the arena, as [`Buddy::walk`] meets it.
///
/// ```
/// # use nbbs::Piece;
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// buddy.alloc_at(5, 40)?;
/// let mut in_use = 0;
/// buddy.walk(|piece| match piece {
///     Piece::Used { order, .. } => in_use += 1 << order,
///     Piece::Run { len, .. } => in_use += len,
///     _ => {}
/// });
/// assert_eq!(in_use, 40);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// `2^order` free units from unit `index` on, as large as they go.
    Free {
        /// First unit.
        index: u64,
        /// log2 of the units.
        order: u32,
    },
    /// A block in use.
    Used {
        /// First unit.
        index: u64,
        /// Order of the block.
        order: u32,
    },
    /// A run in use that is no block.
    Run {
        /// First unit.
        index: u64,
        /// Units.
        len: u64,
    },
    /// `len` units, at most 32, that are never handed out.
    Reserved {
        /// First unit.
        index: u64,
        /// Units.
        len: u64,
    },
}

/// What a walk over the arena counted: see [`Buddy::stats`].
///
/// ```
/// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
/// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
/// buddy.alloc(4)?;
/// buddy.alloc_units(7)?;
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
    /// Units in holes.
    pub reserved_units: u64,
    /// Units that caches keep, as far as who counts knows of them: [`Caches::stats`](crate::Caches::stats). To the
    /// back-end, and to [`Buddy::stats`], they are in use.
    pub cached_units: u64,
    /// Free blocks of each order, every unit counted once, in the largest block that contains it.
    pub free_blocks: [u64; MAX_ORDERS],
    /// Blocks in use of each order.
    pub used_blocks: [u64; MAX_ORDERS],
    /// Runs in use that are no blocks.
    pub used_runs: u64,
}

impl Stats {
    /// The largest order of which a block is free.
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

    /// Thousandths of the free units that lie outside the largest free block. 0: all free memory is one
    /// block, or there is none.
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

    /// Thousandths of the free units that lie in blocks smaller than `order`, useless to who needs that
    /// order: Gorman's unusable free space index.
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

/// `part` of `whole` in thousandths, rounded down; 0 of nothing.
fn permille(part: u64, whole: u64) -> u32 {
    // Arenas have at most 2^40 units, so the product fits.
    (part * 1000).checked_div(whole).unwrap_or(0) as u32
}

impl<W: Word> Buddy<'_, W> {
    /// Calls `visit` for every piece of the arena, in ascending order, without gap or overlap.
    ///
    /// While others run, each word is read at an instant of its own. A block in use, or a free unit, for
    /// the whole of the walk is reported exactly once and as such; one that changes meanwhile is
    /// reported as it was at some instant of the walk. Costs a load for every word in use.
    ///
    /// ```
    /// # use nbbs::Piece;
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(12) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 12)?;
    /// buddy.alloc(2)?;
    /// let mut pieces = Vec::new();
    /// buddy.walk(|piece| pieces.push(piece));
    /// assert_eq!(pieces.len(), 2);
    /// assert!(pieces.contains(&Piece::Free { index: 0, order: 3 }));
    /// assert!(pieces.contains(&Piece::Used { index: 8, order: 2 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self, visit: impl FnMut(Piece)) {
        let mut visitor = Visitor { visit, held: None };
        self.walk_word(self.geometry().top(), 0, &mut visitor);
        visitor.end_run();
    }

    /// Counts the arena by a [`walk`](Buddy::walk), whose consistency it shares: the three unit counts
    /// always add up to the arena.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(100) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 100)?;
    /// buddy.reserve(90..100)?;
    /// buddy.alloc(3)?;
    /// let stats = buddy.stats();
    /// assert_eq!((stats.used_units, stats.reserved_units, stats.free_units), (8, 10, 82));
    /// assert_eq!(stats.used_blocks[3], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            units: self.geometry().units(),
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

    /// An upper bound on the orders that can be allocated now: no block of a larger order is free.
    /// `None`: nothing is free. One load, true at that instant; the bound may be too high, never too low
    /// but for frees that have not returned.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// assert_eq!(buddy.order_bound(), Some(6));
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub fn order_bound(&self) -> Option<u32> {
        let top = self.geometry().top();
        let offer = self.tree.offer(top, 0, self.tree.read(top, 0)) as u32;
        offer.checked_sub(1).map(|order| order.min(self.geometry().max_order()))
    }

    /// Fills `map` with one byte for each aligned stretch of `2^order` units: 0 if all of it is free,
    /// otherwise the share of it that is in use or reserved, from 1 to 255 (all). Returns how many bytes
    /// it filled: the arena's units divided by `2^order`, rounded up, or the length of `map` if that is
    /// less.
    ///
    /// Consistent as a [`walk`](Buddy::walk) is.
    ///
    /// # Errors
    /// [`AllocError::OrderTooLarge`]; `map` has not changed.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// buddy.reserve(0..24)?;
    /// let mut map = [0; 4];
    /// assert_eq!(buddy.occupancy_map(4, &mut map)?, 4);
    /// assert_eq!(map, [255, 128, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn occupancy_map(&self, order: u32, map: &mut [u8]) -> Result<usize, AllocError> {
        if order > self.geometry().max_order() {
            return Err(AllocError::OrderTooLarge { order, max: self.geometry().max_order() });
        }
        let stretches = self.geometry().units().div_ceil(1 << order).min(map.len() as u64) as usize;
        let map = &mut map[..stretches];
        map.fill(0);
        // The walk ascends: what is used of a stretch is complete when a piece of a later one comes.
        let (mut current, mut used) = (0, 0);
        let mut close = |stretch: u64, used: u64| {
            let len = (self.geometry().units() - (stretch << order)).min(1 << order);
            if let Some(byte) = map.get_mut(stretch as usize) {
                *byte = (used * 255).div_ceil(len) as u8;
            }
        };
        self.walk(|piece| {
            let (mut index, mut len) = match piece {
                Piece::Free { .. } => return,
                Piece::Used { index, order } => (index, 1 << order),
                Piece::Run { index, len } | Piece::Reserved { index, len } => (index, len),
            };
            while len > 0 {
                if index >> order != current {
                    close(current, used);
                    (current, used) = (index >> order, 0);
                }
                let part = len.min(((current + 1) << order) - index);
                used += part;
                index += part;
                len -= part;
            }
        });
        close(current, used);
        Ok(stretches)
    }

    /// Reports the pieces of a word and of the words below its split slots.
    fn walk_word(&self, level: usize, idx: u64, visitor: &mut Visitor<impl FnMut(Piece)>) {
        let word = self.tree.read(level, idx);
        let codes = self.resolved(level, idx, word);
        let whole = self.geometry().whole_slots(level, idx);
        let free = word::free_slots(codes) & word::first_slots(whole);
        let first = idx << W::SHAPE.slots_log2(level);
        let mut slot = 0;
        while slot < whole {
            let index = (first | u64::from(slot)) << W::SHAPE.slot_order(level);
            slot += match word::code(codes, slot) {
                word::FREE => {
                    let order = word::run_at(free, slot);
                    visitor.piece(Piece::Free { index, order: order + W::SHAPE.slot_order(level) });
                    1 << order
                }
                word::SPLIT if level > 0 => {
                    self.walk_word(level - 1, first | u64::from(slot), visitor);
                    1
                }
                word::HOLE if !span::is_open(codes, slot) => {
                    let len = span::length_from(span::holes(codes), slot).min(whole - slot);
                    visitor.piece(Piece::Reserved { index, len: u64::from(len) });
                    len
                }
                code => {
                    let slots = (1 + span::rests_from(codes, slot + 1)).min(whole - slot);
                    visitor.held(
                        index,
                        u64::from(slots) << W::SHAPE.slot_order(level),
                        code == word::REST,
                    );
                    slots
                }
            };
        }
        if let Some((slot, _)) = self.geometry().partial_slot(level, idx) {
            self.walk_word(level - 1, first | u64::from(slot), visitor);
        }
    }

    /// The codes of a word, with merges that wait to be made taken as made.
    fn resolved(&self, level: usize, idx: u64, word: u64) -> u64 {
        let mut codes = word::codes(level, word);
        if level > 0 && word::bound(word) == word::UNSETTLED {
            for slot in word::from_slot(self.tree.split_slots(level, idx, codes), 0) {
                let below = W::SHAPE.child(idx, slot);
                let found = self.tree.read(level - 1, below);
                if self.resolved(level - 1, below, found) == 0 {
                    codes &= !(word::SPLIT << (2 * slot));
                }
            }
        }
        codes
    }
}

/// Puts together what belongs to one run, and passes everything on.
struct Visitor<V> {
    visit: V,
    /// First unit and number of units of the run that may go on.
    held: Option<(u64, u64)>,
}

impl<V: FnMut(Piece)> Visitor<V> {
    fn piece(&mut self, piece: Piece) {
        self.end_run();
        (self.visit)(piece);
    }

    /// Units in use; if they are `rests`, of the run before.
    fn held(&mut self, index: u64, len: u64, rests: bool) {
        match &mut self.held {
            Some((_, before)) if rests => *before += len,
            _ => {
                self.end_run();
                self.held = Some((index, len));
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((index, len)) = self.held.take() {
            let is_block = len.is_power_of_two() && index & (len - 1) == 0;
            let block = Piece::Used { index, order: len.trailing_zeros() };
            (self.visit)(if is_block { block } else { Piece::Run { index, len } });
        }
    }
}
