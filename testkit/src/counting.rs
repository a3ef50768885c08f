//! Counts the accesses to words that a thread makes.

use std::cell::Cell;

use crate::hooked::{Hook, Hooked};

thread_local!(static COUNTS: Cell<Counts> = const { Cell::new(Counts { loads: 0, stores: 0, swaps: 0 }) });

/// How often words were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Compare-and-swaps, won or lost.
    pub swaps: u64,
}

/// The hook that counts accesses to words.
#[derive(Debug, Default)]
pub struct Counting;

impl Counting {
    fn count(change: impl FnOnce(&mut Counts)) {
        let mut counts = COUNTS.get();
        change(&mut counts);
        COUNTS.set(counts);
    }
}

impl Hook for Counting {
    fn before_access() {}

    fn before_load(_at: usize) {
        Self::count(|counts| counts.loads += 1);
    }

    fn before_store(_at: usize) {
        Self::count(|counts| counts.stores += 1);
    }

    fn before_swap(_at: usize) {
        Self::count(|counts| counts.swaps += 1);
    }
}

/// A metadata word whose accesses are counted.
pub type Counted = Hooked<Counting>;

/// Returns what `work` returns, and how often this thread accesses words in it.
///
/// ```
/// use nbbs::sync::{Ordering, Word};
/// use testkit::counting::{Counted, Counts, count};
///
/// let word = Counted::from(5);
/// let loads = count(|| word.load(Ordering::Relaxed));
/// assert_eq!(loads, (5, Counts { loads: 1, ..Counts::default() }));
/// ```
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Counts) {
    COUNTS.take();
    let result = work();
    (result, COUNTS.take())
}
