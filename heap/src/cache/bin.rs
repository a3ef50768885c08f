//! The slots of one class that a cache keeps.

use core::ptr::{NonNull, null_mut};

use crate::cache::aside::AllAside;
use crate::class::{Class, MOST_KEPT, Slot};
use crate::region::{Memory, Region};
use crate::slabs::{AT_ONCE, Lot};
use crate::watch;

/// Slots of one class.
#[derive(Clone, Copy, Debug)]
pub struct Bin {
    /// Freed slots, the newest last.
    slots: [*mut u8; MOST_KEPT],
    pub len: usize,
    /// The address of a slab, and a bit for each of its slots that is kept.
    slab: *mut u8,
    pub spare: u64,
}

impl Bin {
    /// A bin that keeps nothing: all zero.
    pub const EMPTY: Self =
        Self { slots: [null_mut(); MOST_KEPT], len: 0, slab: null_mut(), spare: 0 };

    #[inline]
    pub fn pop(&mut self, class: Class, lot: &mut Lot) -> Option<NonNull<u8>> {
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

    pub fn each(&self, class: Class, visit: impl FnMut(NonNull<u8>)) {
        let spare = (0..class.all_slots().count_ones()).filter(|slot| self.spare & 1 << slot != 0);
        let spare = spare.map(|slot| self.slab.wrapping_add(slot as usize * class.size()));
        let freed = self.slots.iter().take(self.len).copied();
        freed.chain(spare).filter_map(NonNull::new).for_each(visit);
    }

    /// Keeps a slot, if there is room and it is not the newest. Returns whether it does.
    #[inline]
    pub fn push(&mut self, class: Class, at: NonNull<u8>) -> bool {
        !self.is_newest(at) && self.add(class, at)
    }

    /// Returns whether a slot is the newest of those that were freed. Without a branch, as nobody could foretell it.
    #[inline]
    fn is_newest(&self, at: NonNull<u8>) -> bool {
        let newest = self.slots[self.len.wrapping_sub(1) % MOST_KEPT];
        (self.len != 0) & (newest == at.as_ptr())
    }

    /// [Keeps](Self::push) the slot that begins at `at`, unless it is kept of the slab at hand.
    #[inline]
    pub fn push_slot(&mut self, slot: Slot, at: NonNull<u8>) -> bool {
        let is_spare = (slot.slab == self.slab.addr()) & (self.spare >> slot.number & 1 != 0);
        !(is_spare | self.is_newest(at)) && self.add(slot.class, at)
    }

    /// Keeps a slot, if there is room, also one that it keeps already. Returns whether there was room.
    #[inline]
    pub fn add(&mut self, class: Class, at: NonNull<u8>) -> bool {
        let room = self.len < class.most_kept();
        if let Some(slot) = self.slots.get_mut(self.len).filter(|_| room) {
            *slot = at.as_ptr();
            self.len += 1;
        }
        room
    }

    #[inline]
    pub fn keeps(&self, class: Class, at: NonNull<u8>) -> bool {
        let is_any = || self.slots.iter().take(self.len).any(|&kept| kept == at.as_ptr());
        (self.is_newest(at) | self.has_spare(class, at)) || (watch::ON || Lot::DRAWS) && is_any()
    }

    /// Returns whether an address lies in a slot that is kept of the slab at hand. Without a branch, as nobody could
    /// foretell it.
    #[inline]
    fn has_spare(&self, class: Class, at: NonNull<u8>) -> bool {
        let (offset, bytes) = (at.addr().get().wrapping_sub(self.slab.addr()), class.slab_bytes());
        let kept = self.spare >> (class.slots_before(offset & (bytes - 1)) % u64::BITS) & 1;
        (offset < bytes) & (kept != 0)
    }

    /// Takes slabs that have free slots, or makes one, and allocates a slot; if there is to be no slab, allocates a
    /// run. Looks only for slabs that have free slots if nothing else `may_fit`. Only for a bin that keeps nothing.
    pub fn refill(
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
        let make = |region: &Region<'_>| region.make_slab(class, memory.runs(class), lane);
        if self.spare == 0
            && let Some(slab) = memory.swept(lane).find(make)
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
        slots: u64,
    ) {
        if self.spare == 0 {
            (self.slab, self.spare) = (slab.as_ptr(), slots);
            return;
        }
        // A whole slab's memory can go back.
        let is_whole = slots == class.all_slots();
        let left = if is_whole { slots } else { self.add_of_slab(class, slab, slots) };
        if left != 0 {
            give(memory, region, class, lane, slab, left);
        }
    }

    /// Keeps slots of a slab until half of the room is taken. Returns a bit for each of the others.
    fn add_of_slab(&mut self, class: Class, slab: NonNull<u8>, mut slots: u64) -> u64 {
        while slots != 0 && self.len < class.most_kept() / 2 {
            // SAFETY: the slot lies in the slab.
            let at = unsafe { slab.add(slots.trailing_zeros() as usize * class.size()) };
            self.add(class, at);
            slots &= slots - 1;
        }
        slots
    }

    /// Gives back the slab's slots. Returns its bytes if its memory has gone back.
    pub fn give_spare(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
        let slots = core::mem::take(&mut self.spare);
        let of = |slab| memory.at(slab, |region| give(memory, region, class, lane, slab, slots));
        NonNull::new(self.slab).and_then(of).unwrap_or(0)
    }

    /// Makes room: sets the `count` oldest freed slots aside, or, if they are not small, gives them back. Returns the
    /// bytes of the slabs and runs that went back.
    pub fn make_room(
        &mut self,
        count: usize,
        aside: &mut AllAside,
        class: Class,
        memory: &Memory<'_>,
        lane: usize,
    ) -> usize {
        let count = count.min(self.len);
        let (oldest, _) = self.slots.split_at_mut(count);
        let bytes = match aside.add(class, oldest, memory, lane) {
            Some(bytes) => bytes,
            None => give_those(oldest, class, memory, lane),
        };
        self.slots.copy_within(count..self.len, 0);
        self.len -= count;
        bytes
    }

    /// Takes back slots that were set aside, if there are any, and allocates one of them. Only for a bin that keeps
    /// nothing.
    pub fn take_back(
        &mut self,
        aside: &mut AllAside,
        class: Class,
        lot: &mut Lot,
    ) -> Option<NonNull<u8>> {
        let (slab, slots) = aside.take(class, class.most_kept() / 2, lot)?;
        self.add_of_slab(class, slab, slots);
        self.pop(class, lot)
    }
}

/// Gives back freed slots, those of one slab together. Returns the bytes of the slabs and runs that went back.
fn give_those(given: &mut [*mut u8], class: Class, memory: &Memory<'_>, lane: usize) -> usize {
    let mut all_bytes = 0;
    for first in 0..given.len() {
        let Some(at) = NonNull::new(given[first]) else { continue };
        let of_region =
            |region: &Region<'_>| give_all_of_region(&mut given[first..], region, class, lane);
        let (refused, bytes) = memory.at(at, of_region).unwrap_or((1, 0));
        memory.refuse_all(refused);
        all_bytes += bytes;
    }
    all_bytes
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
