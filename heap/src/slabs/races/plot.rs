//! Slabs of two classes on loom's words, with memory that only the holder of a slot may touch.

use core::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use testkit_loom::Raced;

use super::{Fresh, Lane};
use crate::class::{CLASSES, Class, UNIT};
use crate::slabs::{FIRST, Given, LISTED, Slabs, WORDS_OF_CLASSES, tag};

/// The class of eight slots in a unit, and the bits of all of them.
pub fn wide() -> Class {
    Class::of(Layout::new::<[u8; 128]>()).unwrap()
}
pub const WIDE: u64 = 0xff;

/// A class of sixteen slots in a unit.
pub fn narrow() -> Class {
    Class::of(Layout::new::<[u8; 64]>()).unwrap()
}

/// The granularity at which parts of a unit are distinguished: that of the smaller slots.
const GRAIN: usize = 64;
const GRAINS: usize = UNIT / GRAIN;

/// Loom's word, or one that no race uses.
pub enum Word {
    Raced(Raced<AtomicU64>),
    Unused,
}

impl Word {
    fn raced() -> Self {
        Self::Raced(Raced::default())
    }

    fn turn(&self) -> &AtomicU64 {
        let Self::Raced(word) = self else { panic!("a word that no race uses") };
        word.turn()
    }
}

impl nbbs::sync::Word for Word {
    fn load(&self, order: Ordering) -> u64 {
        self.turn().load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.turn().store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.turn().compare_exchange(current, new, success, failure)
    }
}

/// Slots of a slab that somebody holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    class: Class,
    unit: u64,
    pub slots: u64,
}

impl Held {
    /// Makes a slab's slots of the class [`wide`].
    pub fn of(unit: u64, slots: u64) -> Self {
        Self { class: wide(), unit, slots }
    }

    /// Returns some of the slots: somebody else will hold the others.
    pub fn part(self, slots: u64) -> Self {
        Self { slots: self.slots & slots, ..self }
    }

    /// Returns a bit for its first slot.
    pub fn lowest(&self) -> u64 {
        self.slots & self.slots.wrapping_neg()
    }

    /// Gives back all but these slots.
    pub fn keep(self, plot: &Plot, slots: u64) -> Self {
        let others = self.slots & !slots;
        if others != 0 {
            plot.give(self.part(others));
        }
        self.part(slots)
    }

    /// Returns a bit for each grain of its slots.
    fn grains(&self) -> u64 {
        let each = self.class.size() / GRAIN;
        let of_slot = |slot: usize| ((1_u64 << each) - 1) << (slot * each);
        (0..64_usize).filter(|slot| self.slots >> slot & 1 != 0).map(of_slot).sum()
    }
}

pub struct Plot {
    slots: Vec<Word>,
    links: Vec<Word>,
    classes: Vec<Word>,
    grains: Vec<UnsafeCell<u64>>,
    /// The units that were returned.
    returned: AtomicU64,
}

impl Plot {
    pub fn new(units: usize) -> Self {
        let words = || (0..units).map(|_| Word::raced()).collect();
        let of_class = |number: usize| {
            // Two stacks for each class, then a word for each.
            let number = number.checked_sub(2 * CLASSES).unwrap_or(number / 2);
            let is_raced = [wide().number(), narrow().number()].contains(&number);
            if is_raced { Word::raced() } else { Word::Unused }
        };
        Self {
            slots: words(),
            links: words(),
            classes: (0..WORDS_OF_CLASSES).map(of_class).collect(),
            grains: (0..units * GRAINS).map(|_| UnsafeCell::new(0)).collect(),
            returned: AtomicU64::new(0),
        }
    }

    fn slabs(&self) -> Slabs<'_, Word> {
        Slabs::new(&self.slots, &self.links, &self.classes)
    }

    /// Writes to slots, as only their holder may.
    fn touch(&self, held: Held) {
        let grains = &self.grains[held.unit as usize * GRAINS..][..GRAINS];
        for (number, grain) in grains.iter().enumerate() {
            if held.grains() >> number & 1 != 0 {
                // SAFETY: loom ensures that nobody else does so at the same time.
                grain.with_mut(|grain| unsafe { *grain += 1 });
            }
        }
    }

    /// Makes a slab of memory that the caller holds.
    pub fn make(&self, class: Class, unit: u64) -> Held {
        self.slabs().make(class, unit);
        let held = Held { class, unit, slots: class.all_slots() };
        self.touch(held);
        held
    }

    /// Makes a slab of memory that was returned.
    pub fn make_returned(&self, class: Class) -> Option<Held> {
        // Acquire: pairs with the Release in `give`.
        let returned = self.returned.fetch_and(0, Ordering::Acquire);
        assert!(returned.count_ones() <= 1, "races have a single slab that is returned");
        (returned != 0).then(|| self.make(class, returned.trailing_zeros().into()))
    }

    pub fn take(&self, class: Class, most: usize) -> Vec<Held> {
        let mut taken = Vec::new();
        self.slabs().take(class, most, |unit, slots| taken.push(Held { class, unit, slots }));
        taken.iter().for_each(|&taken| self.touch(taken));
        taken
    }

    pub fn give(&self, held: Held) {
        self.touch(held);
        match self.slabs().give(held.class, held.unit, held.slots) {
            Given::Free | Given::LastFree => {}
            // Release: pairs with the Acquire in `make_returned`.
            Given::Whole => {
                let before = self.returned.fetch_or(1 << held.unit, Ordering::Release);
                assert_eq!(before >> held.unit & 1, 0, "returned twice");
            }
            Given::Refused => panic!("{held:?} could not be freed"),
        }
    }

    pub fn refuses(&self, class: Class, unit: u64, slots: u64) -> bool {
        self.slabs().give(class, unit, slots) == Given::Refused
    }

    /// Returns the memory of slabs that are whole.
    pub fn trim(&self, class: Class) {
        self.trim_with(class, |held| self.give(held));
    }

    /// Trims, and calls `visit` with the slots of each slab, one slab at a time. `visit` gives them back.
    pub fn trim_with(&self, class: Class, mut visit: impl FnMut(Held)) {
        let visit = |unit, slots| visit(Held { class, unit, slots });
        self.slabs().take_all_if_whole(class, 1, visit);
    }

    /// Returns how many slabs were returned.
    pub fn returned(&self) -> u32 {
        // A swap reads the newest value.
        self.returned.fetch_or(0, Ordering::Acquire).count_ones()
    }

    /// Returns the slabs on the stacks of a class, and their slots. Nobody else is running.
    fn on_stacks(&self, class: Class) -> Vec<Held> {
        let mut found = Vec::new();
        (0..2).for_each(|number| self.add_stack(class, number, &mut found));
        found
    }

    fn add_stack(&self, class: Class, number: usize, found: &mut Vec<Held>) {
        use nbbs::sync::Word as _;
        let stack = self.slabs().stack(class, number).unwrap();
        let mut next = stack.load(Ordering::Acquire) & FIRST;
        while let Some(unit) = next.checked_sub(1) {
            assert!(found.len() < self.slots.len(), "a stack goes round");
            let word = self.slots[unit as usize].load(Ordering::Relaxed);
            let link = self.links[unit as usize].load(Ordering::Relaxed);
            assert_eq!(link & !FIRST, tag(class), "a slab of another class is on the stack");
            assert!(word & LISTED != 0 && word != LISTED, "{word:#x}: not whole");
            found.push(Held { class, unit, slots: word & !LISTED });
            next = link & FIRST;
        }
    }

    /// Returns whether a slab on the stacks is whole.
    pub fn has_whole(&self, class: Class) -> bool {
        self.on_stacks(class).iter().any(|slab| slab.slots == class.all_slots())
    }

    /// Checks that every slot is in one place: on a stack, in somebody's hands, or returned with its slab.
    pub fn check(&self, held: &[Held]) {
        use nbbs::sync::Word as _;
        let listed: Vec<Held> =
            [wide(), narrow()].into_iter().flat_map(|class| self.on_stacks(class)).collect();
        let mut found = vec![0; self.slots.len()];
        for held in held.iter().chain(&listed) {
            let unit = &mut found[held.unit as usize];
            assert_eq!(*unit & held.grains(), 0, "{held:?}: handed out twice");
            *unit |= held.grains();
        }
        let returned = self.returned.load(Ordering::Acquire);
        let all = (1_u64 << GRAINS) - 1;
        for (unit, &found) in found.iter().enumerate() {
            let is_returned = returned >> unit & 1 != 0;
            assert!(!is_returned || found == 0, "unit {unit} was returned, but {found:#x} was not");
            let is_slab = self.links[unit].load(Ordering::Relaxed) != 0;
            assert!(found == all || !is_slab, "{:#x} of unit {unit}: lost", all & !found);
            let is_listed = listed.iter().any(|slab| slab.unit == unit as u64);
            let word = self.slots[unit].load(Ordering::Relaxed);
            assert_eq!(word & LISTED != 0, is_listed, "the mark says what is not so");
        }
    }
}

/// Races lanes on a fresh plot, the last of them on the calling thread. Returns what they hold in the end.
pub fn together(units: usize, fresh: Fresh, lanes: &'static [Lane]) -> (Arc<Plot>, Vec<Held>) {
    #[expect(clippy::arc_with_non_send_sync, reason = "loom's threads take turns")]
    let plot = Arc::new(Plot::new(units));
    let mut held = fresh(&plot);
    assert_eq!(held.len(), lanes.len());
    let (last, others) = lanes.split_last().unwrap();
    let its = held.pop().unwrap();
    let start = |(&lane, held): (&Lane, Vec<Held>)| {
        let plot = Arc::clone(&plot);
        thread::spawn(move || lane(&plot, held))
    };
    let threads: Vec<_> = others.iter().zip(held).map(start).collect();
    let mut held = last(&plot, its);
    for thread in threads {
        held.extend(thread.join().unwrap());
    }
    (plot, held)
}
