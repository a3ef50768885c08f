//! The cache of a thread or CPU: slots of every class, taken and given back in batches, and a few larger runs.
//!
//! ```text
//! bin        the slots of one class                  turn     which operation may use a cache
//! aside      what bins have no more room for         shared   caches of CPUs, or for any caller
//! kept_runs  runs                                    threads  a cache for each thread
//! waiting    slots that wait, with `quarantine`      ends     notification of a thread's end
//! ```

mod aside;
mod bin;
#[cfg(feature = "std")]
mod ends;
mod kept_runs;
mod shared;
#[cfg(feature = "std")]
pub mod threads;
mod turn;
mod waiting;

pub use kept_runs::KeptRuns;
pub use shared::SharedCache;
pub use turn::Turn;

use core::ops::Range;
use core::ptr::NonNull;

use crate::class::{CLASSES, Class, Slot, UNIT};
use crate::region::{Memory, Region, Runs};
use crate::slabs::Lot;
use crate::watch;
use aside::AllAside;
use bin::Bin;
use waiting::Waiting;

/// A cache of slots of all classes, and of runs, for one thread at a time.
///
/// An allocation or a free that the cache can serve makes no atomic access, besides those of the turn to use the cache.
#[derive(Debug)]
pub struct Cache {
    bins: [Bin; CLASSES],
    /// What a bin of small slots has no more room for.
    aside: AllAside,
    waiting: Waiting,
    runs: KeptRuns,
    lot: Lot,
    /// The value of [`Memory::asked`] when the cache last gave everything back.
    asked: usize,
    /// The smallest class that was refused since the last trim that helped, or 0: where a hint that is wrong costs no
    /// more than a trim.
    refused: usize,
}

/// What a cache keeps.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    /// A slot of this class.
    Slot(Class),
    /// A run of so many units.
    Run(u64),
}

// SAFETY: slots are memory that nobody else holds, whichever thread has the cache.
unsafe impl Send for Cache {}

impl Cache {
    /// Creates a cache that keeps nothing: all zero.
    pub const fn new() -> Self {
        let (bins, aside) = ([Bin::EMPTY; CLASSES], AllAside::new());
        let (waiting, runs, lot) = (Waiting::new(), KeptRuns::new(), Lot::new());
        Self { bins, aside, waiting, runs, lot, asked: 0, refused: 0 }
    }

    /// Allocates a slot from the cache, if it keeps one.
    #[inline]
    pub fn pop(&mut self, class: Class) -> Option<NonNull<u8>> {
        self.bins[class.number()].pop(class, &mut self.lot)
    }

    /// Frees a slot of this class, which the caller holds, if there is room for it, and it is not the slot of this
    /// class that was freed last, or, where slots are drawn, any that the cache keeps. Returns whether it was freed.
    #[inline]
    pub fn push(&mut self, class: Class, at: NonNull<u8>) -> bool {
        if Lot::DRAWS && self.keeps(class, at) {
            return false;
        }
        if waiting::ON {
            self.push_waiting(class, at)
        } else {
            self.bins[class.number()].push(class, at)
        }
    }

    /// [Frees](Self::push) the slot that begins at `at`, unless the cache [keeps](Self::keeps) it.
    #[inline]
    pub fn push_slot(&mut self, slot: Slot, at: NonNull<u8>) -> bool {
        if waiting::ON || Lot::DRAWS {
            return !self.keeps(slot.class, at) && self.push(slot.class, at);
        }
        self.bins[slot.class.number()].push_slot(slot, at)
    }

    /// Makes the slot wait. Returns `false` if it is the newest that waits, or if there is no room and none can be made
    /// by moving the slot that has waited longest to its bin.
    fn push_waiting(&mut self, class: Class, at: NonNull<u8>) -> bool {
        if self.waiting.is_newest(at) {
            return false;
        }
        if !self.waiting.has_room(class) {
            let Some((oldest, waited)) = self.waiting.oldest() else { return false };
            if !self.bins[oldest.number()].add(oldest, waited) {
                return false;
            }
            self.waiting.take_oldest();
        }
        let has_room = self.waiting.has_room(class);
        if has_room {
            self.waiting.add(class, at);
        }
        has_room
    }

    /// Returns whether it keeps that slot of this class: compares it with the newest slot and with those of the slab
    /// from which the class is served; where free memory is watched or slots are drawn, with every slot that it keeps.
    #[inline]
    pub fn keeps(&self, class: Class, at: NonNull<u8>) -> bool {
        let mut waits = false;
        self.waiting.each(|_, waiting| waits |= waiting == at);
        waits
            || self.bins[class.number()].keeps(class, at)
            || (watch::ON || Lot::DRAWS) && self.aside.has(class, at)
    }

    /// Allocates a slot.
    #[cold]
    pub fn alloc(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> Option<NonNull<u8>> {
        self.heed(memory, lane);
        // A CPU's cache may have been in use when the caller asked it first, and keep some.
        if let Some(kept) = self.pop(class) {
            return Some(kept);
        }
        let may_fit = self.refused == 0 || class.number() < self.refused;
        let bin = &mut self.bins[class.number()];
        if let Some(found) = bin.take_back(&mut self.aside, class, &mut self.lot) {
            return Some(found);
        }
        if let Some(found) = bin.refill(class, may_fit, memory, lane, &mut self.lot) {
            return Some(found);
        }
        self.drain(memory, lane);
        memory.trim(lane);
        self.asked = memory.asked();
        let bin = &mut self.bins[class.number()];
        let found = bin.refill(class, true, memory, lane, &mut self.lot);
        if found.is_some() {
            self.refused = 0;
        } else if may_fit {
            self.refused = class.number();
        }
        found
    }

    /// Frees a slot of this class, which the caller holds.
    #[cold]
    pub fn free(&mut self, class: Class, at: NonNull<u8>, memory: &Memory<'_>, lane: usize) {
        self.heed(memory, lane);
        if !waiting::ON {
            self.keep(class, at, memory, lane);
            return;
        }
        while !self.waiting.has_room(class)
            && let Some((class, waited)) = self.waiting.take_oldest()
        {
            self.keep(class, waited, memory, lane);
        }
        self.waiting.add(class, at);
    }

    /// Keeps a slot to be handed out, and makes room for it. Returns the bytes of the slabs and runs that went back.
    fn keep(&mut self, class: Class, at: NonNull<u8>, memory: &Memory<'_>, lane: usize) -> usize {
        let (bin, most) = (&mut self.bins[class.number()], class.most_kept());
        let bytes = if bin.len >= most {
            bin.make_room(most / 2, &mut self.aside, class, memory, lane)
        } else {
            0
        };
        // There is room: if the bin had the most slots, half of them are gone.
        bin.add(class, at);
        bytes
    }

    /// Allocates a run of so many units, aligned to a power of two, if the cache keeps one.
    pub fn take_run(&mut self, units: u64, align: usize) -> Option<NonNull<u8>> {
        self.runs.take(units, align)
    }

    /// Allocates the shortest run of so many units, aligned to a power of two, if the cache keeps one.
    pub fn take_shortest_run(&mut self, units: Range<u64>, align: usize) -> Option<NonNull<u8>> {
        self.runs.take_shortest(units, align)
    }

    /// Returns whether it keeps a run there.
    pub fn keeps_run(&self, at: NonNull<u8>) -> bool {
        self.runs.has(at)
    }

    /// Frees a run of so many bytes in a region, which the caller holds, if it is worth keeping and there is room for
    /// it, some of which may be made by giving back the run that was freed first. Returns `None` if it was not freed,
    /// and otherwise whether the cache did not keep it already.
    pub fn free_run(
        &mut self,
        at: NonNull<u8>,
        bytes: usize,
        region: &Region<'_>,
        memory: &Memory<'_>,
        lane: usize,
    ) -> Option<bool> {
        if self.keeps_run(at) {
            return Some(false);
        }
        let (units, most) = (Runs::<UNIT>::units_of(bytes), region.most_kept());
        self.heed(memory, lane);
        // The look is no part of a free: it is left out for what is not kept.
        let may_keep = units <= most && self.runs.is_worth_keeping() && region.holds_run(at, bytes);
        let is_kept = may_keep
            && (self.runs.add(at, units, most)
                || self.give_oldest_run(memory, lane).is_some() && self.runs.add(at, units, most));
        is_kept.then_some(true)
    }

    /// Gives back the run that was freed first, if there is one. Returns its bytes.
    fn give_oldest_run(&mut self, memory: &Memory<'_>, lane: usize) -> Option<usize> {
        let (at, units) = self.runs.take_oldest()?;
        let bytes = units as usize * UNIT;
        if memory.at(at, |region| region.free_run(at, bytes, lane)) == Some(true) {
            return Some(bytes);
        }
        memory.refuse();
        Some(0)
    }

    /// Calls `visit` for everything that it keeps.
    pub fn each(&self, mut visit: impl FnMut(Kept, NonNull<u8>)) {
        for class in Class::all() {
            self.bins[class.number()].each(class, |at| visit(Kept::Slot(class), at));
            self.aside.each(class, |at| visit(Kept::Slot(class), at));
        }
        self.runs.each(|at, units| visit(Kept::Run(units), at));
        self.waiting.each(|class, at| visit(Kept::Slot(class), at));
    }

    /// Returns how often it keeps that slot or run.
    pub fn count(&self, kept: Kept, at: NonNull<u8>) -> usize {
        let mut count = 0;
        match kept {
            Kept::Slot(class) => {
                self.bins[class.number()].each(class, |kept| count += usize::from(kept == at));
                count += usize::from(self.aside.has(class, at));
                self.waiting.each(|_, waiting| count += usize::from(waiting == at));
            }
            Kept::Run(_) => self.runs.each(|kept, _| count += usize::from(kept == at)),
        }
        count
    }

    /// Gives everything back if caches have been asked to since the last time.
    fn heed(&mut self, memory: &Memory<'_>, lane: usize) {
        if self.asked != memory.asked() {
            self.asked = memory.asked();
            self.drain(memory, lane);
        }
    }

    /// Gives everything back. Returns the bytes of the slabs and runs that went back.
    pub fn drain(&mut self, memory: &Memory<'_>, lane: usize) -> usize {
        let mut bytes = 0;
        while let Some(of_run) = self.give_oldest_run(memory, lane) {
            bytes += of_run;
        }
        while let Some((class, waited)) = self.waiting.take_oldest() {
            bytes += self.keep(class, waited, memory, lane);
        }
        for (bin, class) in self.bins.iter_mut().zip(Class::all()) {
            // Most bins of a heap that is short of memory keep nothing.
            if bin.len > 0 {
                bytes += bin.make_room(bin.len, &mut self.aside, class, memory, lane);
            }
            bytes += self.aside.give_all(class, memory, lane);
            if bin.spare != 0 {
                bytes += bin.give_spare(class, memory, lane);
            }
        }
        bytes
    }
}
