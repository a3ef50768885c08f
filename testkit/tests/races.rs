//! Allocators that are only broken when threads meet: the stress and the schedules must catch them.

use nbbs::sync::{Ordering, Word};
use testkit::program::Body;
use testkit::steered::{Schedule, Steered};
use testkit::{BackEnd, Load, Oracle, Violation, stress};

/// How a [`Bitmap`] changes its word.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// Compare and swap: sound.
    Swap,
    /// Loads and then stores: the textbook race.
    Store,
    /// Loads and then stores, behind a lock that others spin on: sound, but a stalled holder blocks all.
    Locked,
}

/// 64 units at most in one word, a bit for each that is in use; first fit.
struct Bitmap<W> {
    word: W,
    lock: W,
    units: u64,
    change: Change,
}

impl<W: Word + Default> Bitmap<W> {
    fn new(units: u64, change: Change) -> Self {
        Self { word: W::default(), lock: W::default(), units, change }
    }

    /// Replaces the word by what `next` makes of it, if it makes something.
    fn update<T>(&self, next: impl Fn(u64) -> Option<(u64, T)>) -> Option<T> {
        if self.change == Change::Locked {
            while self.lock.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {}
        }
        let result = loop {
            let old = self.word.load(Ordering::SeqCst);
            let Some((new, value)) = next(old) else {
                break None;
            };
            match self.change {
                Change::Swap => {
                    let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                    if self.word.compare_exchange(old, new, success, failure).is_err() {
                        continue;
                    }
                }
                Change::Store | Change::Locked => self.word.store(new, Ordering::SeqCst),
            }
            break Some(value);
        };
        if self.change == Change::Locked {
            self.lock.store(0, Ordering::Release);
        }
        result
    }
}

impl<W: Word + Default> BackEnd for Bitmap<W> {
    fn units(&self) -> u64 {
        self.units
    }

    fn max_order(&self) -> u32 {
        self.units.ilog2().min(5)
    }

    fn metadata_bytes(&self) -> usize {
        16
    }

    fn alloc(&self, _lane: usize, order: u32) -> Option<u64> {
        let area = (1 << (1 << order)) - 1;
        let is_free = |word: u64, index: &u64| word & area << index == 0;
        let places = || (0..self.units >> order).map(|place| place << order);
        self.update(|word| {
            places().find(|index| is_free(word, index)).map(|index| (word | area << index, index))
        })
    }

    fn free(&self, _lane: usize, index: u64, order: u32) -> Result<(), String> {
        let area = ((1 << (1 << order)) - 1) << index;
        let freed = self.update(|word| (word & area == area).then_some((word & !area, ())));
        freed.ok_or_else(|| "not allocated".to_string())
    }
}

/// A word between whose accesses another thread may run, as if the machine had more cores.
#[derive(Default)]
struct Slow(std::sync::atomic::AtomicU64);

impl Word for Slow {
    fn load(&self, order: Ordering) -> u64 {
        let value = self.0.load(order);
        if fastrand::u8(..) < 8 {
            std::thread::yield_now();
        }
        value
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

#[test]
fn the_stress_catches_a_race() {
    let sound = Bitmap::<Slow>::new(64, Change::Swap);
    stress(&sound, &Oracle::of(&sound), &Load::new(4, 10_000, 0..=3)).unwrap();

    let racy = Bitmap::<Slow>::new(64, Change::Store);
    let result = stress(&racy, &Oracle::of(&racy), &Load::new(4, 10_000, 0..=3));
    assert!(result.is_err(), "the race went unnoticed");
}

/// Runs two threads, each with two pairs of an allocation and a free, under schedules with so many
/// stalls until one goes wrong.
fn first_violation(change: Change, stalls: u32) -> Option<(u64, Violation)> {
    (0..500).find_map(|seed| {
        let bitmap = Bitmap::<Steered>::new(8, change);
        let oracle = Oracle::of(&bitmap);
        let body = |lane: usize| -> Body<'_> {
            let (bitmap, oracle) = (&bitmap, &oracle);
            Box::new(move || {
                for order in [1, 0] {
                    let Some(index) = bitmap.alloc(lane, order) else {
                        continue;
                    };
                    let block = oracle.take(lane, index, order)?;
                    oracle.give(block)?;
                    let freed = bitmap.free(lane, index, order);
                    freed.map_err(|reason| Violation::FreeRefused { block, reason })?;
                }
                Ok(())
            })
        };
        let schedule = Schedule { seed, stalls, steps: 20 };
        schedule.run(vec![body(0), body(1)]).err().map(|violation| (seed, violation))
    })
}

#[test]
fn a_schedule_catches_a_race_and_does_so_again() {
    assert_eq!(first_violation(Change::Swap, 2), None);
    assert_eq!(first_violation(Change::Store, 0), None, "without a stall there is no race");
    let found = first_violation(Change::Store, 2);
    assert!(found.is_some(), "the race went unnoticed");
    assert_eq!(first_violation(Change::Store, 2), found);
}

/// Each stall ends when the other thread is done, so only a thread that waits never ends.
#[test]
fn a_schedule_catches_waiting() {
    let found = first_violation(Change::Locked, 1);
    assert!(matches!(found, Some((_, Violation::Stuck { .. }))), "{found:?}");
}
