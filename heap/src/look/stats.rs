//! What a heap's memory is used for.

use core::fmt;

use crate::class::{CLASSES, Class, UNIT};
use crate::region::{Memory, Region};

use nbbs::Piece;

/// What a heap's memory is used for, in bytes, each as it is at some moment of the walk.
///
/// To the heap, slots and runs that a cache keeps are in use.
///
/// ```
/// use nbbs_heap::{Heap, Stats};
/// use std::alloc::Layout;
///
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// let before: Stats = HEAP.stats();
/// assert!(HEAP.alloc(Layout::new::<[u8; 100_000]>()).is_some());
/// assert_eq!(HEAP.stats().free, before.free - (98 << 10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The memory that the heap can hand out, without the bookkeeping. The next four fields add up to it.
    pub bytes: usize,
    /// Units that are free.
    pub free: usize,
    /// Runs of units, in use or kept by a cache: memory without a size class, and slots for which there was no room in a
    /// slab; also units that somebody is claiming for a run, or freeing.
    pub runs: usize,
    /// Slots that are in use, or kept by a cache, and what is left over in their slabs.
    pub slots: usize,
    /// Slots of slabs that are free.
    pub free_slots: usize,
    classes: [ClassStats; CLASSES],
    /// The most bytes that are free in one piece whose size is a power of two.
    pub largest_free: usize,
    /// Frees that were refused.
    pub refused: usize,
}

/// One line, in bytes.
///
/// ```
/// # use nbbs_heap::Heap;
/// # use std::alloc::Layout;
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// assert!(HEAP.alloc(Layout::new::<[u8; 100_000]>()).is_some());
/// let said = HEAP.stats().to_string();
/// assert!(said.contains("100352 in runs, 0 in slots"), "{said}");
/// ```
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, free, runs, slots, free_slots, largest_free, refused, .. } = self;
        write!(
            f,
            "{bytes} bytes: {free} free, {runs} in runs, {slots} in slots, {free_slots} in free slots; "
        )?;
        write!(f, "largest free piece {largest_free}; {refused} frees refused")
    }
}

/// What the slots of one size are used for.
///
/// ```
/// use nbbs_heap::{ClassStats, Heap};
/// use std::alloc::Layout;
///
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// assert!(HEAP.alloc(Layout::new::<[u8; 100]>()).is_some());
/// HEAP.trim(); // what the cache keeps
/// let stats = HEAP.stats();
/// let of: &ClassStats = stats.classes().iter().find(|of| of.used > 0).unwrap();
/// assert_eq!((of.size, of.used, of.slabs), (112, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassStats {
    /// Bytes of a slot.
    pub size: usize,
    /// Slots in use, or kept by a cache.
    pub used: usize,
    /// Slots that are free.
    pub free: usize,
    /// Slabs.
    pub slabs: usize,
}

impl Stats {
    /// Returns what the slots of each size class are used for, the smallest first. The numbers of size classes in
    /// [`LiveBlock`](crate::LiveBlock) are positions here. How many there are may change. Cost: none.
    ///
    /// ```
    /// use nbbs_heap::Heap;
    ///
    /// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
    ///
    /// let stats = HEAP.stats();
    /// assert!(stats.classes().is_sorted_by_key(|class| class.size));
    /// assert_eq!(stats.classes().iter().map(|class| class.slabs).sum::<usize>(), 0); // nothing is in use
    /// ```
    #[must_use]
    pub fn classes(&self) -> &[ClassStats] {
        &self.classes
    }

    pub(crate) fn of(memory: &Memory<'_>) -> Self {
        let mut classes = [ClassStats::default(); CLASSES];
        for (class, of) in Class::all().zip(&mut classes) {
            of.size = class.size();
        }
        let (bytes, free, runs, slots, free_slots, largest_free) = (0, 0, 0, 0, 0, 0);
        let refused = memory.refused();
        let mut stats =
            Self { bytes, free, runs, slots, free_slots, classes, largest_free, refused };
        memory.each(|region| stats.add(region));
        stats
    }

    fn add(&mut self, region: &Region<'_>) {
        self.bytes += region.buddy().units() as usize * UNIT;
        region.buddy().walk(|piece| match piece {
            Piece::Free { order, .. } => {
                self.free += UNIT << order;
                self.largest_free = self.largest_free.max(UNIT << order);
            }
            Piece::Used { index, order } => match region.slab_at(index, order) {
                Some((class, free)) => self.add_slab(class, free),
                None => self.runs += UNIT << order,
            },
            // What looks reserved belongs to a run that is changing.
            Piece::Run { len, .. } | Piece::Reserved { len, .. } => {
                self.runs += len as usize * UNIT;
            }
            _ => {}
        });
    }

    fn add_slab(&mut self, class: Class, free: u32) {
        let (all, free) = (class.all_slots().count_ones() as usize, free as usize);
        let of = &mut self.classes[class.number()];
        of.slabs += 1;
        of.free += free;
        of.used += all - free;
        self.free_slots += free * class.size();
        self.slots += (class.slab_bytes()) - free * class.size();
    }
}

#[cfg(test)]
mod tests {
    use crate::Heap;
    use crate::class::UNIT;
    use crate::operations::Operations;

    /// A reservation is what others see of a run that is being allocated or freed.
    #[test]
    fn runs_that_change_are_runs() {
        static HEAP: Heap<{ 1 << 20 }> = Heap::new();
        let reserve = || Operations::memory(&HEAP).find(|region| region.buddy().reserve(3..8).ok());
        assert!(reserve().is_some());
        let stats = HEAP.stats();
        assert_eq!(stats.runs, 5 * UNIT);
        assert_eq!(stats.bytes, stats.free + stats.runs + stats.slots + stats.free_slots);
    }
}
