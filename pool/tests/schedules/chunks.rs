//! Tests chunks that come and go while others look for them.

use std::sync::atomic::{AtomicBool, Ordering};

use nbbs_pool::{Config, PoolBox};
use testkit::program::Body;
use testkit::steered::{Turn, all_schedules, follow};

use crate::must_pass;
use crate::support::steps::Stepped;
use crate::support::{Bank, BankPool, Item, config};

const ITEM: Item = Item([1, 0, 0, !1]);

type Stepping<'b> = BankPool<'b, Stepped>;

/// Creates a pool with `chunks` chunks of one slot, all in use. It allocates by a local, which leaves no cursor behind:
/// see `Pointers`.
fn in_use<'b>(bank: &'b Bank, config: Config, chunks: usize) -> Stepping<'b> {
    let pool = Stepping::with_words(bank, config);
    let mut local = pool.local_of(2);
    (0..chunks).for_each(|_| _ = PoolBox::leak(local.alloc(ITEM).unwrap()));
    drop(local);
    pool
}

fn body<'a>(act: impl FnOnce() + Send + 'a) -> Body<'a> {
    Box::new(|| {
        act();
        Ok(())
    })
}

/// An object is found by its address as soon as it is handed out. The ninth chunk is the first of a segment.
#[test]
fn a_chunk_is_listed_before_it_is_used() {
    for busy in [0, 8] {
        let explored = all_schedules(2, |together| {
            let bank = Bank::new(1, busy + 3);
            let pool = in_use(&bank, config(&bank), busy);
            let use_it = || {
                let object = pool.alloc(ITEM).unwrap();
                assert!(pool.is_valid(object));
                pool.free(object).unwrap();
            };
            together(vec![body(|| _ = pool.grow()), body(use_it)])?;
            assert_eq!(pool.len(), busy);
            assert_eq!(pool.capacity(), bank.taken().iter().sum());
            Ok(())
        });
        must_pass(&format!("growth behind {busy}"), explored);
    }
}

/// Chunks that go and come at the same time are counted, and reserved chunks stay.
#[test]
fn two_shrink_and_one_grows() {
    for (name, lanes) in [("shrink twice", 2), ("shrink twice, and grow", 3)] {
        let explored = all_schedules(2, |together| {
            let bank = Bank::new(1, 4);
            let pool = Stepping::with_words(&bank, config(&bank).reserve(1));
            pool.reserve(2).unwrap();
            let shrink = || _ = pool.shrink();
            let grow = || _ = pool.grow();
            let all = [body(shrink), body(shrink), body(grow)];
            together(all.into_iter().take(lanes).collect())?;
            assert!(pool.capacity() >= 1, "what is reserved has gone");
            assert_eq!(pool.capacity(), bank.taken().iter().sum());
            // Chunks that have lost their memory get some again.
            let all: Vec<_> = (0..4).map(|_| pool.alloc_box(ITEM).unwrap()).collect();
            drop(all);
            assert_eq!(pool.shrink(), 3);
            Ok(())
        });
        must_pass(name, explored);
    }
}

/// Wherever an iteration stalls, for a chunk to come back elsewhere without an object, and once more with one, it takes no
/// slot for an object that never had one, and finds the object that stays.
#[test]
fn only_objects_are_iterated_over() {
    let mut schedules = 0;
    for (first, second) in (0..30).flat_map(|first| (0..30).map(move |second| (first, second))) {
        let bank = Bank::new(1, 4);
        let pool = in_use(&bank, config(&bank).limit(2), 2);
        let iterate = || {
            let objects = [0, 1, 3].map(|number| bank.object(number));
            let found: Vec<_> = pool.iter().collect();
            assert!(
                found.iter().all(|found| objects.contains(found)) && found.contains(&objects[1])
            );
        };
        let come_back = || {
            pool.free(bank.object(0)).unwrap();
            assert_eq!((pool.shrink(), pool.grow()), (1, Ok(2)));
        };
        let come_back_in_use = || {
            assert_eq!(pool.shrink(), 1);
            assert_eq!(pool.alloc(ITEM).unwrap(), bank.object(3));
        };
        let script = [Turn::steps(0, first), Turn::rest(1), Turn::steps(0, second), Turn::rest(2)];
        follow(&script, vec![body(iterate), body(come_back), body(come_back_in_use)])
            .unwrap_or_else(|violation| panic!("{violation}, stalled at {first} and {second}"));
        schedules += 1;
    }
    println!("iterations: nothing under any of {schedules} schedules");
}

/// A pointer whose chunk has gone is refused, and nobody else notices, wherever its free stalls: once for the chunk to
/// come back elsewhere with an object in the same slot, and once more for that to be freed.
#[test]
fn a_stale_pointer_harms_nobody() {
    let mut schedules = 0;
    for (first, second) in (0..60).flat_map(|first| (0..60).map(move |second| (first, second))) {
        let bank = Bank::new(1, 2);
        let pool = in_use(&bank, config(&bank).limit(1), 1);
        pool.free(bank.object(0)).unwrap();
        let free_again = || {
            assert!(!pool.is_valid(bank.object(0)));
            assert!(pool.free(bank.object(0)).is_err(), "a stale pointer");
        };
        let come_back = || {
            pool.shrink();
            let elsewhere = pool.alloc(ITEM).unwrap();
            assert_eq!(elsewhere, bank.object(1));
        };
        let free = || {
            assert!(pool.is_valid(bank.object(1)));
            pool.free(bank.object(1)).unwrap();
        };
        let script = [Turn::steps(0, first), Turn::rest(1), Turn::steps(0, second), Turn::rest(2)];
        follow(&script, vec![body(free_again), body(come_back), body(free)])
            .unwrap_or_else(|violation| panic!("{violation}, stalled at {first} and {second}"));
        assert!(pool.is_empty());
        schedules += 1;
    }
    println!("stale pointers: nothing under any of {schedules} schedules");
}

/// Of two threads that free an object at once, one succeeds, also if its chunk has gone and come back elsewhere before
/// the other takes a step: the other then leaves alone the object that has the slot by now.
#[test]
fn a_second_free_that_comes_late_harms_nobody() {
    let mut schedules = 0;
    for first in 0..60 {
        let bank = Bank::new(1, 2);
        let pool = in_use(&bank, config(&bank).limit(1), 1);
        let (late, early) = (AtomicBool::new(false), AtomicBool::new(false));
        let free_late = || late.store(pool.free(bank.object(0)).is_ok(), Ordering::Relaxed);
        let free_early = || {
            if pool.free(bank.object(0)).is_ok() {
                early.store(true, Ordering::Relaxed);
                pool.shrink();
                assert_eq!(pool.alloc(ITEM).unwrap(), bank.object(1));
            }
        };
        let script = [Turn::steps(0, first), Turn::rest(1)];
        follow(&script, vec![body(free_late), body(free_early)]).unwrap();
        let (late, early) = (late.into_inner(), early.into_inner());
        assert!(late != early, "freed by both or by none, stalled at {first}");
        assert_eq!(pool.free(bank.object(1)).is_ok(), early, "stalled at {first}");
        assert!(pool.is_empty());
        schedules += 1;
    }
    println!("late frees: nothing under any of {schedules} schedules");
}
