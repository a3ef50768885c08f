//! How many units and slots a word describes, and what follows from that. Pure arithmetic, no atomics.

/// The shape of the tree of words: how many units a leaf word describes, and how many words of the level below an inner
/// word describes.
///
/// It belongs to the type of the words ([`Word::SHAPE`](crate::sync::Word::SHAPE)), so that it is a constant everywhere
/// in compiled code. The processor's atomics have [`Shape::STANDARD`]. A checker gives its words a smaller shape: 32
/// units then have four levels, and every interleaving of operations that cross all of them can be tried on the
/// library's own code.
///
/// ```
/// use nbbs::Shape;
///
/// const SMALL: Shape = Shape::new(2, 1, 3); // leaf words of 4 units, inner words of 2 slots
/// assert_eq!(Shape::STANDARD.metadata_words(1 << 18), nbbs::metadata_words(1 << 18));
/// assert_eq!(SMALL.max_units(), 2047);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    leaf: u32,
    fan: u32,
    lane: u32,
}

/// The most levels that a tree has.
pub(crate) const MAX_LEVELS: usize = 10;

impl Shape {
    /// The default: leaf words of 32 units, inner words of 16 slots, a lane for 1024 units in small arenas.
    pub const STANDARD: Self = Self::new(5, 4, 10);

    /// Creates a shape with leaf words of `2^leaf` units and inner words of `2^fan` slots. Arenas with fewer than four
    /// lanes have one for `2^lane` units.
    ///
    /// # Panics
    /// Unless `leaf` is 1 to 5, `fan` 1 to 4 and `lane` at most 10: at compile time, where the shape is a constant.
    ///
    /// ```
    /// assert_eq!(nbbs::Shape::new(5, 4, 10), nbbs::Shape::STANDARD);
    /// ```
    #[must_use]
    pub const fn new(leaf: u32, fan: u32, lane: u32) -> Self {
        assert!(leaf >= 1 && leaf <= 5, "a leaf word describes 2 to 32 units");
        assert!(fan >= 1 && fan <= 4, "an inner word has 2 to 16 slots");
        assert!(lane <= 10, "a lane has at most 1024 units where there are few");
        Self { leaf, fan, lane }
    }

    /// Returns the largest number of units that an arena of this shape may have.
    ///
    /// ```
    /// assert_eq!(nbbs::Shape::STANDARD.max_units(), nbbs::MAX_UNITS);
    /// ```
    #[must_use]
    pub const fn max_units(self) -> u64 {
        // No block may be as large as the word at the top.
        let most = (1 << self.word_order(MAX_LEVELS - 1)) - 1;
        if most < crate::MAX_UNITS { most } else { crate::MAX_UNITS }
    }

    /// Returns [`metadata_words`](crate::metadata_words) for words of this shape.
    ///
    /// ```
    /// assert_eq!(nbbs::Shape::STANDARD.metadata_words(0), 0);
    /// ```
    #[must_use]
    pub const fn metadata_words(self, units: u64) -> usize {
        match crate::layout::geometry::Layout::new(self, units) {
            Ok(layout) => layout.words(),
            Err(_) if units == 0 => 0,
            Err(_) => usize::MAX,
        }
    }

    /// log2 of the smallest number of units for each lane in small arenas.
    pub(crate) const fn few_units_per_lane(self) -> u32 {
        self.lane
    }

    /// log2 of the units that one slot of a word at `level` stands for.
    #[inline(always)]
    pub(crate) const fn slot_order(self, level: usize) -> u32 {
        if level == 0 { 0 } else { self.leaf + self.fan * (level as u32 - 1) }
    }

    /// log2 of the slots of a word at `level`.
    #[inline(always)]
    pub(crate) const fn slots_log2(self, level: usize) -> u32 {
        if level == 0 { self.leaf } else { self.fan }
    }

    /// The slots of a word at `level`.
    #[inline(always)]
    pub(crate) const fn slots(self, level: usize) -> u32 {
        1 << self.slots_log2(level)
    }

    /// The units of a leaf word.
    #[inline(always)]
    pub(crate) const fn leaf_units(self) -> u64 {
        1 << self.leaf
    }

    /// log2 of the units that one word at `level` stands for.
    #[inline(always)]
    pub(crate) const fn word_order(self, level: usize) -> u32 {
        self.leaf + self.fan * level as u32
    }

    /// Returns the level whose words hold blocks of `order`.
    #[inline(always)]
    pub(crate) const fn level_of(self, order: u32) -> usize {
        if order < self.leaf { 0 } else { ((order + self.fan - self.leaf) / self.fan) as usize }
    }

    /// Returns the word above word `idx` of a level, and the slot in it that stands for that word.
    #[inline(always)]
    pub(crate) const fn parent(self, idx: u64) -> (u64, u32) {
        (idx >> self.fan, (idx & ((1 << self.fan) - 1)) as u32)
    }

    /// The word half an area from word `idx`, below the same word above.
    #[inline(always)]
    pub(crate) const fn across(self, idx: u64) -> u64 {
        idx ^ 1 << (self.fan - 1)
    }

    /// The word `levels` above word `idx`.
    #[inline(always)]
    pub(crate) const fn ancestor(self, idx: u64, levels: usize) -> u64 {
        idx >> (self.fan as usize * levels)
    }

    /// The first of the words `levels` below word `idx`.
    #[inline(always)]
    pub(crate) const fn first_below(self, levels: usize, idx: u64) -> u64 {
        idx << (self.fan as usize * levels)
    }

    /// The word below `slot` of inner word `idx`.
    #[inline(always)]
    pub(crate) const fn child(self, idx: u64, slot: u32) -> u64 {
        idx << self.fan | slot as u64
    }

    /// Returns the word of `level` that describes unit `index`, and the slot in it.
    #[inline(always)]
    pub(crate) const fn locate(self, level: usize, index: u64) -> (u64, u32) {
        let slot = (index >> self.slot_order(level)) as u32 & ((1 << self.slots_log2(level)) - 1);
        (index >> self.word_order(level), slot)
    }

    /// The first unit of `slot` of word `idx` of `level`.
    #[inline(always)]
    pub(crate) const fn first_unit(self, level: usize, idx: u64, slot: u32) -> u64 {
        (idx << self.slots_log2(level) | slot as u64) << self.slot_order(level)
    }

    /// Whether a slot of a word of `level` begins at `unit`.
    #[inline(always)]
    pub(crate) const fn begins_slot(self, level: usize, unit: u64) -> bool {
        unit & ((1 << self.slot_order(level)) - 1) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 4] =
        [Shape::STANDARD, Shape::new(2, 1, 3), Shape::new(2, 2, 3), Shape::new(1, 3, 0)];

    #[test]
    fn levels_orders_and_slots_agree() {
        for shape in SHAPES {
            for order in 0..=shape.max_units().ilog2() {
                let level = shape.level_of(order);
                assert!(shape.slot_order(level) <= order, "{shape:?}: {order}");
                // A whole word is a slot of the level above.
                assert!(order < shape.word_order(level), "{shape:?}: {order}");
                assert_eq!(
                    shape.slot_order(level) + shape.slots_log2(level),
                    shape.word_order(level)
                );
            }
        }
    }

    #[test]
    fn the_largest_arena_of_any_shape_has_a_layout() {
        for (leaf, fan) in (1..=5).flat_map(|leaf| (1..=4).map(move |fan| (leaf, fan))) {
            let shape = Shape::new(leaf, fan, 3);
            assert!(shape.metadata_words(shape.max_units()) > 0, "{shape:?}");
            assert_eq!(shape.metadata_words(shape.max_units() + 1), usize::MAX, "{shape:?}");
        }
    }

    #[test]
    fn places_read_back() {
        for shape in SHAPES {
            for level in 0..4 {
                for unit in 0..200 {
                    let (idx, slot) = shape.locate(level, unit);
                    let first = shape.first_unit(level, idx, slot);
                    assert_eq!(first, unit >> shape.slot_order(level) << shape.slot_order(level));
                    assert_eq!(shape.begins_slot(level, unit), first == unit);
                    assert_eq!(shape.locate(level + 1, unit).0, shape.parent(idx).0);
                    let (above, slot) = shape.parent(idx);
                    assert_eq!((shape.child(above, slot), shape.ancestor(idx, 1)), (idx, above));
                }
            }
        }
    }
}
