//! How much memory is idle, that is, free though it was in use since it was last zero, and when that is so much that it
//! should go back to where it came from.
//!
//! Idle is what was touched, by whole stretches, but for what is in use. So the region counts what is touched, and what
//! is handed out and comes back. A slab of which all slots are free counts as free. What caches keep is in use.

use core::ops::Range;

use nbbs::sync::Ordering;
#[cfg(test)]
use nbbs::sync::Word;

use crate::class::{Class, UNIT};
use crate::region::Region;
use crate::region::fresh::Fresh;
use crate::words::HeapWord;

/// The fewest idle bytes that should go back, in a region of which they are no more than a quarter.
const LEAST: u64 = 64 << 20;

/// What is next while slabs are returned of which no slot is in use.
const TRIMS: u64 = 1;

/// What is next with the first part after that.
const FIRST: u64 = 2;

/// The number of words for it.
pub const IDLE_WORDS: usize = 5;

/// How many bytes are idle and how many were touched, and how many must be idle at least before any should go back;
/// and, while they go back in parts, what is [next](Self::next), and how many bytes the parts before have left idle, or
/// how many slabs they have passed. These are hints.
#[derive(Clone, Copy, Debug)]
pub struct Idle<'a> {
    bytes: &'a HeapWord,
    touched: &'a HeapWord,
    bound: &'a HeapWord,
    /// 0 if no part is to follow, [`TRIMS`], or [`FIRST`] and the unit at which the next part begins.
    next: &'a HeapWord,
    left: &'a HeapWord,
    least: u64,
    is_counted: bool,
}

impl<'a> Idle<'a> {
    /// Creates it over words that are zero at first, for a region of so many bytes. Nothing is counted unless
    /// `is_counted`, which is the same in all copies of the region.
    pub fn new(words: &'a [HeapWord; IDLE_WORDS], region: u64, is_counted: bool) -> Self {
        let [bytes, touched, bound, next, left] = words;
        Self { bytes, touched, bound, next, left, least: LEAST.min(region / 4), is_counted }
    }

    /// Notes that so many bytes come back, and so many are handed out. Cost: a read-modify-write.
    #[inline]
    fn note(&self, back: u64, out: u64) {
        if self.is_counted && back != out {
            // Relaxed, here and below: only the numbers matter.
            self.bytes.fetch_add(back.wrapping_sub(out), Ordering::Relaxed);
        }
    }

    /// Notes that so many bytes are touched, or known to be zero again if they are less than none. Cost: two
    /// read-modify-writes, if there are any.
    #[inline]
    fn note_touched(&self, bytes: i64) {
        if self.is_counted && bytes != 0 {
            self.touched.fetch_add(bytes as u64, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Returns whether so much is idle that it should go back: half of what was touched, and a step more than the least
    /// since some went; or whether only a part of it has gone yet. Cost: four loads, and a store while it is less than
    /// ever since.
    #[inline]
    fn is_much(&self) -> bool {
        if !self.is_counted {
            return false;
        }
        if self.goes_back() {
            return true;
        }
        let (idle, touched) = self.bytes();
        let (bound, lower) = (self.bound.load(Ordering::Relaxed), idle + self.step(touched));
        if lower < bound {
            self.bound.store(lower, Ordering::Relaxed);
        }
        idle >= bound.max(self.least).max(touched / 2)
    }

    /// Returns whether only a part has gone back yet.
    fn goes_back(&self) -> bool {
        self.next.load(Ordering::Relaxed) != 0
    }

    /// Returns by how much more has to be idle before it is worth another look.
    fn step(&self, touched: u64) -> u64 {
        self.least.max(touched / 8)
    }

    /// Returns how many bytes are idle, and how many were touched.
    fn bytes(&self) -> (u64, u64) {
        // Where one change was seen and another was not, there may be less than none.
        let [idle, touched] = [self.bytes, self.touched].map(|word| word.load(Ordering::Relaxed));
        ((idle as i64).max(0) as u64, (touched as i64).max(0) as u64)
    }

    /// Notes that what could go back has gone, and so many bytes are idle still: these alone are no reason to look again.
    /// What others have freed meanwhile is.
    fn settle(&self, left: u64) {
        if self.is_counted {
            let (_, touched) = self.bytes();
            self.bound.store(left + self.step(touched), Ordering::Relaxed);
            self.left.store(0, Ordering::Relaxed);
            self.next.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether slabs are to be returned before the next part: where no part has gone, they are.
    fn is_to_trim(&self) -> bool {
        // Relaxed, here and below: who takes a part allocates what is free in it.
        let begun = self.next.compare_exchange(0, TRIMS, Ordering::Relaxed, Ordering::Relaxed);
        matches!(begun, Ok(_) | Err(TRIMS))
    }

    /// Notes that so many slabs were passed. The first part is next if there are no more, `is_done`, or if all of what
    /// was touched could have been passed twice: others become whole meanwhile.
    fn note_trimmed(&self, slabs: u64, is_done: bool) {
        let passed = slabs + self.left.fetch_add(slabs, Ordering::Relaxed);
        let (_, touched) = self.bytes();
        if is_done || passed > 2 * touched / UNIT as u64 {
            self.left.store(0, Ordering::Relaxed);
            // Fails if another has gone on.
            _ = self.next.compare_exchange(TRIMS, FIRST, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Takes a part of those units that may be other than zero, of a region of so many: the next that nobody has taken.
    /// Returns `None` if another takes one just now. Cost: a read-modify-write, and a load for each 4 MiB.
    fn take_part(&self, fresh: &Fresh<'_>, units: u64, all: u64) -> Option<Part> {
        let next = self.next.load(Ordering::Relaxed);
        let from = next.checked_sub(FIRST)?;
        let first = fresh.first_touched(from..all).unwrap_or(all);
        let end = all.min(first.saturating_add(units));
        let is_last = !fresh.is_touched(end..all);
        let then = if is_last { 0 } else { FIRST + end };
        let taken = self.next.compare_exchange(next, then, Ordering::Relaxed, Ordering::Relaxed);
        taken.ok().map(|_| Part { units: first..end, is_last })
    }

    /// Notes that a part has gone, but for so many bytes that are idle still.
    fn settle_part(&self, left: u64, is_last: bool) {
        let left = left + self.left.fetch_add(left, Ordering::Relaxed);
        if is_last {
            self.settle(left);
        }
    }
}

/// Units that are to be looked through, and whether all of the region has been after that.
#[derive(Debug)]
pub(super) struct Part {
    pub units: Range<u64>,
    pub is_last: bool,
}

impl Region<'_> {
    /// Records that units may be written to by the caller, who was handed them.
    pub(super) fn hand_out(&self, units: Range<u64>) {
        self.idle.note(0, bytes(units.end - units.start));
        self.idle.note_touched(bytes(self.fresh.touch(units)) as i64);
    }

    /// Records that so many bytes are free again.
    pub(super) fn come_back(&self, bytes: usize) {
        self.idle.note(bytes as u64, 0);
    }

    /// Records that a run, which the caller holds, has become longer or shorter.
    pub(super) fn note_resized(&self, old: &Range<u64>, new: Range<u64>) {
        self.idle.note(bytes(old.end - old.start), bytes(new.end - new.start));
        self.idle.note_touched(bytes(self.fresh.touch(new)) as i64);
    }

    /// Records that the caller has taken these slots of a slab, whose memory is not free any more if they are all.
    pub(super) fn note_taken(&self, class: Class, slots: u64) {
        if slots == class.all_slots() {
            self.idle.note(0, class.slab_bytes() as u64);
        }
    }

    /// Records that units, which nobody else holds, are zero.
    pub(super) fn renew_units(&self, units: Range<u64>) {
        self.idle.note_touched(-(bytes(self.fresh.renew(units)) as i64));
    }

    /// Records that units, which nobody else holds, may be other than zero.
    pub(super) fn touch_free(&self, units: Range<u64>) {
        self.idle.note_touched(bytes(self.fresh.touch(units)) as i64);
    }

    /// Records that any memory of the region may be other than zero.
    pub(super) fn touch_all(&self) {
        self.fresh.touch_all();
        let all = self.fresh.touched(0..self.buddy().units());
        self.idle.note_touched(bytes(all) as i64);
    }

    /// Returns how many of the units of a free piece are idle; 0 if that is not counted.
    pub(super) fn idle_units(&self, units: Range<u64>) -> u64 {
        if !self.idle.is_counted {
            return 0;
        }
        // Of a piece shorter than a stretch no more than itself.
        self.fresh.touched(units.clone()).min(units.end - units.start)
    }

    /// Records that what could go back has gone, and so many units are idle still.
    pub(super) fn settle_idle(&self, left: u64) {
        self.idle.settle(bytes(left));
    }

    /// Returns whether a part has gone back and another is to follow.
    pub(super) fn goes_back(&self) -> bool {
        self.idle.goes_back()
    }

    /// Returns slabs of which no slot is in use before the first part is taken, so many at most. Returns whether there
    /// were any. Adds to `refused` as [`trim`](Self::trim) does.
    pub(super) fn trim_next(&self, slabs: usize, lane: usize, refused: &mut u32) -> bool {
        if !self.idle.is_to_trim() {
            return false;
        }
        let mut left = slabs;
        self.trim_some(&mut left, lane, refused);
        let passed = (slabs - left) as u64;
        self.idle.note_trimmed(passed, left > 0);
        passed > 0
    }

    /// Takes a part of what is to go back, of at most so many units: see [`Idle::take_part`].
    pub(super) fn take_part(&self, units: u64) -> Option<Part> {
        self.idle.take_part(&self.fresh, units, self.buddy().units())
    }

    /// Records that what could go back of a part has gone, and so many of its units are idle still.
    pub(super) fn settle_part(&self, left: u64, is_last: bool) {
        self.idle.settle_part(bytes(left), is_last);
    }

    /// Returns whether so much is idle that it should go back: a hint. Cost: four loads.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle.is_much()
    }

    /// Returns how many bytes are idle, and how many were touched: hints.
    pub fn idle(&self) -> (u64, u64) {
        self.idle.bytes()
    }
}

fn bytes(units: u64) -> u64 {
    units * UNIT as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    #[test]
    fn half_of_what_was_touched_should_go_back() {
        let words: [HeapWord; IDLE_WORDS] = Default::default();
        let idle = Idle::new(&words, 1 << 30, true);
        let note = |back: i64, out: i64| idle.note((back * MIB) as u64, (out * MIB) as u64);
        // 300 MiB are handed out for the first time, and then half of them come back.
        note(0, 300);
        assert!(!idle.is_much());
        idle.note_touched(300 * MIB);
        assert_eq!(idle.bytes(), (0, 300 << 20));
        note(149, 0);
        assert!(!idle.is_much());
        note(1, 0);
        assert!(idle.is_much());
        // All but 20 go back.
        idle.note_touched(-130 * MIB);
        idle.settle(20 << 20);
        note(63, 0);
        assert!(!idle.is_much());
        note(1, 0);
        assert!(!idle.is_much(), "less than half");
        note(1, 0);
        assert!(idle.is_much());
        note(0, 300);
        assert!(!idle.is_much());
    }

    #[test]
    fn what_is_used_again_and_freed_again_should_go_back_again() {
        let words: [HeapWord; IDLE_WORDS] = Default::default();
        let idle = Idle::new(&words, 1 << 30, true);
        idle.note_touched(600 * MIB);
        assert!(idle.is_much());
        // Nearly all of it has gone, though no stretch is known to be zero.
        idle.settle(600 << 20);
        assert!(!idle.is_much());
        idle.note(0, 500 << 20);
        assert!(!idle.is_much());
        idle.note(500 << 20, 0);
        assert!(idle.is_much());
    }

    #[test]
    fn what_is_left_is_not_looked_at_again() {
        let words: [HeapWord; IDLE_WORDS] = Default::default();
        let idle = Idle::new(&words, 8 << 30, true);
        idle.note_touched(1600 * MIB);
        assert!(idle.is_much());
        idle.settle(1600 << 20);
        idle.note(199 << 20, 0);
        assert!(!idle.is_much());
        idle.note(1 << 20, 0);
        assert!(idle.is_much());
    }

    #[test]
    fn slabs_that_become_whole_again_and_again_do_not_keep_a_turn_from_its_parts() {
        let words: [HeapWord; IDLE_WORDS] = Default::default();
        let idle = Idle::new(&words, 1 << 30, true);
        idle.note_touched(8 << 10);
        for passed in (4..20).step_by(4) {
            assert!(idle.is_to_trim() && idle.goes_back(), "{passed}");
            idle.note_trimmed(4, false);
        }
        assert!(idle.is_to_trim());
        idle.note_trimmed(4, false);
        assert!(!idle.is_to_trim() && idle.goes_back());
    }

    #[test]
    fn a_small_region_gives_back_a_quarter_and_one_that_does_not_count_nothing() {
        for is_counted in [true, false] {
            let words: [HeapWord; IDLE_WORDS] = Default::default();
            let idle = Idle::new(&words, 4000, is_counted);
            idle.note(999, 0);
            assert!(!idle.is_much());
            idle.note(1, 0);
            assert_eq!(idle.is_much(), is_counted);
        }
    }
}
