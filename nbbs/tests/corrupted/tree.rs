//! The words of an arena, found by watching which ones a claim changes, and what they should contain.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use nbbs::{Invariant, metadata_words};
use testkit::hooked::{Hook, Hooked};
use testkit::program::Arena;

pub const FREE: u64 = 0b00;
/// Of an inner word: look at the word below. Of a leaf word: reserved, or an open head if a rest follows.
pub const SPLIT: u64 = 0b01;
pub const REST: u64 = 0b10;
pub const HEAD: u64 = 0b11;
pub const MARK: u64 = 1 << 63;
pub const UNSETTLED: u64 = 63;
const BOUND_SHIFT: u32 = 57;

thread_local!(static CHANGED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) });

/// Notes the address of each word that a compare-and-swap changes.
#[derive(Debug, Default)]
struct Watching;

impl Hook for Watching {
    fn before_access() {}

    fn before_swap(at: usize) {
        CHANGED.with_borrow_mut(|changed| changed.push(at));
    }
}

type Watched = Hooked<Watching>;

/// The places of the words of an arena.
pub struct Tree {
    pub units: u64,
    /// By level, from the leaves up: the place of each word.
    pub places: Vec<Vec<usize>>,
}

/// The codes of one word, by slot.
type Codes = Vec<u64>;

/// What is written in an arena's words.
pub struct Content {
    units: u64,
    words: Vec<Vec<(Codes, u64)>>,
}

/// A breach of a rule: the rule, level, word and slot.
pub type Breach = (Invariant, usize, u64, u32);

impl Tree {
    /// Claims a single unit of each leaf word in a fresh arena: the words change from the leaf to the top.
    pub fn of(units: u64) -> Self {
        let mut places: Vec<Vec<usize>> = Vec::new();
        for leaf in 0..units.div_ceil(32) {
            let words: Vec<Watched> =
                (0..metadata_words(units)).map(|_| Watched::default()).collect();
            let first = std::ptr::from_ref(&words[0]).addr();
            nbbs::Buddy::new(&words, units).unwrap().on(0).alloc_at(32 * leaf, 1).unwrap();
            for (level, address) in CHANGED.take().into_iter().enumerate() {
                let place = (address - first) / size_of::<Watched>();
                if places.len() == level {
                    places.push(Vec::new());
                }
                if !places[level].contains(&place) {
                    places[level].push(place);
                }
            }
        }
        Self { units, places }
    }

    /// Iterates over the words: level, number and place.
    pub fn words(&self) -> impl Iterator<Item = (usize, u64, usize)> + '_ {
        let levels = self.places.iter().enumerate();
        levels.flat_map(|(level, places)| {
            places.iter().zip(0..).map(move |(&place, idx)| (level, idx, place))
        })
    }

    pub fn read(&self, arena: &Arena) -> Content {
        let word = |level: usize, place: &usize| {
            let word = arena.words()[*place].load(Ordering::Relaxed);
            let codes = (0..slots_of(level)).map(|slot| word >> (2 * slot) & 0b11).collect();
            (codes, word >> BOUND_SHIFT & 63)
        };
        let level = |(level, places): (usize, &Vec<usize>)| {
            places.iter().map(|place| word(level, place)).collect()
        };
        Content { units: self.units, words: self.places.iter().enumerate().map(level).collect() }
    }
}

/// Returns the number of slots of a word of `level`.
pub fn slots_of(level: usize) -> u32 {
    if level == 0 { 32 } else { 16 }
}

/// Returns the number of units that one slot of a word of `level` stands for.
pub fn slot_units(level: usize) -> u64 {
    if level == 0 { 1 } else { 32 << (4 * (level - 1)) }
}

/// Returns the word with another code in one slot.
pub fn with_code(word: u64, slot: u32, code: u64) -> u64 {
    word & !(0b11 << (2 * slot)) | code << (2 * slot)
}

/// Returns an inner word with another bound.
pub fn with_bound(word: u64, bound: u64) -> u64 {
    word & !(63 << BOUND_SHIFT) | bound << BOUND_SHIFT
}

impl Content {
    fn codes(&self, level: usize, idx: u64) -> &Codes {
        &self.words[level][idx as usize].0
    }

    fn is_empty(&self, level: usize, idx: u64) -> bool {
        self.codes(level, idx).iter().all(|&code| code == FREE)
    }

    /// Returns the units of a slot that are inside the arena.
    fn area(&self, level: usize, idx: u64, slot: u32) -> std::ops::Range<u64> {
        let first = (idx * u64::from(slots_of(level)) + u64::from(slot)) * slot_units(level);
        first.min(self.units)..(first + slot_units(level)).min(self.units)
    }

    /// Returns where a unit is described: by the highest slot that is not split.
    fn spot(&self, unit: u64) -> (usize, u64, u32) {
        let at = |level: usize| {
            let slot = unit / slot_units(level);
            let slots = u64::from(slots_of(level));
            (level, slot / slots, (slot % slots) as u32)
        };
        let not_split = |&(level, idx, slot): &(usize, u64, u32)| {
            level == 0 || self.codes(level, idx)[slot as usize] != SPLIT
        };
        (0..self.words.len()).rev().map(at).find(not_split).expect("level 0 is not split")
    }

    /// Returns the order, plus 1, of the largest free block in a range of units.
    fn largest(&self, range: std::ops::Range<u64>) -> u64 {
        let is_free = |unit| {
            let (level, idx, slot) = self.spot(unit);
            self.codes(level, idx)[slot as usize] == FREE
        };
        let free: Vec<bool> = range.clone().map(is_free).collect();
        let fits = |order: &u32| {
            let size = 1_usize << order;
            let aligned = range.start.next_multiple_of(size as u64) - range.start;
            let mut blocks = free.get(aligned as usize..).unwrap_or(&[]).chunks_exact(size);
            blocks.any(|block| block.iter().all(|&free| free))
        };
        (0..40).take_while(fits).count() as u64
    }

    /// Iterates over the split slots of a word, and what is below each.
    fn below(&self, level: usize, idx: u64) -> impl Iterator<Item = (u32, u64)> + '_ {
        let slots = (0..slots_of(level)).filter(move |&slot| {
            level > 0
                && self.codes(level, idx)[slot as usize] == SPLIT
                && !self.area(level, idx, slot).is_empty()
        });
        slots.map(move |slot| (slot, 16 * idx + u64::from(slot)))
    }

    /// Returns how many split slots stand over an empty word, in a word and below.
    pub fn waiting_merges(&self, level: usize, idx: u64) -> u64 {
        let waits = |(_, below)| {
            if self.is_empty(level - 1, below) { 1 } else { self.waiting_merges(level - 1, below) }
        };
        self.below(level, idx).map(waits).sum()
    }

    /// Returns everything that breaks a rule.
    pub fn breaches(&self) -> Vec<Breach> {
        let mut found = Vec::new();
        for level in 0..self.words.len() {
            for idx in 0..self.words[level].len() as u64 {
                self.breaches_of_codes(level, idx, &mut found);
                if level > 0 {
                    self.dormant(level, idx, &mut found);
                }
            }
        }
        self.bounds(self.words.len() - 1, 0, &mut found);
        found
    }

    fn breaches_of_codes(&self, level: usize, idx: u64, found: &mut Vec<Breach>) {
        let codes = self.codes(level, idx);
        let mut start = 0;
        // A word consists of single free and split slots, and of heads with their rests.
        while start < codes.len() {
            let rests = codes[start + 1..].iter().take_while(|&&code| code == REST).count();
            let slot = start as u32;
            let len = match codes[start] {
                FREE => 1,
                SPLIT if level > 0 => 1,
                _ => 1 + rests,
            };
            let area = self.area(level, idx, slot);
            let last = self.area(level, idx, slot + len as u32 - 1);
            let is_whole = last.end - last.start == slot_units(level);
            let to_the_end = start + len == codes.len();
            let good = match codes[start] {
                FREE => true,
                SPLIT if level > 0 || rests == 0 => true,
                SPLIT => to_the_end,
                HEAD => is_whole && len < codes.len(),
                _ => is_whole && self.goes_on(area.start),
            };
            if codes[start] != FREE && area.is_empty() {
                found.push((Invariant::InsideArena, level, idx, slot));
            } else if !good {
                found.push((Invariant::WellFormed, level, idx, slot));
            }
            start += len;
        }
    }

    /// Returns whether a run may go on at `unit`, which begins a word or follows a split slot: the unit before belongs
    /// to a run that does not end in its word, or is its head, open or hidden.
    fn goes_on(&self, unit: u64) -> bool {
        let Some(before) = unit.checked_sub(1) else { return false };
        let (level, idx, slot) = self.spot(before);
        let codes = &self.codes(level, idx)[..=slot as usize];
        match codes.iter().rposition(|&code| code != REST) {
            None => true,
            Some(first) if first == slot as usize => {
                level == 0 && matches!(codes[first], SPLIT | HEAD)
            }
            Some(first) => codes[first] == SPLIT,
        }
    }

    fn dormant(&self, level: usize, idx: u64, found: &mut Vec<Breach>) {
        for slot in 0..slots_of(level) {
            let split = self.codes(level, idx)[slot as usize] == SPLIT;
            if split || self.area(level, idx, slot).is_empty() {
                continue;
            }
            let below = 16 * idx + u64::from(slot);
            let stray = self.codes(level - 1, below).iter().position(|&code| code != FREE);
            found.extend(stray.map(|at| (Invariant::Dormant, level - 1, below, at as u32)));
        }
    }

    fn bounds(&self, level: usize, idx: u64, found: &mut Vec<Breach>) {
        for (slot, below) in self.below(level, idx) {
            let waits =
                self.is_empty(level - 1, below) || self.waiting_merges(level - 1, below) > 0;
            let least = if waits { UNSETTLED } else { self.largest(self.area(level, idx, slot)) };
            if self.words[level][idx as usize].1 < least {
                found.push((Invariant::Bound, level, idx, slot));
            }
            self.bounds(level - 1, below, found);
        }
    }
}
