//! A row of units: runs of any length, and two bits for each unit, which only its holder changes.
//!
//! A run is a head and its rests. **Every rest belongs to the run of the unit before it, at every instant**: runs are
//! claimed, and grow, from the head on; they shrink, and are freed, from the end. So a run ends where its rests end.
//! Each step is one compare-and-swap, from free units to somebody's or from its holder's to free ones: that is all that
//! keeps a unit from having two owners. Nothing is split or merged.
//!
//! A run that reaches the end of its word, or is to grow beyond it, is *held* while it changes: the compare-and-swap
//! that makes its head a held one can be won by one operation only. All others find no run there and are refused, as
//! are those that free a run while it is claimed. A thread that stops between two steps keeps the run that it was
//! changing, and nobody waits.
//!
//! What is called for a run that is not the caller's is refused. If the run becomes one of another length at the same
//! time, it may be held for a moment, in which its holder's free is refused, too, and the run is lost.

use core::sync::atomic::Ordering;

use super::bounds::Bounds;
use super::codes;
use super::word::Word;

/// The units of a heap, and the words and bounds beside them.
pub struct Row<'a, W> {
    pub words: &'a [W],
    pub bounds: Bounds<'a>,
    /// How many units there are: no more than the words have.
    pub units: usize,
}

impl<W> Clone for Row<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Row<'_, W> {}

/// Contiguous units in one word.
#[derive(Clone, Copy)]
struct Part {
    idx: usize,
    at: u32,
    count: u32,
}

impl<W: Word> Row<'_, W> {
    /// Returns how many words this many units take.
    pub const fn words_for(units: usize) -> usize {
        units.div_ceil(W::UNITS as usize)
    }

    /// Returns the word of a unit, and which of its units that is.
    pub fn place(unit: usize) -> (usize, u32) {
        (unit / W::UNITS as usize, (unit % W::UNITS as usize) as u32)
    }

    /// Returns what a word holds. One that is not there is in use.
    pub fn read(&self, idx: usize) -> usize {
        // Relaxed: a claim or a free follows, whose compare-and-swap acquires, or nothing is done.
        self.words.get(idx).map_or(usize::MAX, |word| word.load(Ordering::Relaxed))
    }

    /// Returns the units from `start` to `end`, or to the end of the word.
    fn part(start: usize, end: usize) -> Part {
        let (idx, at) = Self::place(start);
        let count = (W::UNITS - at).min((end - start).try_into().unwrap_or(W::UNITS));
        Part { idx, at, count }
    }

    /// Replaces the codes `from` of some units by `to`: the only write. Returns `false` if they do not hold `from`, or a
    /// rest follows.
    ///
    /// AcqRel: a claim acquires what the last holder of each unit released here by its free.
    fn recode(&self, part: Part, from: usize, to: usize) -> bool {
        let Part { idx, at, count } = part;
        let Some(word) = self.words.get(idx) else { return false };
        let mut old = self.read(idx);
        while codes::is_there(old, at, count, from) {
            let new = old & !codes::bits(at, count) | to;
            match word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => old = found,
            }
        }
        false
    }

    /// Claims units `start..end` as a run. `Err` is the first unit of a word that could not be had; then none is held.
    pub fn claim(&self, start: usize, end: usize) -> Result<(), usize> {
        let part = Self::part(start, end);
        let Part { at, count, .. } = part;
        let behind = start + count as usize;
        if behind == end {
            return if self.recode(part, 0, codes::run(at, count)) { Ok(()) } else { Err(start) };
        }
        // Held until everything is claimed: nobody may free what is not yet allocated.
        if !self.recode(part, 0, codes::held(at, count)) {
            return Err(start);
        }
        let claimed = self.extend(behind, end);
        let head = if claimed.is_ok() { codes::run(at, count) } else { 0 };
        self.recode(part, codes::held(at, count), head);
        claimed
    }

    /// Claims units `start..end` as rests of the run in front of them. `Err` is as in [`claim`](Self::claim).
    fn extend(&self, start: usize, end: usize) -> Result<(), usize> {
        let mut unit = start;
        while unit < end {
            let part = Self::part(unit, end);
            if !self.recode(part, 0, codes::rests(part.at, part.count)) {
                self.clear(start, unit);
                return Err(unit);
            }
            unit += part.count as usize;
        }
        Ok(())
    }

    /// Frees units `start..end`, the last rests of a run, from the end.
    fn clear(&self, start: usize, mut end: usize) {
        while end > start {
            let first = start.max((end - 1) / W::UNITS as usize * W::UNITS as usize);
            let part = Self::part(first, end);
            self.recode(part, codes::rests(part.at, part.count), 0);
            end = first;
        }
    }

    /// Takes hold of the run of `units` units at `start`, and returns the part of it in its first word. Returns `None`
    /// if there is no such run; then nothing has changed.
    fn hold(&self, start: usize, units: usize) -> Option<Part> {
        let part = Self::part(start, start + units);
        let (run, held) = (codes::run(part.at, part.count), codes::held(part.at, part.count));
        let has_head = codes::is_there(self.read(part.idx), part.at, part.count, run);
        let has_end = || self.rests_end_at(start + part.count as usize, start + units);
        if !has_head || !has_end() || !self.recode(part, run, held) {
            return None;
        }
        // Until now it could become another run, as the caller may be wrong about it.
        if has_end() {
            return Some(part);
        }
        self.recode(part, held, run);
        None
    }

    /// Returns whether the rests from `unit` on end at `end`. If `unit` is less, it is the first of a word.
    fn rests_end_at(&self, mut unit: usize, end: usize) -> bool {
        while unit < end {
            let part = Self::part(unit, end);
            if codes::rests_from(self.read(part.idx), 0) < part.count {
                return false;
            }
            unit += part.count as usize;
        }
        let (idx, at) = Self::place(end);
        codes::rests_from(self.read(idx), at) == 0
    }

    /// Returns whether units `start..start + units` are in the row.
    fn contains(&self, start: usize, units: usize) -> bool {
        units > 0 && start < self.units && units <= self.units - start
    }

    /// Keeps the first `to` units of the run of `from` units at `start`, and frees the others: all of them if `to` is
    /// 0. Returns `false` if there is no such run, or `to` is not less; then nothing has changed.
    ///
    /// Cost: a read-modify-write for each word of what is freed; if the run reaches the end of its word, two for that
    /// word, and two or three loads for each; and a [note](Self::note_free).
    pub fn cut(&self, start: usize, from: usize, to: usize) -> bool {
        if !self.contains(start, from) || to >= from {
            return false;
        }
        let part = Self::part(start, start + from);
        let Part { at, count, .. } = part;
        let is_cut = if at + count < W::UNITS {
            self.recode(part, codes::run(at, count), codes::run(at, to as u32))
        } else if let Some(part) = self.hold(start, from) {
            let kept = count.min(to.try_into().unwrap_or(count));
            self.clear(start + to.max(count as usize), start + from);
            self.recode(part, codes::held(at, count), codes::run(at, kept))
        } else {
            false
        };
        if is_cut {
            self.note_free(start + to..start + from);
        }
        is_cut
    }

    /// Makes the run of `from` units at `start` one of `to` units. Returns `false` if there is no such run, `to` is not
    /// more, or a unit behind it is in use; then nothing has changed.
    ///
    /// Cost: a read-modify-write and a load for each word of the new units; if the run then reaches beyond its word, two
    /// more, and two loads for each word that it has; and a [note](Self::note_free) if what is left of the free piece
    /// begins in another stretch.
    pub fn grow(&self, start: usize, from: usize, to: usize) -> bool {
        if !self.contains(start, to) || from == 0 || to <= from {
            return false;
        }
        let (idx, at) = Self::place(start);
        let is_grown = if to <= (W::UNITS - at) as usize {
            let part = Part { idx, at, count: to as u32 };
            self.recode(part, codes::run(at, from as u32), codes::run(at, to as u32))
        } else {
            self.look(start + from).0 > 0 && self.grow_beyond(start, from, to)
        };
        if is_grown {
            self.note_claimed(start + from, start + to);
        }
        is_grown
    }

    /// [Grows](Self::grow) a run beyond its first word.
    fn grow_beyond(&self, start: usize, from: usize, to: usize) -> bool {
        let Some(part) = self.hold(start, from) else { return false };
        let is_grown = self.extend(start + from, start + to).is_ok();
        let part = if is_grown { Self::part(start, start + to) } else { part };
        self.recode(part, codes::held(part.at, part.count), codes::run(part.at, part.count));
        is_grown
    }

    /// Returns how many units are free from `unit` on, in its word, and how many in use behind them. Cost: a load.
    pub fn look(&self, unit: usize) -> (usize, usize) {
        let (idx, at) = Self::place(unit);
        let word = self.read(idx);
        let free = codes::length(codes::free(word), at).min(W::UNITS - at);
        let in_use = codes::length(codes::in_use(word), at + free).min(W::UNITS - at - free);
        (free as usize, in_use as usize)
    }

    /// Returns how many units are free. Cost: a load for each word.
    pub fn free_units(&self) -> usize {
        let in_use = |idx| (codes::in_use(self.read(idx)).count_ones()) as usize;
        self.units - (0..self.words.len()).map(in_use).sum::<usize>()
    }
}
