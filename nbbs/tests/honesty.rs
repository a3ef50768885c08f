//! When an allocation may be refused while others run: only if at some instant of the call every block
//! of the order was in use, or in the hands of an allocation or a free that had not returned.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nbbs::sync::Word;
use nbbs::{AllocError, Buddy};
use testkit::program::Arena;
use testkit::steered::{Steered, jitter};

/// Runs `main` while `others` run again and again.
fn beside(others: &[&(dyn Fn() + Sync)], main: impl FnOnce()) {
    let running = AtomicBool::new(true);
    let start = Barrier::new(others.len() + 1);
    thread::scope(|scope| {
        for (seed, other) in others.iter().enumerate() {
            let (running, start) = (&running, &start);
            scope.spawn(move || {
                start.wait();
                jitter(seed as u64, 30, || {
                    while running.load(Ordering::Relaxed) {
                        other();
                    }
                });
            });
        }
        start.wait();
        jitter(99, 30, main);
        running.store(false, Ordering::Relaxed);
    });
}

/// A buddy in which everything is taken but for one block of `order`.
fn full_but_one<W: Word>(buddy: &Buddy<'_, W>, order: u32) -> u64 {
    while buddy.alloc(order).is_ok() {}
    let blocks = buddy.units() >> order;
    let index = (blocks * 2 / 3) << order;
    assert_eq!(buddy.free(index), Ok(order));
    index
}

/// The bounds are lowered by those who fail, while the one free block comes and goes.
#[test]
fn failing_allocations_do_not_hide_a_block() {
    for (units, order) in [
        (64, 2),
        (600, 0),
        (1024, 4),
        (1024, 5),
        (9000, 0),
        (9000, 8),
        (9000, 3),
    ] {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let index = full_but_one(&buddy, order);
        let fail = |lane, order| {
            move || {
                assert_eq!(
                    buddy.alloc_on(lane, order),
                    Err(AllocError::Exhausted { order })
                )
            }
        };
        let others: [&(dyn Fn() + Sync); 3] = [
            &fail(1, order + 1),
            &fail(2, order + 2),
            &fail(3, buddy.max_order()),
        ];
        beside(&others, || {
            for round in 0..3_000 {
                let small = if round % 3 == 0 { 0 } else { order };
                let got = buddy.alloc_on(round, small);
                assert!(
                    got.is_ok_and(|got| got >> order == index >> order),
                    "{got:?} in {round}"
                );
                assert_eq!(buddy.free_on(round / 2, got.unwrap()), Ok(small));
            }
        });
        buddy.audit().unwrap();
    }
}

/// Another thread frees and allocates a larger block; one of the two is there for us at any time.
#[test]
fn a_block_that_stays_free_is_found_while_another_comes_and_goes() {
    for (units, order, larger) in [
        (64, 1, 5),
        (1024, 3, 6),
        (1024, 4, 9),
        (9000, 0, 9),
        (9000, 5, 12),
    ] {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let block = buddy.alloc(larger).unwrap();
        full_but_one(&buddy, order);
        let held = AtomicUsize::new(block as usize);
        let thrash = || {
            let block = held.load(Ordering::Relaxed) as u64;
            assert_eq!(buddy.free_on(1, block), Ok(larger));
            // We may have taken a part of it for a moment.
            while let Err(error) = buddy
                .alloc_on(2, larger)
                .map(|b| held.store(b as usize, Ordering::Relaxed))
            {
                assert_eq!(error, AllocError::Exhausted { order: larger });
            }
        };
        beside(&[&thrash], || {
            for round in 0..3_000 {
                let got = buddy
                    .alloc_on(round, order)
                    .expect("a block was free all the time");
                assert_eq!(buddy.free_on(round / 2, got), Ok(order));
            }
        });
        buddy.audit().unwrap();
    }
}

/// Threads ask for the whole arena at the same time, or for one unit: somebody gets it.
#[test]
fn not_all_can_be_refused() {
    const THREADS: usize = 3;
    for (units, orders) in [
        (64, [6, 6, 6]),
        (64, [6, 0, 6]),
        (1024, [10, 10, 10]),
        (1024, [10, 4, 9]),
    ] {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let (start, end, granted) = (
            Barrier::new(THREADS),
            Barrier::new(THREADS),
            AtomicUsize::new(0),
        );
        thread::scope(|scope| {
            for (lane, order) in orders.into_iter().enumerate() {
                let (start, end, granted) = (&start, &end, &granted);
                scope.spawn(move || {
                    jitter(lane as u64, 10, || {
                        for _ in 0..500 {
                            granted.store(0, Ordering::Relaxed);
                            start.wait();
                            let block = buddy.alloc_on(lane, order);
                            granted.fetch_add(usize::from(block.is_ok()), Ordering::Relaxed);
                            end.wait();
                            assert!(
                                granted.load(Ordering::Relaxed) > 0,
                                "all refused: {orders:?}"
                            );
                            let freed = block.map(|block| buddy.free_on(lane, block));
                            assert!(freed.is_err() || freed == Ok(Ok(order)));
                            start.wait();
                        }
                    });
                });
            }
        });
        buddy.audit().unwrap();
    }
}
