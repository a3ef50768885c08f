//! A region of memory: bookkeeping at its front, then the units that the buddy allocator hands out.
//!
//! ```text
//! buddy's metadata | slots, a word per unit | links, a word per unit | three words per class | two of sweeps
//! | five of what is idle | a bit per stretch | units
//! ```
//!
//! ```text
//! regions  all regions of a heap       fresh   which memory is known to be zero
//! runs     runs of units               pages   memory that goes back to the system, page by page
//! size     how many units fit          held    what is allocated at an address
//! sweeps   when whole slabs go back    idle    when pages do
//! ```

mod fresh;
mod held;
mod idle;
pub mod pages;
mod regions;
mod runs;
mod size;
mod sweeps;

pub use held::Held;
pub use pages::{Discarded, MOST_PAGE};
pub use regions::{Content, Memory, Regions};
pub use runs::Runs;
pub use size::{LEAST_BYTES, bookkeeping, bytes_for};

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use crate::words::HeapWord;
use nbbs::{Buddy, metadata_words};

use crate::class::{Class, PAGE, UNIT, UNIT_LOG2, is_aligned};
use crate::error::AddError;
use crate::slabs::{AT_ONCE, Given, Slabs, WORDS_OF_CLASSES};
use crate::watch;
use fresh::{Fresh, STRETCH_LOG2};
use idle::Idle;
use size::{units_in, words};
use sweeps::Sweeps;

/// A slab is large from this part of a region on, log2.
const LARGE_SLAB: u32 = 9;

/// The part of a region that a cache keeps as runs at most, and as slabs of which it sets slots aside, log2; and the
/// bytes.
const KEPT_PART: u32 = 6;
const KEPT_BYTES: usize = 1 << 20;

/// A region.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    pub(crate) runs: Runs<'a, UNIT>,
    slabs: Slabs<'a, HeapWord>,
    sweeps: Sweeps<'a>,
    idle: Idle<'a>,
    pub(crate) fresh: Fresh<'a>,
}

impl Region<'_> {
    /// Creates a region over `bytes` bytes at `start`; `None` if no unit fits. It counts what is idle if `counts`.
    ///
    /// # Safety
    /// `start` is aligned to a page, and the memory belongs to the region for as long as any copy of it is used. It is
    /// zero, or its bookkeeping is that of this same region.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize, counts: bool) -> Option<Self> {
        let units = units_in(bytes);
        let (metadata, each) = (metadata_words(units), units as usize);
        if units == 0 {
            return None;
        }
        // SAFETY: bookkeeping lies in the memory, which is aligned, and is zero or atomic words; nobody else has it.
        let words =
            unsafe { core::slice::from_raw_parts(start.cast::<HeapWord>().as_ptr(), words(units)) };
        let (metadata, rest) = words.split_at(metadata);
        let (slots, rest) = rest.split_at(each);
        let (links, rest) = rest.split_at(each);
        let (classes, rest) = rest.split_at(WORDS_OF_CLASSES);
        let (sweeps, rest) = rest.split_first_chunk()?;
        let (idle, fresh) = rest.split_first_chunk()?;
        let buddy = Buddy::new(metadata, units).ok()?;
        // SAFETY: the bookkeeping is part of the memory.
        let first = unsafe { start.add(bookkeeping(units)) };
        // SAFETY: the bookkeeping is a multiple of pages, and the units fit behind it.
        let runs = unsafe { Runs::new(buddy, first) };
        let (slabs, sweeps) = (Slabs::new(slots, links, classes), Sweeps::new(sweeps));
        let idle = Idle::new(idle, units * UNIT as u64, counts);
        Some(Self { runs, slabs, sweeps, idle, fresh: Fresh::new(fresh) })
    }

    /// Returns those of `bytes` bytes at `start` that can be a region: from the first page on.
    pub fn place_in(start: NonNull<u8>, bytes: usize) -> Result<(NonNull<u8>, usize), AddError> {
        let skip = start.addr().get().wrapping_neg() % PAGE;
        let left = bytes.saturating_sub(skip);
        if units_in(left) == 0 {
            return Err(AddError::TooSmall { bytes, needed: skip + LEAST_BYTES });
        }
        // SAFETY: fewer bytes are skipped than there are.
        Ok((unsafe { start.add(skip) }, left))
    }

    /// Creates a region over [a place](Self::place_in), which may have any content.
    ///
    /// # Safety
    /// That of [`new`](Self::new), whatever the memory contains; nobody else is using it now.
    pub unsafe fn new_cleared(start: NonNull<u8>, bytes: usize, counts: bool) -> Option<Self> {
        // A former heap may have closed some of it.
        watch::open(start, bytes);
        // SAFETY: the bookkeeping is the front of the memory, which nobody else is using.
        unsafe { start.write_bytes(0, bookkeeping(units_in(bytes))) };
        // SAFETY: by the contract; the bookkeeping is zero.
        let region = unsafe { Self::new(start, bytes, counts) }?;
        region.touch_all();
        Some(region)
    }

    /// The arena of its units.
    pub fn buddy(&self) -> &Buddy<'_, HeapWord> {
        &self.runs.buddy
    }

    /// Its slabs.
    pub fn slabs(&self) -> &Slabs<'_, HeapWord> {
        &self.slabs
    }

    /// The address of a unit.
    pub fn address_of(&self, unit: u64) -> usize {
        self.runs.pointer(unit).addr().get()
    }

    /// The first byte of a unit.
    pub fn pointer(&self, unit: u64) -> NonNull<u8> {
        self.runs.pointer(unit)
    }

    /// The unit in which an address lies, one of its units.
    pub fn unit_of(&self, at: NonNull<u8>) -> u64 {
        (self.runs.offset(at) / UNIT) as u64
    }

    /// Returns its addresses, from its bookkeeping on.
    pub fn memory(&self) -> Range<usize> {
        let (units, first) = (self.buddy().units(), self.address_of(0));
        first - bookkeeping(units)..first + units as usize * UNIT
    }

    /// Returns whether an address lies in its units.
    pub fn contains(&self, at: NonNull<u8>) -> bool {
        self.runs.contains(at)
    }

    /// Returns the slab and the slot of `class` that begin at `at`, if a slot of this class can begin there.
    #[inline]
    pub fn slot_of(&self, class: Class, at: NonNull<u8>) -> Option<(u64, u32)> {
        let offset = self.runs.offset(at);
        let bytes = class.slab_bytes();
        // The place of a slab at the end of the region may extend into another region.
        if !self.contains(at) {
            return None;
        }
        Some(((offset & !(bytes - 1)) as u64 >> UNIT_LOG2, class.slot_at(offset & (bytes - 1))?))
    }

    /// Makes a new slab, all of whose slots are the caller's, and returns its address. Makes none if the class has runs
    /// instead: while the region is short of memory, and, if the slab is large in proportion to the region, as long as
    /// fewer runs were made than the slab has slots.
    pub fn make_slab(&self, class: Class, runs: usize, lane: usize) -> Option<NonNull<u8>> {
        let is_large = self.runs.buddy.units() >> LARGE_SLAB < 1 << class.slab_order();
        if is_large && class.prefers_runs() && runs < class.all_slots().count_ones() as usize {
            return None;
        }
        self.new_slab(class, lane).map(|unit| self.runs.pointer(unit))
    }

    fn new_slab(&self, class: Class, lane: usize) -> Option<u64> {
        if class.prefers_runs() && self.runs.is_short() {
            return None;
        }
        let unit = self.runs.buddy.on(lane).alloc(class.slab_order()).ok()?;
        self.hand_out(unit..unit + (1 << class.slab_order()));
        // SAFETY: the units are the caller's.
        unsafe { watch::close(self.runs.pointer(unit), class.slab_bytes()) };
        self.slabs.make(class, unit);
        Some(unit)
    }

    /// Allocates a slot of a slab that has one: takes all that it has, and gives back the others. Adds to `refused` how
    /// many of these somebody else has freed meanwhile, who did not hold them.
    pub fn alloc_slot(&self, class: Class, lane: usize, refused: &mut u32) -> Option<NonNull<u8>> {
        let mut found = None;
        self.take_slabs(class, 1, |unit, slots| found = Some((unit, slots)));
        self.keep_one(class, lane, found?, refused)
    }

    /// Allocates a slot of a new slab, as [`make_slab`](Self::make_slab) makes it.
    pub fn alloc_slot_of_new(
        &self,
        class: Class,
        lane: usize,
        refused: &mut u32,
    ) -> Option<NonNull<u8>> {
        let unit = self.new_slab(class, lane)?;
        self.keep_one(class, lane, (unit, class.all_slots()), refused)
    }

    fn keep_one(
        &self,
        class: Class,
        lane: usize,
        (unit, slots): (u64, u64),
        refused: &mut u32,
    ) -> Option<NonNull<u8>> {
        let others = slots & slots.checked_sub(1)?;
        if others != 0 {
            *refused += self.give_each(class, lane, unit, others).0;
        }
        // SAFETY: the slot lies in the slab.
        Some(unsafe { self.runs.pointer(unit).add(slots.trailing_zeros() as usize * class.size()) })
    }

    /// Takes up to `most` slabs that have free slots, with all these slots. Calls `visit` with the address of each
    /// slab, and a bit for each slot.
    pub fn take(&self, class: Class, most: usize, mut visit: impl FnMut(NonNull<u8>, u64)) {
        self.take_slabs(class, most, |unit, slots| visit(self.runs.pointer(unit), slots));
    }

    fn take_slabs(&self, class: Class, most: usize, mut visit: impl FnMut(u64, u64)) {
        self.slabs.take(class, most, |unit, slots| {
            self.note_taken(class, slots);
            visit(unit, slots);
        });
    }

    /// Allocates a slot that is a run of its own.
    pub fn make_run(&self, class: Class, lane: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(class.size(), class.align()).ok()?;
        let at = class.may_be_run().then(|| self.alloc_run(layout, false, lane))??;
        // SAFETY: the run is the caller's, and a slot for somebody else.
        unsafe { watch::close(at, class.size()) };
        Some(at)
    }

    /// Gives back a slot that is a run of its own. Returns its bytes; `None` if there was none.
    pub fn give_run(&self, class: Class, lane: usize, at: NonNull<u8>) -> Option<usize> {
        if !class.may_be_run() {
            return None;
        }
        let bytes = class.size().next_multiple_of(UNIT);
        if watch::ON && self.holds_run(at, bytes) {
            // Its holder could use all of its units.
            watch::close_run(at, bytes);
        }
        self.free_run(at, bytes, lane).then_some(bytes)
    }

    /// Gives back slots of a slab, all of which the caller holds unless somebody has freed one without holding it.
    /// Returns how many were not in use, and the bytes of the slab, if its memory has gone back.
    pub fn give_each(&self, class: Class, lane: usize, slab: u64, slots: u64) -> (u32, usize) {
        self.give_or_else(class, lane, slab, slots, |_| None)
    }

    /// Gives back slots of a slab, or runs of their own at the places of those slots. Returns how many were neither,
    /// and the bytes of the slab, if its memory has gone back, and of the runs.
    pub fn give_any(&self, class: Class, lane: usize, slab: u64, slots: u64) -> (u32, usize) {
        self.give_or_else(class, lane, slab, slots, |at| self.give_run(class, lane, at))
    }

    fn give_or_else(
        &self,
        class: Class,
        lane: usize,
        slab: u64,
        mut slots: u64,
        other: impl Fn(NonNull<u8>) -> Option<usize>,
    ) -> (u32, usize) {
        if let Some(bytes) = self.give(class, lane, slab, slots) {
            return (0, bytes);
        }
        let (mut refused, mut bytes) = (0, 0);
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            // SAFETY: the slot lies in the region's memory, as does the address from which it was computed.
            let at = unsafe { self.runs.pointer(slab).add(slot * class.size()) };
            match self.give(class, lane, slab, 1 << slot).or_else(|| other(at)) {
                Some(given) => bytes += given,
                None => refused += 1,
            }
            slots &= slots - 1;
        }
        (refused, bytes)
    }

    /// Gives back slots of a slab, and the slab's memory if they are all of it. Returns how many bytes that memory has,
    /// 0 if it has not gone back; `None` if a slot was not in use.
    pub fn give(&self, class: Class, lane: usize, slab: u64, slots: u64) -> Option<usize> {
        match self.slabs.give(class, slab, slots) {
            Given::Free => Some(0),
            Given::LastFree => {
                self.sweeps.note(class.slab_bytes());
                self.come_back(class.slab_bytes());
                Some(0)
            }
            Given::Whole => {
                self.runs.buddy.on(lane).free_sized(slab, class.slab_order()).ok()?;
                self.come_back(class.slab_bytes());
                Some(class.slab_bytes())
            }
            Given::Refused => None,
        }
    }

    /// If the block of this order at `unit` is a slab, returns its class and how many of its slots are free.
    pub fn slab_at(&self, unit: u64, order: u32) -> Option<(Class, u32)> {
        let (class, free) = self.slabs.look(unit)?;
        (class.slab_order() == order).then_some((class, (free & class.all_slots()).count_ones()))
    }

    /// Returns the memory of slabs of which all slots are free, and returns how many bytes these are. Adds to `refused`
    /// as [`alloc_slot`](Self::alloc_slot) does.
    pub fn trim(&self, lane: usize, refused: &mut u32) -> usize {
        self.trim_some(&mut { usize::MAX }, lane, refused)
    }

    /// [Trims](Self::trim) the region, but passes no more than `left` slabs, and takes those that it passed off that.
    fn trim_some(&self, left: &mut usize, lane: usize, refused: &mut u32) -> usize {
        self.sweeps.begin();
        let (mut bytes, mut passed) = (0, 0);
        for class in self.slabs.maybe_whole() {
            self.slabs.take_all(class, AT_ONCE, left, |unit, slots| {
                self.note_taken(class, slots);
                let (others, of_slab) = self.give_each(class, lane, unit, slots);
                *refused += others;
                bytes += of_slab;
                passed += class.slab_bytes();
            });
        }
        self.sweeps.passed(passed - bytes);
        bytes
    }

    /// [Trims](Self::trim) the region if enough slabs have become whole, and memory is not short: then all of it has been
    /// reached, and slabs that are whole serve their own size best. Returns whether that gave any memory back.
    ///
    /// Cost: three loads, if not.
    #[inline]
    pub fn sweep(&self, lane: usize, refused: &mut u32) -> bool {
        !self.runs.is_short() && self.sweeps.is_due() && self.trim(lane, refused) > 0
    }

    /// Returns whether a run of this many bytes is no larger than the region.
    pub fn is_as_large_as(&self, bytes: usize) -> bool {
        Runs::<UNIT>::units_of(bytes) <= self.runs.buddy.units()
    }

    /// Allocates a run of units, all zero if `zeroed`, for layouts that fit into no slot.
    pub fn alloc_run(&self, layout: Layout, zeroed: bool, lane: usize) -> Option<NonNull<u8>> {
        let at = self.runs.alloc(layout, lane)?;
        let units = self.units(at, layout.size());
        watch::open(at, (units.end - units.start) as usize * UNIT);
        if zeroed {
            self.clear(units.clone());
        }
        self.hand_out(units);
        Some(at)
    }

    /// Clears a run, which is the caller's: only memory that may be other than zero is written to.
    fn clear(&self, units: Range<u64>) {
        let mut first = units.start;
        while first < units.end {
            let end = units.end.min((first | ((1 << STRETCH_LOG2) - 1)) + 1);
            if self.fresh.is_touched(first..end) {
                // SAFETY: the units are those of the run, which is the caller's.
                unsafe { self.runs.pointer(first).write_bytes(0, (end - first) as usize * UNIT) };
            }
            first = end;
        }
    }

    /// Returns the units of a run of this many bytes.
    fn units(&self, at: NonNull<u8>, bytes: usize) -> Range<u64> {
        let first = self.unit_of(at);
        first..first + Runs::<UNIT>::units_of(bytes)
    }

    /// Frees a run that the caller holds, as [`free_run`](Self::free_run) does.
    pub fn free_held_run(&self, at: NonNull<u8>, size: usize, lane: usize) -> bool {
        let units = self.units(at, size);
        if watch::ON && self.holds_run(at, size) {
            watch::freed(at);
            watch::close_run(at, (units.end - units.start) as usize * UNIT);
        }
        self.free_run(at, size, lane)
    }

    /// Gives back a run that was allocated with a size of `size` bytes. Returns whether there was one.
    pub fn free_run(&self, at: NonNull<u8>, size: usize, lane: usize) -> bool {
        let is_freed = !self.is_slab(at) && self.runs.free(at, size, lane);
        if is_freed {
            self.come_back(Runs::<UNIT>::units_of(size) as usize * UNIT);
        }
        is_freed
    }

    /// Returns how many bytes a run gets that grows to `size` bytes and may soon grow again.
    pub fn with_room(&self, at: NonNull<u8>, size: usize) -> usize {
        self.runs.with_room(at, size)
    }

    /// Makes a run smaller or larger in place, if possible. Returns whether it was.
    pub fn resize_run(&self, at: NonNull<u8>, from: usize, to: usize, lane: usize) -> bool {
        if self.is_slab(at) {
            return false;
        }
        let (old, new) = (self.units(at, from), self.units(at, to));
        let shrinks = watch::ON && new.end < old.end && self.holds(&old);
        // While it is still the caller's.
        if shrinks {
            self.watch_resized(at, &old, &new);
        }
        let is_resized = self.runs.resize(at, from, to, lane);
        if is_resized {
            self.note_resized(&old, new.clone());
        }
        if is_resized && new.end > old.end {
            self.watch_resized(at, &old, &new);
        } else if shrinks && !is_resized {
            self.watch_resized(at, &new, &old);
        }
        is_resized
    }

    /// Returns whether the run at `at`, of `size` bytes, is held.
    pub fn holds_run(&self, at: NonNull<u8>, size: usize) -> bool {
        is_aligned(self.runs.offset(at), UNIT)
            && !self.is_slab(at)
            && self.holds(&self.units(at, size))
    }

    /// Returns how many units a cache may keep as runs, and as slabs of which it sets slots aside as many: none while
    /// memory is short.
    pub fn most_kept(&self) -> u64 {
        let of_region = self.runs.buddy.units() >> KEPT_PART;
        if self.runs.is_short() { 0 } else { of_region.min((KEPT_BYTES / UNIT) as u64) }
    }

    /// Returns whether exactly these units are held as a block or run.
    fn holds(&self, units: &Range<u64>) -> bool {
        self.runs.buddy.len_of(units.start) == Ok(units.end - units.start)
    }

    /// Tells the diagnostic tools that a run has become smaller or larger.
    fn watch_resized(&self, at: NonNull<u8>, from: &Range<u64>, to: &Range<u64>) {
        let bytes = |units: &Range<u64>| (units.end - units.start) as usize * UNIT;
        let (old, new) = (bytes(from), bytes(to));
        watch::resized(at, old, new);
        // SAFETY: the smaller of both sizes ends within the larger.
        let behind = unsafe { at.add(old.min(new)) };
        if new < old {
            watch::close_run(behind, old - new);
        } else {
            watch::open(behind, new - old);
        }
    }

    /// Returns whether a slab begins there: its block is not a run, as others have its memory.
    fn is_slab(&self, at: NonNull<u8>) -> bool {
        self.slabs.look(self.unit_of(at)).is_some()
    }
}
