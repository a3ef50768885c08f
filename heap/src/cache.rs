//! The cache of a thread or CPU: slots of every class, taken and given back in batches, and a few larger runs.

use core::ptr::{NonNull, null_mut};

use crate::class::{CLASSES, Class, MOST_KEPT, UNIT};
use crate::kept_runs::KeptRuns;
use crate::lot::Lot;
use crate::region::Region;
use crate::regions::Memory;
use crate::runs::Runs;
use crate::slabs::AT_ONCE;
use crate::waiting::{self, Waiting};
use crate::watch;

/// A cache of slots of all classes, and of runs, for one thread at a time.
///
/// An allocation or a free that the cache can serve makes no atomic access, besides those of the turn to use the cache.
#[derive(Debug)]
pub struct Cache {
    bins: [Bin; CLASSES],
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

/// Slots of one class.
#[derive(Clone, Copy, Debug)]
struct Bin {
    /// Freed slots, the newest last.
    slots: [*mut u8; MOST_KEPT],
    len: usize,
    /// The address of a slab, and a bit for each of its slots that is kept.
    slab: *mut u8,
    spare: u64,
}

// SAFETY: slots are memory that nobody else holds, whichever thread has the cache.
unsafe impl Send for Cache {}

impl Cache {
    /// Creates a cache that keeps nothing: all zero.
    pub const fn new() -> Self {
        let bin = Bin { slots: [null_mut(); MOST_KEPT], len: 0, slab: null_mut(), spare: 0 };
        let (waiting, runs, lot) = (Waiting::new(), KeptRuns::new(), Lot::new());
        Self { bins: [bin; CLASSES], waiting, runs, lot, asked: 0, refused: 0 }
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

    /// Makes the slot wait, unless it was the last to begin that, if there is room, or if room can be made by keeping
    /// the slot that has waited longest.
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

    /// Returns whether it keeps that slot of this class, as far as the newest slot and the slab tell; where free memory
    /// is watched, as all do.
    #[inline]
    pub fn keeps(&self, class: Class, at: NonNull<u8>) -> bool {
        let mut waits = false;
        self.waiting.each(|_, waiting| waits |= waiting == at);
        waits || self.bins[class.number()].keeps(class, at)
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
        let bin = &mut self.bins[class.number()];
        let bytes = if bin.len >= class.most_kept() {
            bin.give_oldest(class.most_kept() / 2, class, memory, lane)
        } else {
            0
        };
        // There is room: if the cache kept the most slots, half of them have been given back.
        bin.add(class, at);
        bytes
    }

    /// Allocates a run of so many units, aligned to a power of two, if the cache keeps one.
    pub fn take_run(&mut self, units: u64, align: usize) -> Option<NonNull<u8>> {
        self.runs.take(units, align)
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
                bytes += bin.give_oldest(bin.len, class, memory, lane);
            }
            if bin.spare != 0 {
                bytes += bin.give_spare(class, memory, lane);
            }
        }
        bytes
    }
}

impl Bin {
    #[inline]
    fn pop(&mut self, class: Class, lot: &mut Lot) -> Option<NonNull<u8>> {
        if !lot.draws_spare(&mut self.slots, self.len, self.spare)
            && let Some(&newest) = self.len.checked_sub(1).and_then(|last| self.slots.get(last))
        {
            self.len -= 1;
            return NonNull::new(newest);
        }
        if self.spare == 0 {
            return None;
        }
        let slot = lot.take_bit(&mut self.spare) as usize;
        // SAFETY: the slot lies in the slab.
        NonNull::new(unsafe { self.slab.add(slot * class.size()) })
    }

    fn each(&self, class: Class, visit: impl FnMut(NonNull<u8>)) {
        let spare = (0..class.all_slots().count_ones()).filter(|slot| self.spare & 1 << slot != 0);
        let spare = spare.map(|slot| self.slab.wrapping_add(slot as usize * class.size()));
        let freed = self.slots.iter().take(self.len).copied();
        freed.chain(spare).filter_map(NonNull::new).for_each(visit);
    }

    /// Keeps a slot, if there is room and it is not the newest. Returns whether it does.
    #[inline]
    fn push(&mut self, class: Class, at: NonNull<u8>) -> bool {
        let room = self.len < class.most_kept();
        let Some([kept @ .., place]) = self.slots.get_mut(..=self.len).filter(|_| room) else {
            return false;
        };
        let is_new = kept.last() != Some(&at.as_ptr());
        if is_new {
            *place = at.as_ptr();
            self.len += 1;
        }
        is_new
    }

    /// Keeps a slot, if there is room, also one that it keeps already. Returns whether there was room.
    fn add(&mut self, class: Class, at: NonNull<u8>) -> bool {
        let room = self.len < class.most_kept();
        if let Some(slot) = self.slots.get_mut(self.len).filter(|_| room) {
            *slot = at.as_ptr();
            self.len += 1;
        }
        room
    }

    #[inline]
    fn keeps(&self, class: Class, at: NonNull<u8>) -> bool {
        let offset = at.addr().get().wrapping_sub(self.slab.addr());
        let is_spare = || class.slot_at(offset).is_some_and(|slot| self.spare & 1 << slot != 0);
        let newest = self.len.checked_sub(1).and_then(|last| self.slots.get(last));
        let is_any = || self.slots.iter().take(self.len).any(|&kept| kept == at.as_ptr());
        newest == Some(&at.as_ptr())
            || (watch::ON || Lot::DRAWS) && is_any()
            || self.spare != 0 && offset < class.slab_bytes() && is_spare()
    }

    /// Takes slabs that have free slots, or makes one, and allocates a slot; if there is to be no slab, allocates a
    /// run. Looks only for slabs that have free slots if nothing else `may_fit`. Only for a bin that keeps nothing.
    fn refill(
        &mut self,
        class: Class,
        may_fit: bool,
        memory: &Memory<'_>,
        lane: usize,
        lot: &mut Lot,
    ) -> Option<NonNull<u8>> {
        memory.find(|region| {
            region.take(class, AT_ONCE, |slab, slots| {
                self.put(class, memory, region, lane, slab, slots);
            });
            (self.spare != 0).then_some(())
        });
        if self.spare == 0 && !may_fit {
            return None;
        }
        if self.spare == 0
            && let Some(slab) =
                memory.find(|region| region.make_slab(class, memory.runs(class), lane))
        {
            (self.slab, self.spare) = (slab.as_ptr(), class.all_slots());
        }
        self.pop(class, lot).or_else(|| {
            let made = memory.find(|region| region.make_run(class, lane));
            made.inspect(|_| memory.count_run(class))
        })
    }

    /// Keeps slots of a slab, as far as there is room for them, and gives back the others.
    fn put(
        &mut self,
        class: Class,
        memory: &Memory<'_>,
        region: &Region<'_>,
        lane: usize,
        slab: NonNull<u8>,
        mut slots: u64,
    ) {
        if self.spare == 0 {
            (self.slab, self.spare) = (slab.as_ptr(), slots);
            return;
        }
        while slots != 0 && slots != class.all_slots() && self.len < class.most_kept() / 2 {
            // SAFETY: the slot lies in the slab.
            self.slots[self.len] =
                unsafe { slab.add(slots.trailing_zeros() as usize * class.size()) }.as_ptr();
            self.len += 1;
            slots &= slots - 1;
        }
        if slots != 0 {
            give(memory, region, class, lane, slab, slots);
        }
    }

    /// Gives back the slab's slots. Returns its bytes if its memory has gone back.
    fn give_spare(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
        let slots = core::mem::take(&mut self.spare);
        let of = |slab| memory.at(slab, |region| give(memory, region, class, lane, slab, slots));
        NonNull::new(self.slab).and_then(of).unwrap_or(0)
    }

    /// Gives back the `count` oldest freed slots, those of one slab together. Returns the bytes of the slabs and runs
    /// that went back.
    fn give_oldest(
        &mut self,
        count: usize,
        class: Class,
        memory: &Memory<'_>,
        lane: usize,
    ) -> usize {
        let count = count.min(self.len);
        let mut all_bytes = 0;
        let (given, _) = self.slots.split_at_mut(count);
        for first in 0..given.len() {
            let Some(at) = NonNull::new(given[first]) else { continue };
            let of_region =
                |region: &Region<'_>| give_all_of_region(&mut given[first..], region, class, lane);
            let (refused, bytes) = memory.at(at, of_region).unwrap_or((1, 0));
            memory.refuse_all(refused);
            all_bytes += bytes;
        }
        self.slots.copy_within(count..self.len, 0);
        self.len -= count;
        all_bytes
    }
}

/// Gives back the slots that lie in a region, those of one slab together, and leaves null in their place. Returns how
/// many were refused, and the bytes of the slabs and runs that went back.
fn give_all_of_region(
    mut at: &mut [*mut u8],
    region: &Region<'_>,
    class: Class,
    lane: usize,
) -> (u32, usize) {
    let (mut refused, mut bytes) = (0, 0);
    while let [first, rest @ ..] = at {
        let here = NonNull::new(*first).filter(|&first| region.contains(first));
        if here.is_some() {
            *first = null_mut();
        }
        if let Some((slab, slot)) = here.and_then(|first| region.slot_of(class, first)) {
            let (slots, twice) = take_all_of_slab(rest, region, class, slab, slot);
            let (others, of_slab) = region.give_any(class, lane, slab, slots);
            refused += twice + others;
            bytes += of_slab;
        } else if let Some(run) = here {
            match region.give_run(class, lane, run) {
                Some(given) => bytes += given,
                None => refused += 1,
            }
        }
        at = rest;
    }
    (refused, bytes)
}

/// Takes out the slots that belong to a slab, as one does already, and leaves null in their place. Returns a bit for
/// each, and how many occurred again: these were freed once too often.
fn take_all_of_slab(
    at: &mut [*mut u8],
    region: &Region<'_>,
    class: Class,
    slab: u64,
    slot: u32,
) -> (u64, u32) {
    let begins = region.address_of(slab);
    let (mut slots, mut twice) = (1_u64 << slot, 0);
    for at in at {
        // Most belong to other slabs, which this tells at once.
        if at.addr().wrapping_sub(begins) >= class.slab_bytes() {
            continue;
        }
        let Some((_, slot)) = NonNull::new(*at).and_then(|at| region.slot_of(class, at)) else {
            continue;
        };
        *at = null_mut();
        twice += u32::from(slots & 1 << slot != 0);
        slots |= 1 << slot;
    }
    (slots, twice)
}

/// Gives back slots that the cache took itself, and counts those that somebody who did not hold them has freed meanwhile.
/// Returns the bytes of the slab if its memory has gone back.
fn give(
    memory: &Memory<'_>,
    region: &Region<'_>,
    class: Class,
    lane: usize,
    slab: NonNull<u8>,
    slots: u64,
) -> usize {
    let Some((slab, _)) = region.slot_of(class, slab) else { return 0 };
    let (refused, bytes) = region.give_each(class, lane, slab, slots);
    memory.refuse_all(refused);
    bytes
}
