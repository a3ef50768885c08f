//! Of several threads that free the same block at the same time, one succeeds.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nbbs::FreeError;
use testkit::program::Arena;

fn race_to_free(units: u64, order: u32, sized: bool, rounds: usize) {
    const THREADS: usize = 3;
    let arena: Arena = Arena::new(units);
    let buddy = arena.buddy();
    let (start, done, freed) = (
        Barrier::new(THREADS),
        Barrier::new(THREADS),
        AtomicUsize::new(0),
    );
    let block = AtomicUsize::new(0);
    thread::scope(|scope| {
        for lane in 0..THREADS {
            let (start, done, freed, block) = (&start, &done, &freed, &block);
            scope.spawn(move || {
                for round in 0..rounds {
                    if lane == round % THREADS {
                        let index = buddy.alloc_on(lane, order).expect("everything was freed");
                        block.store(index as usize, Ordering::Relaxed);
                        freed.store(0, Ordering::Relaxed);
                    }
                    start.wait();
                    let index = block.load(Ordering::Relaxed) as u64;
                    let answer = if sized {
                        buddy.free_sized_on(lane, index, order)
                    } else {
                        buddy
                            .free_on(lane, index)
                            .map(|found| assert_eq!(found, order))
                    };
                    match answer {
                        Ok(()) => drop(freed.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error, FreeError::NotAllocated { index }),
                    }
                    done.wait();
                    assert_eq!(freed.load(Ordering::Relaxed), 1, "order {order} at {index}");
                    done.wait();
                }
            });
        }
    });
    buddy.audit().unwrap();
    assert_eq!(buddy.stats().free_units, units);
    assert!(buddy.alloc(buddy.max_order()).is_ok());
}

#[test]
fn racing_frees_of_one_block() {
    for order in [0, 3, 4, 5, 7, 9] {
        for sized in [false, true] {
            race_to_free(600, order, sized, 400);
        }
    }
}
