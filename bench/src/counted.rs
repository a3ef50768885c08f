//! Metadata words that count the operations on them.

use std::cell::Cell;
use std::ops::{Add, Sub};
use std::sync::atomic::AtomicU64;

use baselines::Pause;
use nbbs::sync::{Ordering, Word};
use testkit::BackEnd;

/// The operations on [`Counted`] words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compare-and-swaps, won or lost.
    pub steps: u64,
    /// Compare-and-swaps that were lost.
    pub lost: u64,
    /// Cache lines of 64 bytes that operations wrote to, or tried to: a lost compare-and-swap takes its line from other
    /// processors, too. A line counts once per operation.
    pub lines: u64,
    /// Loads.
    pub loads: u64,
    /// Loads of the operation with the most loads, among those of a [`ByOperation`].
    pub worst_loads: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            lost: self.lost + other.lost,
            lines: self.lines + other.lines,
            loads: self.loads + other.loads,
            worst_loads: self.worst_loads.max(other.worst_loads),
        }
    }
}

/// `worst_loads` has no difference: [`begin`] resets it.
impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            steps: self.steps - other.steps,
            lost: self.lost - other.lost,
            lines: self.lines - other.lines,
            loads: self.loads - other.loads,
            worst_loads: self.worst_loads,
        }
    }
}

const NOTHING: Counts = Counts { steps: 0, lost: 0, lines: 0, loads: 0, worst_loads: 0 };

/// How many lines of an operation are remembered. If there are more, the oldest count again.
const LINES: usize = 16;

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(NOTHING) };
    static WRITTEN: Cell<[usize; LINES]> = const { Cell::new([0; LINES]) };
}

/// A metadata word; an operation on it counts for the thread that does it.
#[derive(Debug, Default)]
pub struct Counted(AtomicU64);

impl Counted {
    /// Counts a write, and the line unless the operation has written to it before.
    fn write(&self, steps: u64, lost: u64) {
        let line = std::ptr::from_ref(self).addr() / 64;
        let mut written = WRITTEN.get();
        let lines = u64::from(!written.contains(&line));
        if lines == 1 {
            written.rotate_right(1);
            written[0] = line;
            WRITTEN.set(written);
        }
        COUNTS.set(COUNTS.get() + Counts { steps, lost, lines, ..NOTHING });
    }
}

impl From<u64> for Counted {
    fn from(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}

impl Word for Counted {
    fn load(&self, order: Ordering) -> u64 {
        COUNTS.set(COUNTS.get() + Counts { loads: 1, ..NOTHING });
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.write(0, 0);
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let result = self.0.compare_exchange(current, new, success, failure);
        self.write(1, u64::from(result.is_err()));
        result
    }
}

impl Pause for Counted {}

/// Begins an operation of this thread: lines that it wrote to before count again.
pub fn begin_operation() {
    WRITTEN.set([0; LINES]);
}

/// Runs `work` as one operation of this thread.
fn operation<R>(work: impl FnOnce() -> R) -> R {
    begin_operation();
    let before = so_far();
    let result = work();
    let worst_loads = (so_far() - before).loads;
    COUNTS.set(COUNTS.get() + Counts { worst_loads, ..NOTHING });
    result
}

/// Begins to count for this thread: returns the counts so far, and forgets its worst operation.
pub fn begin() -> Counts {
    COUNTS.set(Counts { worst_loads: 0, ..COUNTS.get() });
    so_far()
}

/// Returns the counts of this thread so far.
pub fn so_far() -> Counts {
    COUNTS.get()
}

/// Runs `work`, one operation or several, and returns what this thread did meanwhile.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Counts) {
    let before = begin();
    begin_operation();
    let result = work();
    (result, so_far() - before)
}

/// A back-end that marks the beginning of each operation.
pub struct ByOperation<'a>(pub &'a dyn BackEnd);

impl BackEnd for ByOperation<'_> {
    fn units(&self) -> u64 {
        self.0.units()
    }

    fn max_order(&self) -> u32 {
        self.0.max_order()
    }

    fn metadata_bytes(&self) -> usize {
        self.0.metadata_bytes()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        operation(|| self.0.alloc(lane, order))
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        operation(|| self.0.free(lane, index, order))
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Counts, NOTHING, begin_operation, count, operation};
    use nbbs::sync::{Ordering::SeqCst, Word};

    #[test]
    fn counts_loads_and_swaps_won_and_lost() {
        let word = Counted::from(1);
        let ((), counts) = count(|| {
            word.store(2, SeqCst);
            assert_eq!(word.load(SeqCst), 2);
            assert_eq!(word.compare_exchange(2, 3, SeqCst, SeqCst), Ok(2));
            assert_eq!(word.compare_exchange(2, 4, SeqCst, SeqCst), Err(3));
        });
        assert_eq!(counts, Counts { steps: 2, lost: 1, lines: 1, loads: 1, worst_loads: 0 });
    }

    #[test]
    fn knows_the_loads_of_the_worst_operation_since_it_began_to_count() {
        let word = Counted::from(1);
        let load = |times| operation(|| (0..times).for_each(|_| _ = word.load(SeqCst)));
        load(9);
        let ((), counts) = count(|| [2, 5, 3].into_iter().for_each(load));
        assert_eq!(counts, Counts { loads: 10, worst_loads: 5, ..NOTHING });
    }

    #[test]
    fn counts_a_line_once_an_operation() {
        let words = crate::lines::zeroed::<Counted>(24);
        let write = |place: usize| words.words()[place].store(1, SeqCst);
        let ((), counts) = count(|| {
            [0, 7, 8, 0, 9].into_iter().for_each(write);
            begin_operation();
            [8, 16, 23, 15].into_iter().for_each(write);
        });
        assert_eq!(counts, Counts { lines: 4, ..NOTHING });
    }
}
