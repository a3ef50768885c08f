//! Freed slots that a cache has set aside: by slab, a bit for each, so that those of a slab go back together.

use core::ptr::{NonNull, null_mut};

use crate::class::{Class, SMALL_CLASSES};
use crate::region::{Memory, Region};
use crate::slabs::Lot;

/// Of how many slabs slots of a class are set aside.
const SLABS: usize = 8;

/// What a cache sets aside of small slots.
#[derive(Debug)]
pub struct AllAside {
    classes: [Aside; SMALL_CLASSES],
    /// The units of all these slabs.
    units: u64,
}

/// Slots of one class, set aside by slab. If it is all zero, there are none.
#[derive(Debug)]
struct Aside {
    /// The address of a slab, and a bit for each of its slots that is set aside.
    slabs: [(*mut u8, u64); SLABS],
    /// A bit for each place above that has slots.
    used: u64,
}

impl AllAside {
    pub const fn new() -> Self {
        Self { classes: [const { Aside::new() }; SMALL_CLASSES], units: 0 }
    }

    /// Sets freed slots aside, and gives all of the class back if the slabs of all classes then have more units than a
    /// cache may keep of the first slot's region. Returns the bytes of the slabs and runs that went back; `None` if
    /// slots of the class are not set aside.
    pub fn add(
        &mut self,
        class: Class,
        slots: &[*mut u8],
        memory: &Memory<'_>,
        lane: usize,
    ) -> Option<usize> {
        let first = slots.first().and_then(|&first| NonNull::new(first));
        self.change(class, |aside, others| {
            let most = first.and_then(|first| memory.at(first, Region::most_kept)).unwrap_or(0);
            let mut bytes = aside.add(class, slots, memory, lane);
            if others + aside.units(class) > most {
                bytes += aside.give_all(class, memory, lane);
            }
            bytes
        })
    }

    /// Returns a slab and slots of it that are set aside no longer: up to `most`.
    pub fn take(&mut self, class: Class, most: usize, lot: &mut Lot) -> Option<(NonNull<u8>, u64)> {
        self.change(class, |aside, _| aside.take(most, lot))?
    }

    /// Gives back all slots of a class. Returns the bytes of the slabs and runs that went back.
    pub fn give_all(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
        self.change(class, |aside, _| aside.give_all(class, memory, lane)).unwrap_or(0)
    }

    /// Changes what is set aside of a class, beside so many units of other classes, and counts the units anew. Returns
    /// `None` if slots of the class are not set aside.
    fn change<R>(&mut self, class: Class, change: impl FnOnce(&mut Aside, u64) -> R) -> Option<R> {
        let aside = self.classes.get_mut(class.number())?;
        let others = self.units - aside.units(class);
        let changed = change(aside, others);
        self.units = others + aside.units(class);
        Some(changed)
    }

    /// Returns whether that slot of this class is set aside.
    pub fn has(&self, class: Class, at: NonNull<u8>) -> bool {
        self.classes.get(class.number()).is_some_and(|aside| aside.has(class, at))
    }

    /// Calls `visit` for all slots of a class.
    pub fn each(&self, class: Class, visit: impl FnMut(NonNull<u8>)) {
        if let Some(aside) = self.classes.get(class.number()) {
            aside.each(class, visit);
        }
    }
}

impl Aside {
    const fn new() -> Self {
        Self { slabs: [(null_mut(), 0); SLABS], used: 0 }
    }

    /// The units of the slabs.
    fn units(&self, class: Class) -> u64 {
        u64::from(self.used.count_ones()) << class.slab_order()
    }

    /// Sets slots aside. What has no place in a slab is given back at once if it is a run, and otherwise refused.
    /// Returns the bytes of such runs, and of the slabs that went back to make room.
    fn add(&mut self, class: Class, slots: &[*mut u8], memory: &Memory<'_>, lane: usize) -> usize {
        let (mut rest, mut bytes) = (slots, 0);
        while let Some(first) = rest.first().and_then(|&first| NonNull::new(first)) {
            // Those of one region, which is looked up once.
            let of_region = |region: &Region<'_>| {
                let (count, given) = self.add_of_region(class, rest, region, memory, lane);
                bytes += given;
                count
            };
            let mut count = memory.at(first, of_region).unwrap_or(0);
            if count == 0 {
                (bytes, count) = (bytes + give_run(class, first, memory, lane), 1);
            }
            rest = &rest[count..];
        }
        bytes
    }

    /// Sets slots aside up to the first that cannot be one of a slab of this region. Returns how many, and the bytes of
    /// the slabs that went back to make room.
    #[inline]
    fn add_of_region(
        &mut self,
        class: Class,
        slots: &[*mut u8],
        region: &Region<'_>,
        memory: &Memory<'_>,
        lane: usize,
    ) -> (usize, usize) {
        let slot_of = |&at: &*mut u8| region.slot_of(class, NonNull::new(at)?);
        let Some((slab, _)) = slots.first().and_then(slot_of) else { return (0, 0) };
        let (mut front, mut twice, mut count, mut bytes) = (Front { slab, slots: 0 }, 0, 0, 0);
        for (slab, slot) in slots.iter().map_while(slot_of) {
            if slab != front.slab {
                bytes += self.add_front(class, &front, region, memory, lane);
                front = Front { slab, slots: 0 };
            }
            twice += (front.slots >> slot & 1) as u32;
            front.slots |= 1 << slot;
            count += 1;
        }
        memory.refuse_all(twice);
        (count, bytes + self.add_front(class, &front, region, memory, lane))
    }

    #[inline]
    fn add_front(
        &mut self,
        class: Class,
        front: &Front,
        region: &Region<'_>,
        memory: &Memory<'_>,
        lane: usize,
    ) -> usize {
        let place = (front.slab >> class.slab_order()) as usize % SLABS;
        let (begins, mut bytes) = (region.pointer(front.slab).as_ptr(), 0);
        if self.slabs[place].0 != begins {
            bytes = self.give(place, class, memory, lane);
            self.slabs[place].0 = begins;
        }
        let slots = &mut self.slabs[place].1;
        // What is there already was freed twice. That is rare, so its bits are not counted each time.
        let again = *slots & front.slots;
        if again != 0 {
            memory.refuse_all(again.count_ones());
        }
        *slots |= front.slots;
        self.used |= 1 << place;
        bytes
    }

    fn take(&mut self, most: usize, lot: &mut Lot) -> Option<(NonNull<u8>, u64)> {
        if self.used == 0 {
            return None;
        }
        let place = lot.take_bit(&mut self.used.clone()) as usize;
        let (slab, slots) = self.slabs.get_mut(place)?;
        let (all, mut left) = (*slots, *slots);
        for _ in 0..most.min(all.count_ones() as usize) {
            lot.take_bit(&mut left);
        }
        *slots = left;
        if left == 0 {
            self.used ^= 1 << place;
        }
        Some((NonNull::new(*slab)?, all & !left))
    }

    fn give_all(&mut self, class: Class, memory: &Memory<'_>, lane: usize) -> usize {
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
        let (refused, bytes) = given.unwrap_or_else(|| (slots.count_ones(), 0));
        memory.refuse_all(refused);
        bytes
    }

    fn has(&self, class: Class, at: NonNull<u8>) -> bool {
        let is_there = |&(slab, slots): &(*mut u8, u64)| {
            let offset = at.addr().get().wrapping_sub(slab.addr());
            slots != 0
                && offset < class.slab_bytes()
                && class.slot_at(offset).is_some_and(|slot| slots & 1 << slot != 0)
        };
        self.used != 0 && self.slabs.iter().any(is_there)
    }

    fn each(&self, class: Class, mut visit: impl FnMut(NonNull<u8>)) {
        for &(slab, slots) in &self.slabs {
            let there = (0..u64::BITS as usize).filter(|slot| slots & 1 << slot != 0);
            let at = there.map(|slot| slab.wrapping_add(slot * class.size()));
            at.filter_map(NonNull::new).for_each(&mut visit);
        }
    }
}

/// Slots of one slab that follow each other, or runs of their own at the places of its slots.
struct Front {
    slab: u64,
    /// A bit for each of its slots.
    slots: u64,
}

/// Gives back what is no slot of a slab, if it is a run, and refuses it otherwise. Returns its bytes.
fn give_run(class: Class, at: NonNull<u8>, memory: &Memory<'_>, lane: usize) -> usize {
    let given = memory.at(at, |region| region.give_run(class, lane, at)).flatten();
    if given.is_none() {
        memory.refuse();
    }
    given.unwrap_or(0)
}
