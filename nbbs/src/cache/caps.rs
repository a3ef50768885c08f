//! Limits on what a cache may keep.

use super::stacks::{CLASSES, LARGE, capacity};
use crate::layout::geometry::MAX_ORDERS;

/// The largest number of units that a cache keeps of each order, and which large order it keeps.
///
/// A cache keeps blocks of orders 0 to 8 and of one large order. By default these are 64 blocks of orders 0 and 1, 32
/// of orders 2 and 3, 16 of orders 4 and 5, 8 of order 6, 4 of order 7, and 2 of order 8 and of order 9, the large one:
/// 3904 units in all, or 15 MiB in pages of 4 KiB.
///
/// A cache that has no block of an order takes as many as one word of the buddy allocator has, up to half of what it
/// may keep: at most 32 units of the orders up to 4. A cache that may keep no more gives back an eighth, or half if
/// those blocks lie close together.
///
/// ```
/// use nbbs::{Cache, Caps};
///
/// let metadata = nbbs::Metadata::<{ nbbs::metadata_words(1 << 12) }>::new();
/// let buddy = nbbs::Buddy::new(metadata.words(), 1 << 12)?;
/// let mut cache = Cache::new(buddy, 0, Caps::new().large(10).units(0, 16).units(3, 0));
/// cache.alloc(0)?;
/// assert_eq!(cache.cached().units, 7); // half of 16, less the one that was asked for
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Blocks of each class.
    blocks: [u8; CLASSES],
    /// Blocks of each class up to which a free is no more than a push: all of them, or none if each free is checked.
    unchecked: [u8; CLASSES],
    large: u32,
    checked: bool,
}

impl Caps {
    /// Creates the default: from 64 blocks of order 0 to 2 blocks of order 9.
    ///
    /// ```
    /// assert_eq!(nbbs::Caps::new(), nbbs::Caps::default());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        let blocks = [64, 64, 32, 32, 16, 16, 8, 4, 2, 2];
        Self { blocks, unchecked: blocks, large: 9, checked: false }.checked(cfg!(debug_assertions))
    }

    /// Creates the default, lowered so that `caches` caches together keep at most an eighth of an arena of `units`
    /// units: no order keeps more units than a limit, which is halved as often as that takes.
    ///
    /// ```
    /// use nbbs::Caps;
    ///
    /// assert_eq!(Caps::for_arena(1 << 18, 4), Caps::new()); // 1 GiB in pages
    /// let small = Caps::for_arena(1 << 14, 4); // 64 MiB: 64 units of each order
    /// assert_eq!(small, (0..=9).fold(Caps::new(), |caps, order| caps.units(order, 64)));
    /// ```
    #[must_use]
    pub const fn for_arena(units: u64, caches: usize) -> Self {
        Self::new().lowered(units / 8 / if caches == 0 { 1 } else { caches as u64 })
    }

    /// Lowers the limits until a cache keeps `share` units at most: no order keeps more units than a limit, which is
    /// halved as often as that takes.
    pub(super) const fn lowered(mut self, share: u64) -> Self {
        let mut most = 1 << MAX_ORDERS;
        while self.all_units() > share {
            let mut class = 0;
            while class < CLASSES {
                if self.units_of(class) > most {
                    self = self.units(self.order(class), most);
                }
                class += 1;
            }
            most /= 2;
        }
        self
    }

    /// Returns how many units a cache keeps at most.
    pub(super) const fn all_units(&self) -> u64 {
        let (mut units, mut class) = (0, 0);
        while class < CLASSES {
            units += self.units_of(class);
            class += 1;
        }
        units
    }

    /// Returns how many units of a class a cache keeps at most.
    const fn units_of(&self, class: usize) -> u64 {
        let order = self.order(class);
        // A large order that is none, or that of another class, has no blocks.
        let is_kept = class < LARGE || order >= LARGE as u32 && order < MAX_ORDERS as u32;
        if is_kept { self.cap(class) << order } else { 0 }
    }

    /// Sets the large order. If it is 8 or less, or larger than any, no block above order 8 is kept.
    ///
    /// The number of blocks stays what it was: 2 by default, fewer if [`units`](Self::units) or
    /// [`for_arena`](Self::for_arena) limited those of the former large order. Set the order first, then its
    /// [`units`](Self::units).
    ///
    /// ```
    /// let none = nbbs::Caps::new().large(0);
    /// assert_ne!(none, nbbs::Caps::new());
    /// ```
    #[must_use]
    pub const fn large(mut self, order: u32) -> Self {
        self.large = order;
        self
    }

    /// Limits the blocks of `order` to `units` units, rounded down to whole blocks.
    ///
    /// A limit above 64 blocks of orders 0 to 3, or 16 of any other, is lowered to that. The limit has no effect for an
    /// order that is not kept.
    ///
    /// ```
    /// let caps = nbbs::Caps::new();
    /// assert_eq!(caps.units(1, 1000), caps.units(1, 128));
    /// assert_eq!(caps.units(9, 1 << 10), caps);
    /// assert_eq!(caps.units(10, 0), caps);
    /// ```
    #[must_use]
    pub const fn units(mut self, order: u32, units: u64) -> Self {
        if let Some(class) = self.class(order) {
            let (blocks, most) = (units >> order, capacity(class));
            self.blocks[class] = if blocks < most { blocks } else { most } as u8;
        }
        self.checked(self.is_checked())
    }

    /// Returns how many blocks of `order` a cache keeps at most: 0 of an order that is not kept.
    ///
    /// ```
    /// use nbbs::Caps;
    ///
    /// let small = Caps::for_arena(1 << 14, 4);
    /// assert_eq!([0, 3, 6, 9, 10].map(|order| small.blocks(order)), [64, 8, 1, 0, 0]);
    /// ```
    #[must_use]
    pub const fn blocks(&self, order: u32) -> u64 {
        match self.class(order) {
            Some(class) => self.cap(class),
            None => 0,
        }
    }

    /// Sets whether each free is checked against the arena and the caches. By default it is in builds with debug
    /// assertions, and is not in others.
    ///
    /// Cost of a check: a load for each level, and one for each block of the order in the caches that are searched.
    /// [`Cache`](crate::Cache) and [`Caches`](crate::Caches) say which frees are refused with and without checks.
    ///
    /// ```
    /// # let metadata = nbbs::Metadata::<{ nbbs::metadata_words(64) }>::new();
    /// # let buddy = nbbs::Buddy::new(metadata.words(), 64)?;
    /// let mut cache = nbbs::Cache::new(buddy, 0, nbbs::Caps::new().checked(true));
    /// assert!(cache.free_sized(5, 0).is_err()); // never allocated
    /// # Ok::<(), nbbs::MetadataError>(())
    /// ```
    #[must_use]
    pub const fn checked(mut self, checked: bool) -> Self {
        self.checked = checked;
        self.unchecked = if checked { [0; CLASSES] } else { self.blocks };
        self
    }

    /// Returns the class of `order`, if it is kept.
    pub(super) const fn class(&self, order: u32) -> Option<usize> {
        match Self::own_class(order) {
            None if order == self.large && order < MAX_ORDERS as u32 => Some(LARGE),
            class => class,
        }
    }

    /// Returns the class of `order`, if it has one of its own. Its hits are inlined.
    #[inline(always)]
    pub(super) const fn own_class(order: u32) -> Option<usize> {
        if order < LARGE as u32 { Some(order as usize) } else { None }
    }

    /// Returns the order of a class.
    pub(super) const fn order(&self, class: usize) -> u32 {
        if class == LARGE { self.large } else { class as u32 }
    }

    /// Returns the largest number of blocks of a class.
    pub(super) const fn cap(&self, class: usize) -> u64 {
        self.blocks[class] as u64
    }

    /// Returns the number of blocks of a class up to which one may be added without a check.
    #[inline(always)]
    pub(super) const fn unchecked(&self, class: usize) -> u64 {
        self.unchecked[class] as u64
    }

    /// Returns how many blocks of a class are taken or given back at a time if they lie together: at least one.
    pub(super) const fn half(&self, class: usize) -> usize {
        let half = self.blocks[class] as usize / 2;
        if half == 0 { 1 } else { half }
    }

    /// Returns how many blocks of a class are given back at a time if they lie apart: at least one.
    pub(super) const fn eighth(&self, class: usize) -> usize {
        let eighth = self.blocks[class] as usize / 8;
        if eighth == 0 { 1 } else { eighth }
    }

    pub(super) const fn is_checked(&self) -> bool {
        self.checked
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Caps;

    #[test]
    fn without_a_large_order_there_are_no_blocks_of_it() {
        let none = Caps::new().units(9, 0);
        for order in [0, 3, 8, 64, u32::MAX] {
            let caps = Caps::new().large(order);
            assert_eq!(caps.all_units(), none.all_units(), "{order}");
            assert!(caps.lowered(10).all_units() <= 10, "{order}");
        }
    }
}
