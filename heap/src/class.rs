//! Size classes: which slot holds a layout, and how slots lie in a slab. Pure arithmetic.

use core::alloc::Layout;

/// log2 of the bytes of a unit, the smallest slab.
pub const UNIT_LOG2: u32 = 10;

/// The bytes of a unit.
pub const UNIT: usize = 1 << UNIT_LOG2;

/// The alignment of a region's units: slots are aligned to no more.
pub const PAGE: usize = 4096;

/// The bytes of the smallest slot, to which all others are aligned.
pub const GRAIN: usize = 16;

/// Slots up to this size are a grain apart; above, an eighth of a power of two.
const FINE: usize = 256;

/// The bytes of the largest slot.
pub const LARGEST: usize = 32 << 10;

/// How many classes there are.
pub const CLASSES: usize = classes_up_to(LARGEST);

/// Returns how many classes have slots of at most `bytes` bytes, a power of two from [`FINE`] on.
const fn classes_up_to(bytes: usize) -> usize {
    FINE / GRAIN + 8 * (bytes.trailing_zeros() - FINE.trailing_zeros()) as usize
}

/// The most slots of a slab: one bit each, except the bit that says whether the slab is listed.
const MOST_SLOTS: usize = 63;

/// The most freed slots of a class that a cache keeps, and the most bytes, if these are more than two slots.
pub const MOST_KEPT: usize = 32;
const KEPT_BYTES: usize = 64 << 10;

/// The most freed slots of all classes that wait in a cache, with the feature `quarantine`, and the most bytes, if
/// these are more than one slot.
#[cfg(feature = "quarantine")]
pub const MOST_WAITING: usize = 256;
#[cfg(feature = "quarantine")]
pub const WAITING_BYTES: usize = 256 << 10;

/// The bytes of the largest slots for which slabs are made in any case.
const MOST_IN_SLABS: usize = 1 << 10;

/// How many classes have slots of at most so many bytes.
pub const SMALL_CLASSES: usize = classes_up_to(MOST_IN_SLABS);

/// The most units of a slab, log2.
pub const MOST_ORDER: u32 = 8;

/// Returns whether an address or a size is a multiple of a power of two, without the division that `is_multiple_of` is
/// where that is not known to be one.
#[inline]
pub const fn is_aligned(what: usize, align: usize) -> bool {
    what & (align - 1) == 0
}

/// The classes, by number.
static CLASS: [Dimensions; CLASSES] = dimensions();

/// The slots of one class, and their slabs.
#[derive(Clone, Copy, Debug)]
struct Dimensions {
    /// Bytes of a slot.
    size: u32,
    /// 2^40 / size, rounded up: divides an offset in a slab.
    reciprocal: u64,
    /// log2 of the units of a slab.
    order: u8,
    /// Slots of a slab.
    slots: u8,
    /// Slots that a cache keeps.
    most_kept: u8,
}

/// The number of a class: slots of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

/// A slot in a slab.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub class: Class,
    /// The address of its slab.
    pub slab: usize,
    /// Which of the slab's slots it is.
    pub number: u32,
}

impl Class {
    /// Iterates over all classes, by size.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CLASSES as u8).map(Self)
    }

    /// Returns the class of this number, if there is one.
    pub fn numbered(number: usize) -> Option<Self> {
        (number < CLASSES).then_some(Self(number as u8))
    }

    /// Returns the class with the smallest slots that hold `layout`, if any do.
    #[inline]
    pub fn of(layout: Layout) -> Option<Self> {
        if layout.align() > GRAIN {
            return Self::of_aligned(layout.size(), layout.align());
        }
        (layout.size() <= LARGEST).then(|| Self::of_size(layout.size()))
    }

    /// Finds the class for an alignment: slots are at multiples of their size, in slabs that are aligned to a page at
    /// most.
    #[cold]
    fn of_aligned(size: usize, align: usize) -> Option<Self> {
        if align > PAGE || size > LARGEST {
            return None;
        }
        let size = (size.max(1) + (align - 1)) & !(align - 1);
        let class = Self::of_size(size);
        let fits = is_aligned(class.size(), align);
        Some(if fits { class } else { Self::of_size(size.next_power_of_two()) })
    }

    /// Returns the class with the smallest slots of `size` bytes or more, where `size` is at most [`LARGEST`].
    #[inline]
    const fn of_size(size: usize) -> Self {
        // By one table, as counting the bits takes longer, and so does a branch that nobody can foretell.
        Self(OF_GRAINS[size.div_ceil(GRAIN) % OF_GRAINS.len()])
    }

    /// Iterates over the classes whose slots, as runs of their own, have so many units' bytes.
    pub fn of_runs(bytes: usize) -> impl Iterator<Item = Self> {
        let classes = if bytes > LARGEST {
            0..0
        } else {
            Self::of_size(bytes - (UNIT - 1)).0..Self::of_size(bytes).0 + 1
        };
        classes.map(Self)
    }

    /// Returns its number, below [`CLASSES`].
    #[inline]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    #[inline]
    const fn dimensions(self) -> &'static Dimensions {
        &CLASS[self.0 as usize]
    }

    /// The bytes of a slot.
    #[inline]
    pub const fn size(self) -> usize {
        self.dimensions().size as usize
    }

    /// The bytes to which all its slots are aligned.
    pub const fn align(self) -> usize {
        let of_size = 1 << self.size().trailing_zeros();
        if of_size < PAGE { of_size } else { PAGE }
    }

    /// log2 of the units of a slab.
    #[inline]
    pub const fn slab_order(self) -> u32 {
        self.dimensions().order as u32
    }

    /// The bytes of a slab.
    #[inline]
    pub const fn slab_bytes(self) -> usize {
        UNIT << self.slab_order()
    }

    /// A bit for each slot of a slab.
    #[inline]
    pub const fn all_slots(self) -> u64 {
        (1 << self.dimensions().slots) - 1
    }

    /// Returns the most freed slots that a cache keeps.
    #[inline]
    pub const fn most_kept(self) -> usize {
        self.dimensions().most_kept as usize
    }

    /// Returns whether a slot may be a run of its own, when there is no room for a slab.
    pub const fn may_be_run(self) -> bool {
        self.slab_order() > 0
    }

    /// Returns whether a slot is a run of its own, rather than a slot of a new slab, while memory is short or slabs are
    /// large in proportion to it. Runs fit where there is no room for a slab, and no part of a slab goes unused.
    pub const fn prefers_runs(self) -> bool {
        self.size() > MOST_IN_SLABS
    }

    /// Returns how many whole slots lie in `offset` bytes: `offset / size`.
    #[inline]
    pub const fn slots_before(self, offset: usize) -> u32 {
        ((offset as u64 * self.dimensions().reciprocal) >> 40) as u32
    }

    /// Returns the slot in which the byte `offset` bytes from the start of a slab lies, if it lies in one, and the
    /// offset at which that begins.
    #[inline]
    pub const fn slot_over(self, offset: usize) -> Option<(u32, usize)> {
        let (slot, dimensions) = (self.slots_before(offset), self.dimensions());
        if slot < dimensions.slots as u32 {
            Some((slot, (slot * dimensions.size) as usize))
        } else {
            None
        }
    }

    /// Returns the slot that begins `offset` bytes from the start of its slab, if one does.
    #[inline]
    pub const fn slot_at(self, offset: usize) -> Option<u32> {
        match self.slot_over(offset) {
            Some((slot, begins)) if begins == offset => Some(slot),
            _ => None,
        }
    }
}

const fn dimensions() -> [Dimensions; CLASSES] {
    let mut all =
        [Dimensions { size: 0, reciprocal: 0, order: 0, slots: 0, most_kept: 0 }; CLASSES];
    let mut number = 0;
    while number < CLASSES {
        let size = size_of_class(number);
        let (order, slots) = slab_of(size);
        let reciprocal = (1_u64 << 40).div_ceil(size as u64);
        all[number] =
            Dimensions { size: size as u32, reciprocal, order, slots, most_kept: most_kept(size) };
        number += 1;
    }
    all
}

/// The class with the smallest slots of so many grains, up to [`LARGEST`]; as long as a power of two.
static OF_GRAINS: [u8; 2 * LARGEST / GRAIN] = of_grains();

const fn of_grains() -> [u8; 2 * LARGEST / GRAIN] {
    let mut all = [0; 2 * LARGEST / GRAIN];
    let (mut grains, mut number) = (0, 0);
    while grains <= LARGEST / GRAIN {
        while size_of_class(number) < grains * GRAIN {
            number += 1;
        }
        all[grains] = number as u8;
        grains += 1;
    }
    all
}

const fn size_of_class(number: usize) -> usize {
    let fine = FINE / GRAIN;
    if number < fine {
        return (number + 1) * GRAIN;
    }
    let (octave, eighth) = ((number - fine) / 8, (number - fine) % 8);
    (FINE << octave) / 8 * (9 + eighth)
}

const fn most_kept(size: usize) -> u8 {
    let most = KEPT_BYTES / size;
    if most < MOST_KEPT { if most < 2 { 2 } else { most as u8 } } else { MOST_KEPT as u8 }
}

/// Returns the smallest slab that has at least eight slots and wastes at most a 32nd, or the one that wastes least.
const fn slab_of(size: usize) -> (u8, u8) {
    let (mut order, mut best, mut least) = (0, (0, 0), u64::MAX);
    while order <= MOST_ORDER {
        let bytes = UNIT << order;
        let slots = if bytes / size < MOST_SLOTS { bytes / size } else { MOST_SLOTS };
        let wasted = (((bytes - slots * size) as u64) << 32) / bytes as u64;
        if slots >= 8 && wasted < least {
            (best, least) = ((order as u8, slots as u8), wasted);
            if wasted <= 1 << 27 {
                return best;
            }
        }
        order += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, Class, LARGEST, UNIT};
    use core::alloc::Layout;

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes, and has no unsafe code")]
    fn the_smallest_class_that_holds_a_size() {
        for size in 0..=LARGEST {
            let class = Class::of_size(size);
            assert!(class.size() >= size, "{size}");
            assert!(class.number() == 0 || Class(class.0 - 1).size() < size, "{size}");
        }
        assert_eq!(Class::of_size(LARGEST).number(), CLASSES - 1);
        assert_eq!(Class::of(Layout::new::<[u8; LARGEST + 1]>()), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes, and has no unsafe code")]
    fn slots_are_aligned_as_asked() {
        for align in (0..16).map(|log2| 1 << log2) {
            for size in 0..=LARGEST {
                let layout = Layout::from_size_align(size, align).unwrap();
                let Some(class) = Class::of(layout) else { continue };
                assert!(class.size() >= size);
                assert!(class.size() % align == 0 || align < 16, "{layout:?}");
                assert_eq!((UNIT << class.slab_order()) % align, 0);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes, and has no unsafe code")]
    fn offsets_divide_into_slots() {
        for class in Class::all() {
            let slots = class.all_slots().count_ones();
            assert!((8..=63).contains(&slots), "{class:?}");
            assert!(slots as usize * class.size() <= (UNIT << class.slab_order()));
            for offset in 0..(UNIT << class.slab_order()) {
                let slot = (offset / class.size()) as u32;
                let begins = offset % class.size() == 0 && slot < slots;
                assert_eq!(class.slot_at(offset), begins.then_some(slot));
            }
        }
    }

    #[test]
    fn slabs_waste_little() {
        for class in Class::all() {
            let used = class.all_slots().count_ones() as usize * class.size();
            let bytes = UNIT << class.slab_order();
            assert!((bytes - used) * 11 <= bytes, "{class:?} wastes {} of {bytes}", bytes - used);
        }
    }
}
