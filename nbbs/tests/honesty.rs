//! Tests when an allocation may be refused while others run: only if at some instant of the call every block of the
//! order was in use, or in the hands of an allocation or a free that had not returned.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nbbs::sync::Word;
use nbbs::{AllocError, Buddy};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, at_once, jitter};

/// Clears a flag when dropped, also by a panic, so that nobody waits for a failed test.
struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Runs `main` while `others` run again and again.
fn beside(others: &[&(dyn Fn(&AtomicBool) + Sync)], main: impl FnOnce()) {
    let running = AtomicBool::new(true);
    let start = Barrier::new(others.len() + 1);
    thread::scope(|scope| {
        for (seed, other) in others.iter().enumerate() {
            let (running, start) = (&running, &start);
            scope.spawn(move || {
                start.wait();
                let other = || {
                    while running.load(Ordering::Relaxed) {
                        other(running)
                    }
                };
                jitter(seed as u64, 30, other);
            });
        }
        let _running = Running(&running);
        start.wait();
        jitter(99, 30, main);
    });
}

/// Takes everything except one block of `order`.
fn full_but_one<W: Word>(buddy: &Buddy<'_, W>, order: u32) -> u64 {
    while buddy.alloc(order).is_ok() {}
    let blocks = buddy.units() >> order;
    let index = (blocks * 2 / 3) << order;
    assert_eq!(buddy.free(index), Ok(1 << order));
    index
}

/// Failing allocations lower the bounds while the only free block comes and goes.
#[test]
fn failing_allocations_do_not_hide_a_block() {
    for (units, order) in [(64, 2), (600, 0), (1024, 4), (1024, 5), (9000, 0), (9000, 8), (9000, 3)]
    {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let index = full_but_one(&buddy, order);
        let fail = |lane, order| {
            move |_: &AtomicBool| {
                assert_eq!(
                    buddy.on(lane).alloc(order),
                    Err(AllocError::Exhausted { units: 1 << order })
                )
            }
        };
        let others: [&(dyn Fn(&AtomicBool) + Sync); 3] =
            [&fail(1, order + 1), &fail(2, order + 2), &fail(3, buddy.max_order())];
        beside(&others, || {
            for round in 0..3_000 {
                let small = if round % 3 == 0 { 0 } else { order };
                let got = buddy.on(round).alloc(small);
                assert!(got.is_ok_and(|got| got >> order == index >> order), "{got:?} in {round}");
                assert_eq!(buddy.on(round / 2).free(got.unwrap()), Ok(1 << small));
            }
        });
        buddy.audit().unwrap();
    }
}

/// Another thread frees and allocates a larger block; at any time one of the two is free for us.
#[test]
fn a_block_that_stays_free_is_found_while_another_comes_and_goes() {
    for (units, order, larger) in
        [(64, 1, 5), (1024, 3, 6), (1024, 4, 9), (9000, 0, 9), (9000, 5, 12)]
    {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let block = buddy.alloc(larger).unwrap();
        full_but_one(&buddy, order);
        let held = AtomicUsize::new(block as usize);
        let thrash = |running: &AtomicBool| {
            let block = held.load(Ordering::Relaxed) as u64;
            assert_eq!(buddy.on(1).free(block), Ok(1 << larger));
            loop {
                match buddy.on(2).alloc(larger) {
                    Ok(block) => return held.store(block as usize, Ordering::Relaxed),
                    // The main thread may have taken a part of it for a moment.
                    Err(error) => assert_eq!(error, AllocError::Exhausted { units: 1 << larger }),
                }
                if !running.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        beside(&[&thrash], || {
            for round in 0..3_000 {
                let got = buddy.on(round).alloc(order).expect("a block was free all the time");
                assert_eq!(buddy.on(round / 2).free(got), Ok(1 << order));
            }
        });
        buddy.audit().unwrap();
    }
}

/// Threads ask for the whole arena at the same time, or for one unit: one of them gets it.
#[test]
fn not_all_can_be_refused() {
    for (units, orders) in
        [(64, [6, 6, 6]), (64, [6, 0, 6]), (1024, [10, 10, 10]), (1024, [10, 4, 9])]
    {
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        for round in 0..300 {
            let mut answers = [None; 3];
            let asks = answers.iter_mut().zip(orders).enumerate();
            let bodies = asks.map(|(lane, (answer, order))| -> Body<'_> {
                Box::new(move || {
                    let alloc = || buddy.on(lane).alloc(order).ok();
                    *answer = jitter(round ^ lane as u64, 10, alloc);
                    Ok(())
                })
            });
            at_once(bodies.collect()).unwrap();
            assert_ne!(answers, [None; 3], "all refused: {orders:?}");
            for (block, order) in answers.into_iter().zip(orders) {
                assert!(block.is_none_or(|block| buddy.free(block) == Ok(1 << order)));
            }
        }
        buddy.audit().unwrap();
    }
}

/// There are more blocks than all threads together can have in their hands, so at every instant one is
/// free; but which one changes all the time, and a look at one place after the other may miss it.
#[test]
fn none_is_refused_while_blocks_outnumber_hands() {
    const THREADS: usize = 3;
    for (units, order, each) in [
        (4, 0, 1),
        (64, 4, 1),
        (160, 5, 1),
        (600, 6, 2),
        (1024, 5, 10),
        (1024, 8, 1),
        (20_000, 12, 1),
    ] {
        assert!(units >> order > (THREADS * each) as u64);
        let arena = Arena::<Steered>::new(units);
        let buddy = arena.buddy();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for lane in 0..THREADS {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    jitter(lane as u64, 20, || {
                        for round in 0..2_000 {
                            let held: Vec<u64> = (0..=round % each)
                                .map(|_| buddy.on(lane).alloc(order).expect("a block is free"))
                                .collect();
                            for block in held {
                                assert_eq!(buddy.on(lane).free(block), Ok(1 << order));
                            }
                        }
                    });
                });
            }
        });
        buddy.audit().unwrap();
    }
}
