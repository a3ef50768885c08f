//! When the memory of whole slabs goes back before a request is refused: a program that is done with one size, and goes
//! on to another, would otherwise keep the memory of both.
//!
//! A look for whole slabs passes all slabs of their classes that have free slots. So it waits until slabs of enough
//! bytes have become whole since the last one: of a quarter of the bytes that it passed then in vain, and of 4 MiB.

use nbbs::sync::Ordering;
#[cfg(test)]
use nbbs::sync::Word;

use crate::words::HeapWord;

/// The fewest bytes of slabs that become whole before a look for them is due: few where tests choose what happens.
const LEAST: u64 = if cfg!(test) { 1 << 16 } else { 4 << 20 };

/// The number of words for it.
pub const SWEEP_WORDS: usize = 2;

/// How much has become whole since the last look, and how much more than [`LEAST`] makes one due. Both are hints.
#[derive(Clone, Copy, Debug)]
pub struct Sweeps<'a> {
    whole: &'a HeapWord,
    more: &'a HeapWord,
}

impl<'a> Sweeps<'a> {
    /// Creates it over two words, zero at first.
    pub fn new(words: &'a [HeapWord; SWEEP_WORDS]) -> Self {
        let [whole, more] = words;
        Self { whole, more }
    }

    /// Notes that a slab of so many bytes has become whole. Cost: a read-modify-write.
    pub fn note(&self, bytes: usize) {
        // Relaxed, here and below: only the numbers matter, and an exchange that fails is not tried again: others count.
        let seen = self.whole.load(Ordering::Relaxed);
        let now = seen.saturating_add(bytes as u64);
        _ = self.whole.compare_exchange(seen, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns whether a look is due, which is then the caller's to take. Cost: two loads, if not.
    #[inline]
    pub fn is_due(&self) -> bool {
        let seen = self.whole.load(Ordering::Relaxed);
        seen >= LEAST.saturating_add(self.more.load(Ordering::Relaxed))
            && self.whole.compare_exchange(seen, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that a look begins. Cost: a store.
    pub fn begin(&self) {
        self.whole.store(0, Ordering::Relaxed);
    }

    /// Notes that a look has passed slabs of so many bytes, of which so many stay.
    pub fn passed(&self, stay: usize) {
        self.more.store((stay as u64 / 4).saturating_sub(LEAST), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_after_as_much_as_it_costs() {
        let words: [HeapWord; SWEEP_WORDS] = Default::default();
        let sweeps = Sweeps::new(&words);
        let part = LEAST as usize / 4;
        let note = |times| (0..times).for_each(|_| sweeps.note(part));
        note(3);
        assert!(!sweeps.is_due());
        note(1);
        assert!(sweeps.is_due() && !sweeps.is_due());
        // A look that leaves ten times as much in vain as the least, or as much, or nothing.
        for (stay, due) in [(40, 10), (4, 4), (0, 4)] {
            sweeps.passed(stay * part);
            note(due - 1);
            assert!(!sweeps.is_due(), "{stay} parts");
            note(1);
            assert!(sweeps.is_due(), "{stay} parts");
        }
        note(4);
        sweeps.begin();
        assert!(!sweeps.is_due());
    }
}
