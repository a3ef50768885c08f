//! Races on rows under loom, in every execution of two threads with two or three preemptions, and of three with one:
//! no unit has two holders, what is done with a unit happens before what its next holder does, and nothing is lost.

use core::ops::Range;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use testkit_loom::{Raced, model};

use super::super::find::Wanted;
use super::super::row::Row;
use super::super::word::Word;
use super::Memory;

/// A word of two units.
type Pair = Raced<AtomicUsize>;

impl Word for Pair {
    const UNITS: u32 = 2;

    fn load(&self, order: Ordering) -> usize {
        self.turn().load(order)
    }

    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        self.turn().compare_exchange(current, new, success, failure)
    }
}

/// A row, and memory that only the holder of a unit may touch.
struct Field {
    memory: Memory<Pair>,
    cells: Vec<UnsafeCell<u64>>,
}

impl Field {
    fn new(units: usize) -> Self {
        let cells = (0..units).map(|_| UnsafeCell::new(0)).collect();
        Self { memory: Memory::new(units), cells }
    }

    fn row(&self) -> Row<'_, Pair> {
        self.memory.row()
    }

    fn touch(&self, run: Range<usize>) {
        for cell in &self.cells[run] {
            // SAFETY: loom ensures that nobody else does so at the same time.
            cell.with_mut(|cell| unsafe { *cell += 1 });
        }
    }

    fn alloc(&self, units: usize) -> Option<Range<usize>> {
        let start = self.row().alloc(Wanted { units, align: 1, offset: 0 })?;
        self.touch(start..start + units);
        Some(start..start + units)
    }

    /// Keeps the first `to` units of a run.
    fn cut(&self, run: Range<usize>, to: usize) -> Range<usize> {
        self.touch(run.clone());
        assert!(self.row().cut(run.start, run.len(), to), "{run:?} cannot be cut to {to}");
        run.start..run.start + to
    }

    fn free(&self, run: Range<usize>) {
        self.cut(run, 0);
    }

    fn grow(&self, run: Range<usize>, to: usize) -> Range<usize> {
        if !self.row().grow(run.start, run.len(), to) {
            return run;
        }
        self.touch(run.start..run.start + to);
        run.start..run.start + to
    }
}

/// What a thread does with what it holds. Returns what it holds then.
type Actor = fn(&Field, Vec<Range<usize>>) -> Vec<Range<usize>>;

/// Races actors in a row, in which there are runs from the first unit on: whose each is, and its length. In the end each
/// unit is in one place.
#[track_caller]
fn race(
    preemptions: usize,
    units: usize,
    held: &'static [(usize, usize)],
    actors: &'static [Actor],
) {
    race_with(preemptions, units, held, actors, |_| {});
}

/// The same; in the end `check` looks at what is held.
#[track_caller]
fn race_with(
    preemptions: usize,
    units: usize,
    held: &'static [(usize, usize)],
    actors: &'static [Actor],
    check: fn(&[Range<usize>]),
) {
    model(preemptions, move || {
        #[expect(clippy::arc_with_non_send_sync, reason = "loom's threads take turns")]
        let field = Arc::new(Field::new(units));
        let mut hands: Vec<Vec<Range<usize>>> = vec![Vec::new(); actors.len()];
        for &(whose, units) in held {
            hands[whose].extend(field.alloc(units));
        }
        let mut started = Vec::new();
        let its = hands.remove(0);
        for (&actor, held) in actors[1..].iter().zip(hands) {
            let field = Arc::clone(&field);
            started.push(thread::spawn(move || actor(&field, held)));
        }
        let mut held = actors[0](&field, its);
        held.extend(started.into_iter().flat_map(|thread| thread.join().unwrap()));
        check(&held);
        let in_use: usize = held.iter().map(Range::len).sum();
        assert_eq!(field.row().free_units(), units - in_use, "{held:?}");
        held.into_iter().for_each(|run| field.free(run));
        assert!(field.alloc(units).is_some(), "something is lost");
    });
}

fn alloc<const UNITS: usize>(field: &Field, mut held: Vec<Range<usize>>) -> Vec<Range<usize>> {
    held.extend(field.alloc(UNITS));
    held
}

fn free(field: &Field, held: Vec<Range<usize>>) -> Vec<Range<usize>> {
    held.into_iter().for_each(|run| field.free(run));
    Vec::new()
}

fn cut_to<const UNITS: usize>(field: &Field, held: Vec<Range<usize>>) -> Vec<Range<usize>> {
    held.into_iter().map(|run| field.cut(run, UNITS)).collect()
}

fn grow_to<const UNITS: usize>(field: &Field, held: Vec<Range<usize>>) -> Vec<Range<usize>> {
    held.into_iter().map(|run| field.grow(run, UNITS)).collect()
}

fn alloc_and_free<const UNITS: usize>(field: &Field, held: Vec<Range<usize>>) -> Vec<Range<usize>> {
    field.alloc(UNITS).into_iter().for_each(|run| field.free(run));
    held
}

#[test]
fn units_for_two() {
    race_with(3, 4, &[], &[alloc::<1>, alloc::<1>], |held| assert_eq!(held.len(), 2));
    race_with(3, 4, &[], &[alloc::<2>, alloc::<1>], |held| assert_eq!(held.len(), 2));
    race_with(1, 4, &[], &[alloc::<1>, alloc::<1>, alloc::<2>], |held| {
        assert!(held.len() >= 2, "{held:?}");
    });
}

#[test]
fn one_of_two_long_runs() {
    race_with(3, 4, &[], &[alloc::<3>, alloc::<3>], |held| assert_eq!(held.len(), 1));
    race_with(3, 6, &[], &[alloc::<5>, alloc::<4>], |held| assert_eq!(held.len(), 1));
    race(1, 4, &[], &[alloc::<3>, alloc::<2>, alloc::<1>]);
}

#[test]
fn memory_goes_from_hand_to_hand() {
    const HELD: &[(usize, usize)] = &[(0, 3), (0, 1)];
    race(3, 4, HELD, &[free, alloc::<4>]);
    race(3, 4, HELD, &[free, alloc::<2>]);
    race(2, 4, HELD, &[free, alloc_and_free::<2>]);
    race(1, 4, &[(0, 3), (1, 1)], &[free, free, alloc::<4>]);
    race(1, 4, &[(0, 3)], &[free, alloc::<2>, alloc::<1>]);
}

#[test]
fn runs_come_and_go() {
    race(2, 4, &[], &[alloc_and_free::<3>, alloc_and_free::<2>]);
    race(2, 4, &[], &[alloc_and_free::<3>, alloc::<4>]);
}

#[test]
fn runs_that_are_cut() {
    const HELD: &[(usize, usize)] = &[(0, 5)];
    race(3, 6, HELD, &[cut_to::<1>, alloc::<3>]);
    race(3, 6, HELD, &[cut_to::<3>, alloc::<2>]);
    race(1, 4, &[(0, 3)], &[cut_to::<1>, alloc::<2>, alloc::<1>]);
}

#[test]
fn runs_that_grow() {
    const HELD: &[(usize, usize)] = &[(0, 1)];
    race(3, 6, HELD, &[grow_to::<5>, alloc::<2>]);
    race(3, 6, HELD, &[grow_to::<2>, alloc::<2>]);
    // What is behind them has a holder, who frees it.
    const BEHIND: &[(usize, usize)] = &[(0, 1), (1, 4)];
    race(3, 6, BEHIND, &[grow_to::<4>, free]);
    race(1, 6, BEHIND, &[grow_to::<4>, free, alloc::<2>]);
}

/// A mistake: two free one run. It is free once, whether the other still has it or has got a longer one there.
#[test]
fn one_of_two_frees() {
    for units in [1, 2, 3, 4] {
        model(3, move || {
            #[expect(clippy::arc_with_non_send_sync, reason = "loom's threads take turns")]
            let field = Arc::new(Field::new(4));
            let run = field.alloc(units).unwrap();
            let other = {
                let (field, run) = (Arc::clone(&field), run.clone());
                thread::spawn(move || field.row().cut(run.start, run.len(), 0))
            };
            let freed = field.row().cut(run.start, run.len(), 0);
            let longer = (units < 4).then(|| field.row().alloc(WHOLE)).flatten();
            assert!(freed != other.join().unwrap(), "{run:?} is freed twice, or not at all");
            assert!(longer.is_none_or(|start| field.row().cut(start, 4, 0)), "{run:?} and longer");
            assert_eq!(field.row().free_units(), 4);
        });
    }
}

const WHOLE: Wanted = Wanted { units: 4, align: 1, offset: 0 };
