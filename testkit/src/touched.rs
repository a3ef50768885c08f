//! Records which cache lines an operation touches: lanes can only meet on a line that one writes and another touches.
//!
//! Operations that touch none of each other's lines scale on any machine with caches (A. Clements et al., "The Scalable
//! Commutativity Rule", SOSP 2013). So this check needs only one thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::hooked::{Hook, Hooked};

/// The bytes of a line.
const LINE: usize = 64;

thread_local!(static NOTES: RefCell<Touches> = RefCell::default());

/// The lines that were touched, by number.
#[derive(Clone, Debug, Default)]
struct Touches {
    read: BTreeSet<usize>,
    /// The lines that were written, and how often; a compare-and-swap writes, won or lost.
    written: BTreeMap<usize, u64>,
}

impl Touches {
    /// Returns what this thread touches in `work`.
    fn of(work: impl FnOnce()) -> Self {
        NOTES.take();
        work();
        NOTES.take()
    }

    fn add(&mut self, other: Self) {
        self.read.extend(other.read);
        for (line, times) in other.written {
            *self.written.entry(line).or_default() += times;
        }
    }

    fn has(&self, line: usize) -> bool {
        self.read.contains(&line) || self.written.contains_key(&line)
    }
}

/// The hook that notes accesses to words.
#[derive(Debug, Default)]
pub struct Touching;

impl Touching {
    fn note_write(at: usize) {
        NOTES.with_borrow_mut(|notes| *notes.written.entry(at / LINE).or_default() += 1);
    }
}

impl Hook for Touching {
    fn before_access() {}

    fn before_load(at: usize) {
        NOTES.with_borrow_mut(|notes| notes.read.insert(at / LINE));
    }

    fn before_store(at: usize) {
        Self::note_write(at);
    }

    fn before_swap(at: usize) {
        Self::note_write(at);
    }
}

/// A metadata word that notes accesses to it. It only works on one thread, as the notes belong to that thread.
///
/// ```
/// use nbbs::sync::{Ordering, Word};
/// use testkit::touched::{Touched, Lanes};
///
/// let words: Vec<Touched> = (0..64).map(Touched::from).collect();
/// let own = Lanes::in_turn(4, 1, 3, |lane| words[16 * lane].store(1, Ordering::Relaxed));
/// assert_eq!((own.lines_written(), own.shared_writes()), (4, 0));
/// let one = Lanes::in_turn(4, 1, 3, |_| words[0].store(1, Ordering::Relaxed));
/// assert_eq!((one.lines_written(), one.shared_writes()), (1, 12));
/// ```
pub type Touched = Hooked<Touching>;

/// What each of several lanes touched.
#[derive(Debug)]
pub struct Lanes(Vec<Touches>);

impl Lanes {
    /// Runs `step` on each lane in turn: first some rounds to reach the steady state, then the rounds that count.
    pub fn in_turn(
        lanes: usize,
        warm_up: usize,
        rounds: usize,
        mut step: impl FnMut(usize),
    ) -> Self {
        (0..warm_up).for_each(|_| (0..lanes).for_each(&mut step));
        let mut all = vec![Touches::default(); lanes];
        for _ in 0..rounds {
            for (lane, touches) in all.iter_mut().enumerate() {
                touches.add(Touches::of(|| step(lane)));
            }
        }
        Self(all)
    }

    /// Returns how many lines were written.
    #[must_use]
    pub fn lines_written(&self) -> usize {
        let lines: BTreeSet<_> = self.0.iter().flat_map(|lane| lane.written.keys()).collect();
        lines.len()
    }

    /// Returns how often a lane wrote a line that another one touched.
    #[must_use]
    pub fn shared_writes(&self) -> u64 {
        let of_lane = |(number, lane): (usize, &Touches)| {
            let others =
                |line| self.0.iter().enumerate().any(|(other, it)| other != number && it.has(line));
            let shared = lane.written.iter().filter(|&(&line, _)| others(line));
            shared.map(|(_, times)| times).sum::<u64>()
        };
        self.0.iter().enumerate().map(of_lane).sum()
    }
}
