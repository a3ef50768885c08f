//! Freed slots that a cache has set aside: by slab, a bit for each, so that those of a slab go back together.

use core::ptr::{NonNull, null_mut};

use crate::class::Class;
use crate::region::Region;
use crate::regions::Memory;

/// Of how many slabs a cache sets slots aside.
const SLABS: usize = 8;

/// Slots of one class, set aside by slab. If it is all zero, there are none.
#[derive(Debug)]
pub struct Aside {
    /// The address of a slab, and a bit for each of its slots that is set aside.
    slabs: [(*mut u8, u64); SLABS],
    /// A bit for each place above that has slots.
    used: u32,
}

impl Aside {
    pub const fn new() -> Self {
        Self { slabs: [(null_mut(), 0); SLABS], used: 0 }
    }

    /// Sets a freed slot aside. What has no place in a slab is given back at once if it is a run, and otherwise refused.
    /// Returns the bytes of that run, and of the slab that went back to make room.
    pub fn add(
        &mut self,
        class: Class,
        at: NonNull<u8>,
        memory: &Memory<'_>,
        lane: usize,
    ) -> usize {
        let of_region = |region: &Region<'_>| match region.slot_of(class, at) {
            Some((slab, slot)) => Ok((region.pointer(slab), slab >> class.slab_order(), slot)),
            None => Err(region.give_run(class, lane, at)),
        };
        match memory.at(at, of_region) {
            Some(Ok((slab, number, slot))) => {
                self.add_slot(class, (slab, number as usize % SLABS, slot), memory, lane)
            }
            Some(Err(Some(bytes))) => bytes,
            _ => {
                memory.refuse();
                0
            }
        }
    }

    /// Sets a slot of a slab aside, whose place that is. A slot that is there already was freed twice.
    fn add_slot(
        &mut self,
        class: Class,
        (slab, place, slot): (NonNull<u8>, usize, u32),
        memory: &Memory<'_>,
        lane: usize,
    ) -> usize {
        let mut bytes = 0;
        if self.slabs[place].0 != slab.as_ptr() {
            bytes = self.give(place, class, memory, lane);
            self.slabs[place].0 = slab.as_ptr();
        }
        let slots = &mut self.slabs[place].1;
        if *slots & 1 << slot != 0 {
            memory.refuse();
        }
        *slots |= 1 << slot;
        self.used |= 1 << place;
        bytes
    }

    /// Returns a slab and slots of it that are set aside no longer: up to `most`.
    pub fn take(&mut self, most: usize) -> Option<(NonNull<u8>, u64)> {
        let place = self.used.trailing_zeros() as usize;
        let (slab, slots) = self.slabs.get_mut(place)?;
        let mut left = *slots;
        (0..most).for_each(|_| left &= left.saturating_sub(1));
        let taken = *slots & !left;
        *slots = left;
        if left == 0 {
            self.used ^= 1 << place;
        }
        Some((NonNull::new(*slab)?, taken))
    }

    /// Gives everything back. Returns the bytes of the slabs and runs that went back.
    pub fn give_all(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
        let mut bytes = 0;
        while self.used != 0 {
            bytes += self.give(self.used.trailing_zeros() as usize, class, memory, lane);
        }
        bytes
    }

    /// Gives back the slots at a place.
    fn give(&mut self, place: usize, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
        self.used &= !(1 << place);
        let (slab, slots) = &mut self.slabs[place];
        let (slab, slots) = (NonNull::new(*slab), core::mem::take(slots));
        let Some(slab) = slab.filter(|_| slots != 0) else { return 0 };
        let given =
            memory.at(slab, |region| region.give_any(class, lane, region.unit_of(slab), slots));
        let (refused, bytes) = given.unwrap_or((slots.count_ones(), 0));
        memory.refuse_all(refused);
        bytes
    }

    /// Calls `visit` for everything that is set aside.
    pub fn each(&self, class: Class, mut visit: impl FnMut(NonNull<u8>)) {
        for &(slab, slots) in &self.slabs {
            let there = (0..u64::BITS as usize).filter(|slot| slots & 1 << slot != 0);
            let at = there.map(|slot| slab.wrapping_add(slot * class.size()));
            at.filter_map(NonNull::new).for_each(&mut visit);
        }
    }
}
