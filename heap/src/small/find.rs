//! Finding the first place for a run.

use core::ops::Range;

use super::bounds::{self, MOST};
use super::codes;
use super::row::Row;
use super::word::Word;

/// The run that a search looks for.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub units: usize,
    /// The power of two of which the first unit must be a multiple, when `offset` is added.
    pub align: usize,
    pub offset: usize,
}

impl Wanted {
    /// Returns where the run can begin in free units.
    fn fit(&self, piece: &Range<usize>) -> Option<usize> {
        let start =
            ((piece.start + self.offset + self.align - 1) & !(self.align - 1)) - self.offset;
        (start <= piece.end && piece.end - start >= self.units).then_some(start)
    }
}

impl<W: Word> Row<'_, W> {
    /// The units of a stretch.
    const STRETCH: usize = bounds::WORDS * W::UNITS as usize;

    /// Claims a run in the first place that has room for it, and returns its first unit. Returns `None` if each place
    /// was in use when it was looked at. Beside others it may miss a place in front, as bounds may.
    ///
    /// Cost: at most two loads for each word and each free piece of the row, and two for each stretch. Claiming takes two
    /// loads and a read-modify-write for each word of the run, and one more of them if it has several. If what is left of
    /// the piece begins in another stretch, a [note](Self::note_free) follows. A claim that meets another's is tried
    /// elsewhere.
    pub fn alloc(&self, wanted: Wanted) -> Option<usize> {
        if wanted.units > self.units {
            return None;
        }
        self.search(wanted, false).or_else(|| self.search(wanted, true))
    }

    /// [Allocates](Self::alloc) where the bounds allow it, or anywhere.
    fn search(&self, wanted: Wanted, anywhere: bool) -> Option<usize> {
        // What is free, up to where the search has come; and the longest piece that begins in the stretch that it looks
        // through, if it has seen that from the beginning.
        let (mut piece, mut longest) = (0..0, None);
        while piece.end < self.units {
            let stretch = piece.end / Self::STRETCH;
            if piece.is_empty() && piece.end.is_multiple_of(Self::STRETCH) {
                self.note_longest(stretch.wrapping_sub(1), longest);
                let may_fit = anywhere || self.bounds.allows(stretch, wanted.units);
                longest = may_fit.then_some(0);
                if longest.is_none() {
                    let behind = piece.end + Self::STRETCH;
                    piece = behind..behind;
                    continue;
                }
            }
            let (free, in_use) = self.look(piece.end);
            piece.end = self.units.min(piece.end + free);
            if let Some(unit) = wanted.fit(&piece) {
                let end = unit + wanted.units;
                let Err(taken) = self.claim(unit, end) else {
                    if anywhere {
                        // Perhaps its bound was too low.
                        self.bounds.set(piece.start / Self::STRETCH, MOST);
                    }
                    self.note_claimed(piece.start, end);
                    return Some(unit);
                };
                (piece, longest) = (taken + 1..taken + 1, None);
                continue;
            }
            if in_use == 0 {
                continue;
            }
            // The piece ends here.
            longest = longest.map(|longest| longest.max(piece.len()));
            let begun = piece.start / Self::STRETCH;
            if begun < stretch {
                self.note_longest(begun, longest);
                longest = Some(0);
            }
            let behind = piece.end + in_use;
            piece = behind..behind;
        }
        let longest = longest.map(|longest| longest.max(piece.len()));
        self.note_longest(piece.start.min(self.units - 1) / Self::STRETCH, longest);
        None
    }

    /// Notes the longest piece that begins in a stretch, if that is known.
    fn note_longest(&self, stretch: usize, longest: Option<usize>) {
        if let Some(units) = longest {
            self.bounds.set(stretch, units);
        }
    }

    /// Notes that a free piece that began at `start` begins at `end` now, perhaps in another stretch.
    pub(super) fn note_claimed(&self, start: usize, end: usize) {
        if start / Self::STRETCH < end / Self::STRETCH {
            self.note_free(end..end);
        }
    }

    /// Notes that `units`, which have been freed, are free.
    ///
    /// Cost: a load for each word of the free pieces beside them, until they make [`MOST`] units.
    pub(super) fn note_free(&self, units: Range<usize>) {
        let start = self.piece_start(units.start);
        let stretch = start / Self::STRETCH;
        let mut end = units.end;
        while end < self.units && end - start < MOST && !self.bounds.allows(stretch, MOST) {
            let (free, in_use) = self.look(end);
            end = self.units.min(end + free);
            if in_use > 0 {
                break;
            }
        }
        self.bounds.raise(stretch, end - start);
    }

    /// Returns where the free piece begins that ends at `end`, or something nearer: a piece so long that its stretch has
    /// no bound need not be known.
    fn piece_start(&self, end: usize) -> usize {
        let mut start = end;
        while start > 0 && end - start < MOST {
            let (idx, at) = Self::place(start - 1);
            let first = codes::start(codes::free(self.read(idx)), at + 1);
            start -= (at + 1 - first) as usize;
            if first > 0 {
                break;
            }
        }
        start
    }
}
