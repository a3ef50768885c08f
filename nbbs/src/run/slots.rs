//! Changing the codes of contiguous slots of one word: the step of which runs and reservations are made.

use super::Runs;
use crate::lane::Path;
use crate::layout::shape::Shape;
use crate::sync::Word;
use crate::word::{self, span};

/// Contiguous slots in one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub level: usize,
    pub idx: u64,
    pub slot: u32,
    pub count: u32,
}

impl Slots {
    /// Returns the units from `unit` to the end of its leaf word.
    pub fn to_end_of_leaf(shape: Shape, unit: u64) -> Self {
        let (idx, slot) = shape.locate(0, unit);
        Self { level: 0, idx, slot, count: shape.slots(0) - slot }
    }

    /// Returns `count` slots from the same first slot on.
    pub fn with_count(self, count: u32) -> Self {
        Self { count, ..self }
    }

    /// Returns the codes of a closed run that fills them.
    pub fn closed(self) -> u64 {
        span::closed(self.slot, self.count)
    }

    /// The codes of rests in all of them.
    pub fn rests(self) -> u64 {
        span::rests(self.slot, self.count)
    }

    /// The reserved code in all of them.
    pub fn reserved(self) -> u64 {
        span::reserved_at(self.slot, self.count)
    }

    /// The codes of a hidden run that begins with them, at the end of a leaf word.
    pub fn hidden(self) -> u64 {
        span::hidden(self.slot, self.count)
    }

    /// The codes of an open run that begins with them, at the end of a leaf word.
    pub fn open(self) -> u64 {
        span::open(self.slot, self.count)
    }
}

impl<W: Word> Runs<'_, W> {
    /// Writes `codes` into free slots and climbs. Returns `false` if they were not free, or somebody holds the area.
    pub(super) fn claim_slots(self, slots: Slots, codes: u64) -> bool {
        self.take_slots(slots, codes) && self.climb_from(slots, codes)
    }

    /// Writes `codes` into free slots, for a climb to follow. Returns `false` if they were not free.
    pub(super) fn take_slots(self, slots: Slots, codes: u64) -> bool {
        let Slots { level, idx, slot, count } = slots;
        let taken = self.tree().fill(level, idx, |found| {
            (found & span::bits(slot, count) == 0).then_some((found | codes, ()))
        });
        self.lane().noted(level, idx, taken).is_some()
    }

    /// Climbs from `codes` that were written into slots. Returns `false` if somebody holds the area; the slots are then
    /// cleared.
    pub(super) fn climb_from(self, slots: Slots, codes: u64) -> bool {
        let met_nobody = self.lane().climb(Path::Claims, slots.level, slots.idx);
        if !met_nobody {
            self.clear_own(slots, codes);
        }
        met_nobody
    }

    /// Clears `codes` from slots, or, if somebody has wrongly released or freed some, what is left of a hidden run, and
    /// updates the words above. Returns whether all were there. Behind rests there may be others: those of a run that is
    /// just then changing, and whose head somebody has wrongly freed. A head with others behind it is another's.
    pub(super) fn clear_own(self, slots: Slots, codes: u64) -> bool {
        let Slots { level, idx, slot, count } = slots;
        let bits = span::bits(slot, count);
        let cleared = self.tree().rewrite(level, idx, |found| {
            let is_whole = if codes == slots.rests() {
                found & bits == codes
            } else {
                span::is_there(found, slot, count, codes)
            };
            let left = if is_whole { bits } else { left_of(codes, found) };
            (left != 0).then_some((found & !left, is_whole))
        });
        match self.lane().noted(level, idx, cleared) {
            Some((new, true)) => {
                self.tree().merge_or_publish(level, idx, new);
                true
            }
            // The other caller may have been ahead of the climb: what that split lies below a block now.
            _ => {
                self.tree().merge(level, idx);
                false
            }
        }
    }

    /// Clears `codes` from slots and updates the words above. Returns `false` if the slots do not hold them.
    pub(super) fn clear_slots(self, slots: Slots, codes: u64) -> bool {
        slots.count > 0 && self.recode(slots, codes, 0)
    }

    /// Replaces the codes `from` of slots by `to`, and updates the words above if some came free. Returns `false` if
    /// the slots do not hold `from`.
    pub(super) fn recode(self, slots: Slots, from: u64, to: u64) -> bool {
        let Slots { level, idx, slot, count } = slots;
        let bits = span::bits(slot, count);
        let change =
            |codes| span::is_there(codes, slot, count, from).then_some((codes & !bits | to, ()));
        let changed = self.tree().rewrite(level, idx, change);
        let Some((new, ())) = self.lane().noted(level, idx, changed) else { return false };
        if word::free_slots(to) & !word::free_slots(from) & bits != 0 {
            self.tree().merge_or_publish(level, idx, new);
        }
        true
    }
}

/// Returns the bits of what is left in a word of the codes of a hidden run, if somebody has wrongly released or freed some.
/// What was granted there since shows other codes, except a reservation. Of other `codes` none are returned: what looks
/// like a part of them may be somebody else's.
pub(super) fn left_of(codes: u64, found: u64) -> u64 {
    let (reserved, head) = (span::reserved(codes), span::heads(codes));
    if reserved == 0 || head == 0 {
        return 0;
    }
    word::both_bits(span::reserved(found) & reserved | span::heads(found) & head)
}
