//! Classes of slots, and how many of each a slab has: arithmetic on the geometry, the same in every process.

use std::alloc::Layout;

/// Classes: 16 to 128 bytes in steps of 16, then four to each doubling, to 4 KiB.
pub(crate) const CLASSES: usize = 28;

const STEP: usize = 16;
/// The number of classes of the first kind, and log2 of the largest of them.
const LINEAR: usize = 8;
const LINEAR_LOG2: u32 = 7;

/// Bytes of a slab, unless a unit has more.
const LEAST_SLAB: u64 = 256;
const MOST_SLAB: u64 = 32 << 10;
/// A slab is at most this part of the segment, unless that is less than the least.
const PART: u64 = 32;

/// A class with fewer slots in a slab is not used: blocks serve as well.
const LEAST_SLOTS: u64 = 4;
/// The most slots of a slab, however large a unit is.
const MOST_SLOTS: u64 = 1 << 16;

/// Slabs of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The order of every slab.
    pub order: u32,
    pub unit_log2: u32,
    /// Slots of each class in a slab; 0: the class is not used.
    slots: [u32; CLASSES],
}

impl Shape {
    pub fn new(units: u64, unit_bytes: u64) -> Self {
        let unit_log2 = unit_bytes.trailing_zeros();
        let part = (units << unit_log2) / PART;
        let log2 = part.clamp(LEAST_SLAB, MOST_SLAB).ilog2();
        let order = log2.saturating_sub(unit_log2).min(units.ilog2());
        let bytes = unit_bytes << order;
        let slots = std::array::from_fn(|class| {
            let most = (bytes / (size(class) as u64 + 8)).min(MOST_SLOTS);
            if most < LEAST_SLOTS { 0 } else { most as u32 }
        });
        Self { order, unit_log2, slots }
    }

    /// Returns the bytes of a slab.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        1 << (self.order + self.unit_log2)
    }

    /// Returns the slots of a slab of this class. `None`: there is no such slab.
    #[inline(always)]
    pub fn slots(&self, class: usize) -> Option<usize> {
        self.slots.get(class).map(|&slots| slots as usize).filter(|&slots| slots > 0)
    }

    /// Returns the class of the slots that have room for a layout. `None`: it takes a block.
    #[inline]
    pub fn class_of(&self, layout: Layout) -> Option<usize> {
        let align = layout.align();
        let size = layout.size().checked_next_multiple_of(align)?.max(align);
        // A multiple of the alignment, so that each slot is aligned; powers of two always are.
        let class = (class_for(size)..CLASSES).find(|&class| self::size(class) & (align - 1) == 0);
        class.filter(|&class| self.slots(class).is_some())
    }
}

/// Returns the first class with slots of `bytes` bytes, more than 0; [`CLASSES`] or more if there is none.
#[inline(always)]
fn class_for(bytes: usize) -> usize {
    if bytes <= 1 << LINEAR_LOG2 {
        return (bytes - 1) / STEP;
    }
    let last = bytes - 1;
    let log2 = last.ilog2();
    LINEAR + (log2 - LINEAR_LOG2) as usize * 4 + ((last >> (log2 - 2)) & 3)
}

/// Bytes of a slot.
#[inline(always)]
pub(crate) const fn size(class: usize) -> usize {
    if class < LINEAR {
        return (class + 1) * STEP;
    }
    let (doubling, step) = ((class - LINEAR) / 4, (class - LINEAR) % 4);
    (5 + step) << (LINEAR_LOG2 as usize - 2 + doubling)
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, Shape, class_for, size};
    use std::alloc::Layout;

    #[test]
    fn classes_ascend_and_waste_a_fifth_at_most() {
        for bytes in 1..=4096 {
            let class = class_for(bytes);
            assert!(size(class) >= bytes, "{bytes}");
            assert!(class == 0 || size(class - 1) < bytes, "{bytes}");
            assert!(bytes <= 128 || (size(class) - bytes) * 5 <= size(class), "{bytes}");
        }
        assert_eq!((size(CLASSES - 1), class_for(4097)), (4096, CLASSES));
    }

    #[test]
    fn words_and_slots_have_room_in_any_slab() {
        for unit_log2 in 6..=30 {
            for units in [1, 2, 3, 64, 300, 1 << 15] {
                let shape = Shape::new(units, 1 << unit_log2);
                assert!(1 << shape.order <= units);
                for class in 0..CLASSES {
                    let Some(slots) = shape.slots(class) else { continue };
                    assert!(((size(class) + 8) * slots) as u64 <= shape.bytes());
                }
            }
        }
    }

    #[test]
    fn layouts_have_classes_or_take_blocks() {
        let shape = Shape::new(1 << 15, 256);
        let of = |size, align| shape.class_of(Layout::from_size_align(size, align).unwrap());
        for (bytes, align, slot) in [(0, 1, 16), (17, 8, 32), (130, 64, 192), (200, 256, 256)] {
            assert_eq!(of(bytes, align).map(size), Some(slot), "{bytes}, {align}");
        }
        assert_eq!(of(1, 4096).map(size), Some(4096));
        assert_eq!((of(4097, 1), of(1, 8192), of(isize::MAX as usize, 1)), (None, None, None));
    }
}
