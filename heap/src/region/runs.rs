//! Runs of units: memory of any layout, as many units as it takes, anywhere in an arena.

use core::alloc::Layout;
use core::cmp::Ordering;
use core::ops::Range;
use core::ptr::NonNull;

use nbbs::{Buddy, Request};

use crate::class::is_aligned;
use crate::words::HeapWord;

/// A run is large from this part of an arena on, log2. In an arena of fewer units all are.
const LARGE_PART: u32 = 10;

/// Memory is not short as long as a block of this many bytes is free, log2.
const ROOM_LOG2: u32 = 23;

/// A run in which a multiple of so many bytes lies is followed by a look whether memory is short, log2: as one that has
/// begun a block without which it is.
const LOOK_LOG2: u32 = 22;

/// A run of a multiple of so many units, log2, consists of whole slots above the leaf words, if it begins at a multiple.
const WHOLE_LOG2: u32 = 5;

/// Runs of so many bytes or more are looked for from the same home by all lanes, log2. What one thread has freed then
/// serves another, and the search is little beside the pages that the caller writes to.
const COMMON_LOG2: u32 = 18;

/// Runs of so many bytes or more get room to grow when they grow, log2.
const STEPS_LOG2: u32 = 16;

/// How many holes that are too small a search for the first fit passes before it looks elsewhere.
const LOOKS: u64 = 64;

/// The parts of an arena in which lanes begin to search for places of runs.
const PARTS: u64 = 16;

/// An arena of units of `UNIT` bytes, a power of two, and their address.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a, const UNIT: usize> {
    /// The arena.
    pub buddy: Buddy<'a, HeapWord>,
    base: NonNull<u8>,
}

impl<'a, const UNIT: usize> Runs<'a, UNIT> {
    /// Creates the runs over the units of `buddy`, from `base` on.
    ///
    /// # Safety
    /// `base` is aligned to a unit, and the memory for all units begins there and belongs to the arena.
    pub unsafe fn new(buddy: Buddy<'a, HeapWord>, base: NonNull<u8>) -> Self {
        Self { buddy, base }
    }

    /// Returns whether an address lies in a unit.
    pub fn contains(&self, at: NonNull<u8>) -> bool {
        self.offset(at) < self.buddy.units() as usize * UNIT
    }

    /// Returns how many bytes behind the first unit an address lies.
    pub fn offset(&self, at: NonNull<u8>) -> usize {
        at.addr().get().wrapping_sub(self.base.addr().get())
    }

    /// Returns the address of a unit of the arena.
    pub fn pointer(&self, unit: u64) -> NonNull<u8> {
        debug_assert!(unit < self.buddy.units());
        self.base.map_addr(|base| base.saturating_add(unit as usize * UNIT))
    }

    /// Returns whether memory is short: no block of 8 MiB is free, or, in an arena of less than 16 MiB, of half the bytes
    /// of its largest.
    ///
    /// Cost: a load.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.buddy.order_bound().is_none_or(|order| order < self.order_of_room())
    }

    /// Returns the order of the block without which memory is short.
    #[inline]
    fn order_of_room(&self) -> u32 {
        self.buddy.max_order().saturating_sub(1).min(ROOM_LOG2 - UNIT.ilog2())
    }

    /// Finds out whether memory [is short](Self::is_short), so that this is known from then on.
    fn look_if_short(&self, lane: usize) {
        if !self.is_short() {
            // Lowers the bounds if nothing is found.
            _ = self.buddy.on(lane).has_free(self.order_of_room());
        }
    }

    /// Returns whether a run of so many bytes is [followed by a look](LOOK_LOG2). Few are, unless they are long.
    fn is_looked_after(&self, at: NonNull<u8>, bytes: usize) -> bool {
        let offset = self.offset(at);
        offset.next_multiple_of(1 << LOOK_LOG2) < offset + bytes
    }

    /// Allocates a run for a layout, searching near the last one first. While memory is short, and for a run that is
    /// large in proportion to the arena, it takes the first place from the beginning of the lane's part of the arena.
    /// That takes longer, but leaves what is larger as it is, and lanes do not meet, except with runs of 256 KiB or
    /// more. A large run of whole slots is claimed and freed by few read-modify-writes if it begins at one, which it
    /// does while memory is not short.
    ///
    /// Cost: a search for a large run looks at each free piece that has a block of a quarter of its size: at most 4096. That
    /// of a run of whole slots does so twice if none of its places begins at one. A search for a shorter one looks at 64
    /// pieces at most on each side of where it begins, then at 160 from where the last one has found room, and at all
    /// others only if none of these has room for it.
    pub fn alloc(&self, layout: Layout, lane: usize) -> Option<NonNull<u8>> {
        let (units, end) = (Self::units_of(layout.size()), self.buddy.units());
        let is_large = units >= end >> LARGE_PART;
        let lane = if layout.size() >> COMMON_LOG2 == 0 { lane } else { 0 };
        if is_large {
            // Searches for large runs do not lower the bounds that would say that memory is short.
            self.look_if_short(lane);
        }
        let has_room = !self.is_short();
        if has_room && !is_large {
            let found = self.alloc_by(layout, lane, |units| units);
            if found.is_some_and(|at| self.is_looked_after(at, layout.size())) {
                // Those for others lower them late.
                self.look_if_short(lane);
            }
            return found;
        }
        let is_aligned = is_aligned(self.base.addr().get(), layout.align());
        let start = end / PARTS * (lane as u64 % PARTS);
        if has_room
            && is_aligned
            && let Some(at) = self.alloc_whole(layout, lane, start..end)
        {
            return Some(at);
        }
        // A run that begins in front of the start may end behind it.
        let sooner = 0..end.min(start.saturating_add(units));
        let looks = if is_large { u64::MAX } else { LOOKS };
        let first = |range: Range<u64>| {
            self.alloc_by(layout, lane, |units| units.within(range.clone()).looks(looks))
        };
        first(start..end)
            .or_else(|| if start > 0 { first(sooner) } else { None })
            .or_else(|| if is_large { None } else { self.alloc_by(layout, lane, |units| units) })
    }

    #[inline]
    fn alloc_by(
        &self,
        layout: Layout,
        lane: usize,
        place: impl Fn(Request) -> Request,
    ) -> Option<NonNull<u8>> {
        let (lane, units) = (self.buddy.on(lane), Self::units_of(layout.size()));
        let request =
            Request::units(units).aligned(Self::order_of(layout)).offset(self.first_number());
        lane.request(place(request)).ok().map(|unit| self.pointer(unit))
    }

    /// Allocates a run of whole slots in a range of units. The memory is as aligned as the layout.
    fn alloc_whole(&self, layout: Layout, lane: usize, range: Range<u64>) -> Option<NonNull<u8>> {
        let order = Self::units_of(layout.size()).trailing_zeros();
        let order = (order >= WHOLE_LOG2).then_some(order.max(Self::order_of(layout)))?;
        self.alloc_by(layout, lane, |units| units.aligned(order).offset(0).within(range.clone()))
    }

    /// Returns the order of the units whose multiples are aligned as a layout asks.
    fn order_of(layout: Layout) -> u32 {
        (layout.align() / UNIT).max(1).ilog2()
    }

    /// Returns the number of the first unit, counted from address 0: what alignment is about.
    fn first_number(&self) -> u64 {
        (self.base.addr().get() / UNIT) as u64
    }

    /// Gives back a run that was allocated with a size of `size` bytes. Returns whether there was one.
    pub fn free(&self, at: NonNull<u8>, size: usize, lane: usize) -> bool {
        let (offset, units) = (self.offset(at), Self::units_of(size));
        offset.is_multiple_of(UNIT)
            && self.buddy.on(lane).free_units((offset / UNIT) as u64, units).is_ok()
    }

    /// Makes a run smaller or larger in place, if possible. Returns whether it was.
    pub fn resize(&self, at: NonNull<u8>, from: usize, to: usize, lane: usize) -> bool {
        let (unit, lane) = ((self.offset(at) / UNIT) as u64, self.buddy.on(lane));
        let (from, to) = (Self::units_of(from), Self::units_of(to));
        match to.cmp(&from) {
            Ordering::Less => lane.shrink(unit, to).is_ok(),
            Ordering::Equal => true,
            Ordering::Greater => lane.grow(unit, to).is_ok(),
        }
    }

    /// Returns how many bytes a run has after it has grown to `size` bytes, if it is long and may soon grow again:
    /// then it ends at a slot of a 32nd to a 16th of its length. So a run that grows step by step consists of few
    /// slots, and most steps change nothing. It gets no more than `size` while memory is short.
    pub fn with_room(&self, at: NonNull<u8>, size: usize) -> usize {
        let (start, units) = ((self.offset(at) / UNIT) as u64, Self::units_of(size));
        let exact = units as usize * UNIT;
        if size >> STEPS_LOG2 == 0 || self.is_short() {
            return exact;
        }
        let end = (start + units).next_multiple_of(1 << (units.ilog2() - 4));
        (end - start) as usize * UNIT
    }

    /// Returns the number of units that hold this many bytes.
    pub fn units_of(size: usize) -> u64 {
        size.div_ceil(UNIT).max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::counted;
    use nbbs::metadata_words;
    use std::vec::Vec;

    const UNITS: u64 = 1 << 13;

    fn words_for(units: u64) -> Vec<HeapWord> {
        (0..metadata_words(units)).map(|_| HeapWord::default()).collect()
    }

    /// Returns runs in units of a byte.
    fn in_memory<'a>(memory: &mut [u8; UNITS as usize], words: &'a [HeapWord]) -> Runs<'a, 1> {
        let base = NonNull::from(memory).cast();
        // SAFETY: the memory for all units begins there.
        unsafe { Runs::new(Buddy::new(words, UNITS).unwrap(), base) }
    }

    /// Programs whose lanes begin in all parts of a region leave no larger blocks, however little they use.
    #[test]
    fn memory_is_short_without_a_block_of_8_mib_or_half_the_largest() {
        const UNIT: usize = 1 << 10;
        for (units, room) in
            [(1 << 18, 13), ((1 << 17) - 1, 13), (1 << 14, 13), (1 << 13, 12), (64, 5)]
        {
            let words = words_for(units);
            let buddy = Buddy::new(&words, units).unwrap();
            // SAFETY: the memory is not reached.
            let runs = unsafe { Runs::<UNIT>::new(buddy, NonNull::dangling()) };
            assert!(!runs.is_short());
            buddy.on(0).alloc_at(1 << room, units - (1 << room)).unwrap();
            runs.look_if_short(0);
            assert!(!runs.is_short(), "{units} units");
            let first = buddy.on(0).alloc_at(0, 1).unwrap();
            runs.look_if_short(0);
            assert!(runs.is_short(), "{units} units");
            buddy.on(0).free(first).unwrap();
            assert!(!runs.is_short(), "{units} units");
        }
    }

    #[test]
    fn large_runs_of_whole_slots_begin_at_one_while_memory_is_not_short() {
        let (mut memory, words) = ([0; UNITS as usize], words_for(UNITS));
        let runs = in_memory(&mut memory, &words);
        let alloc = |units| {
            let layout = Layout::from_size_align(units, 1).unwrap();
            runs.alloc(layout, 0).map(|at| runs.offset(at))
        };
        let first = [3, 96, 128, 33, 320, 31, 512].map(|units| alloc(units).unwrap());
        assert_eq!(first, [0, 32, 128, 256, 320, 289, 1024]);
        runs.buddy.on(0).alloc_at(UNITS / 2, 1).unwrap();
        assert_eq!(alloc(256), Some(640));
    }

    /// Holes of a unit, among which runs of two are looked for while memory is short.
    #[test]
    fn short_runs_are_not_looked_for_in_each_hole() {
        const MANY: u64 = 1 << 16;
        let (words, memory) = (words_for(MANY), std::vec![0_u8; MANY as usize].leak());
        let base = NonNull::from(memory).cast();
        // SAFETY: the memory for all units begins there.
        let runs = unsafe { Runs::<1>::new(Buddy::new(&words, MANY).unwrap(), base) };
        let lane = runs.buddy.on(0);
        // No block of half the units is free, and three in four units of the first half are in use.
        (0..MANY / 2).step_by(4).for_each(|unit| _ = lane.alloc_at(unit, 3).unwrap());
        lane.alloc_at(MANY - MANY / 4, 1).unwrap();
        runs.look_if_short(0);
        assert!(runs.is_short());
        let alloc = || runs.alloc(Layout::from_size_align(2, 1).unwrap(), 0).unwrap();
        // The first search lowers bounds.
        alloc();
        for _ in 0..1000 {
            let (at, (loads, _)) = counted(alloc);
            assert!(runs.offset(at) >= MANY as usize / 2 && loads < 1000, "{loads} loads");
        }
    }

    /// Searches for other runs lower it late, where all of the memory was free again.
    #[test]
    fn small_runs_show_that_memory_is_short() {
        const UNIT: usize = 1 << 10;
        let words = words_for(1 << 17);
        // SAFETY: the memory is not reached.
        let runs =
            unsafe { Runs::<UNIT>::new(Buddy::new(&words, 1 << 17).unwrap(), NonNull::dangling()) };
        let layout = Layout::from_size_align(100 << 10, 1).unwrap();
        for _ in 0..4 {
            let fill =
                std::iter::from_fn(|| (!runs.is_short()).then(|| runs.alloc(layout, 1)).flatten());
            let held: Vec<_> = fill.collect();
            let free = runs.buddy.count_free();
            assert!(free >= 1 << 12, "{free} units are free");
            held.into_iter().for_each(|at| assert!(runs.free(at, layout.size(), 1)));
        }
    }

    /// Searches for large runs lower no bound that says so.
    #[test]
    fn large_runs_show_that_memory_is_short() {
        let (mut memory, words) = ([0; UNITS as usize], words_for(UNITS));
        let runs = in_memory(&mut memory, &words);
        let is_short = [(); 8].map(|()| {
            runs.alloc(Layout::from_size_align(600, 1).unwrap(), 0).unwrap();
            runs.is_short()
        });
        // The seventh leaves no block of half the units, and the eighth sees that.
        assert_eq!(is_short, [false, false, false, false, false, false, false, true]);
    }
}
