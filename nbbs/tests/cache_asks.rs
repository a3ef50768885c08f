//! Tests caches that are asked to give back, or are taken, at the least convenient moments.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nbbs::{AllocError, Caches, Caps, FreeError, cache_words};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, count_steps, die_before, follow, steer};

/// No cache keeps blocks of order 10, which take the whole arena.
const UNITS: u64 = 1 << 10;

struct World {
    arena: Arena<Steered>,
    words: Vec<Steered>,
}

impl World {
    fn new() -> Self {
        let words = (0..cache_words(2)).map(|_| Steered::default()).collect();
        Self { arena: Arena::new(UNITS), words }
    }

    fn caches(&self) -> Caches<'_, Steered> {
        let caps = Caps::new().units(0, 16).units(7, UNITS).checked(false);
        Caches::new(self.arena.buddy(), &self.words).with_caps(caps)
    }

    /// Has CPU 1 keep a block of each of these orders.
    fn keep(&self, orders: impl IntoIterator<Item = u32>) {
        let caches = self.caches();
        for order in orders {
            let block = caches.alloc(1, order).unwrap();
            caches.free_sized(1, block, order).unwrap();
        }
        assert!(caches.cached().units > 0);
    }

    /// Returns whether CPU 1 keeps nothing, or nothing after its next operation.
    fn is_emptied(&self) -> bool {
        let is_empty = || self.caches().cached().units == 0;
        is_empty() || {
            self.caches().alloc(1, 0).unwrap();
            is_empty()
        }
    }
}

/// A CPU that is refused has given back what it keeps and tried again, also if it was asked for it meanwhile.
#[test]
fn who_is_asked_and_refused_at_once_tries_again() {
    let world = World::new();
    let caches = world.caches();
    let blocks = [(); 8].map(|()| world.arena.buddy().alloc(7).unwrap());
    caches.free_sized(0, blocks[0], 7).unwrap();
    caches.ask(0);
    assert!(blocks.contains(&caches.alloc(0, 0).unwrap()));
    // The same if the order bypasses the cache.
    caches.drain(0);
    let world = World::new();
    let caches = world.caches();
    let blocks = [(); 8].map(|()| world.arena.buddy().alloc(7).unwrap());
    blocks.iter().for_each(|&block| caches.free_sized(0, block, 7).unwrap());
    caches.ask(0);
    assert_eq!(caches.alloc(0, 10), Ok(0));
}

/// The same with a handler that allocates, or gives everything back, at any step of the call: at one instant of the
/// call the blocks were in the hands of the handler, or of the buddy.
#[test]
fn a_handler_does_not_make_a_cpu_be_refused_what_it_keeps() {
    let handlers: [fn(&Caches<'static, Steered>); 3] = [
        |caches| caches.drain(0),
        |caches| caches.ask(0),
        |caches| {
            // If it was taken from what has just become free, half a cap is kept again.
            if let Ok(block) = caches.alloc(0, 0) {
                caches.free_sized(0, block, 0).unwrap();
            }
        },
    ];
    for (number, handler) in handlers.into_iter().enumerate() {
        for order in [0, 1, 10] {
            for step in 0.. {
                let world: &'static World = Box::leak(Box::new(World::new()));
                let caches = world.caches();
                let blocks = [(); 8].map(|()| world.arena.buddy().alloc(7).unwrap());
                blocks.iter().for_each(|&block| caches.free_sized(0, block, 7).unwrap());
                let mut left = Some(step);
                let was_there = std::rc::Rc::new(std::cell::Cell::new(false));
                let tell = std::rc::Rc::clone(&was_there);
                let hook = move || match left {
                    Some(0) => {
                        left = None;
                        tell.set(true);
                        count_steps(5000, || handler(&caches)).unwrap();
                    }
                    _ => left = left.map(|left| left - 1),
                };
                let got = steer(hook, || caches.alloc(0, order));
                assert!(got.is_ok(), "handler {number}, order {order}, step {step}: {got:?}");
                if !was_there.get() {
                    break;
                }
            }
        }
    }
}

/// A CPU that was asked gives back with its next operation, also one that bypasses the cache or fails.
#[test]
fn who_is_asked_answers_past_the_cache_too() {
    /// What a CPU does, with a block and a run that bypass its cache.
    type Operation = fn(&Caches<'_, Steered>, [u64; 2]);
    let operations: [Operation; 5] = [
        |caches, _| _ = caches.alloc(0, 10).unwrap(),
        |caches, _| _ = caches.alloc(0, 99).unwrap_err(),
        |caches, [block, _]| _ = caches.free(0, block).unwrap(),
        |caches, [block, _]| caches.free_sized(0, block, 10).unwrap(),
        |caches, [_, run]| _ = caches.free(0, run).unwrap(),
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        let mut world = World::new();
        world.arena = Arena::new(4 * UNITS);
        let (caches, buddy) = (world.caches(), world.arena.buddy());
        let past = [buddy.on(0).alloc(10).unwrap(), buddy.on(0).alloc_units(7).unwrap()];
        caches.alloc(0, 0).unwrap();
        caches.ask(0);
        assert!(caches.cached().units > 0);
        operation(&caches, past);
        assert_eq!(caches.cached().units, 0, "operation {number}");
    }
}

/// A second free of the block that the cache was given last is refused, also if the cache was asked before it.
#[test]
fn who_is_asked_still_knows_what_was_freed_last() {
    let world = World::new();
    let caches = world.caches();
    let block = caches.alloc(0, 0).unwrap();
    caches.free_sized(0, block, 0).unwrap();
    caches.ask(0);
    let refused = Err(FreeError::NotAllocated { index: block });
    assert_eq!(caches.free_sized(0, block, 0), refused);
    assert_eq!((caches.cached().units, caches.refused()), (0, 0));
    caches.audit().unwrap();
}

/// A drain in a handler, in the middle of an operation, while others empty the caches: what is kept goes with the next
/// operation at the latest. The handler is over before the operation goes on.
#[test]
fn no_drain_is_forgotten_while_others_empty_the_cache() {
    let works: [fn(&Caches<'_, Steered>); 2] =
        [|caches| _ = caches.alloc(1, 0).unwrap(), |caches| caches.drain(1)];
    for work in works {
        for taker in 0..40 {
            for steps in 2..40 {
                let world = World::new();
                let caches = world.caches();
                world.keep([0, 7]);
                let bodies: Vec<Body<'_>> = vec![
                    Box::new(|| {
                        work(&caches);
                        Ok(())
                    }),
                    Box::new(|| {
                        caches.drain_all(|| {});
                        Ok(())
                    }),
                    Box::new(|| {
                        caches.drain(1);
                        Ok(())
                    }),
                ];
                let script = [Turn::steps(1, taker), Turn::steps(0, steps), Turn::rest(2)];
                let script = [&script[..], &[Turn::rest(1), Turn::rest(0)]].concat();
                follow(&script, bodies).unwrap();
                assert!(world.is_emptied(), "{taker} steps of the taker, {steps} of the owner");
            }
        }
    }
}

/// A barrier that panics leaves the caches in use, and asked.
#[test]
fn a_barrier_that_panics_leaves_nothing_taken() {
    let world = World::new();
    let caches = world.caches();
    let block = caches.alloc(1, 0).unwrap();
    let drained = catch_unwind(AssertUnwindSafe(|| caches.drain_all(|| panic!("no barrier"))));
    assert!(drained.is_err());
    caches.free_sized(1, block, 0).unwrap();
    assert_eq!(caches.cached().units, 0);
    let block = caches.alloc(1, 0).unwrap();
    caches.free_sized(1, block, 0).unwrap();
    assert!(caches.cached().units > 0);
    caches.drain_all(|| {});
    assert_eq!(caches.cached().units, 0);
    assert_eq!(caches.alloc(0, 11), Err(AllocError::OrderTooLarge { order: 11, max: 10 }));
}

/// CPU 1 dies while it gives back what it was asked for, at any step. Who next has its number goes on with that.
#[test]
fn answers_outlive_a_recovery() {
    for step in 0.. {
        let world = World::new();
        let caches = world.caches();
        world.keep([0, 3]);
        caches.ask(1);
        if die_before(step, || caches.alloc(1, 0)).is_some() {
            assert!(step > 20, "{step} steps");
            break;
        }
        caches.recover(1);
        assert!(world.is_emptied(), "dead at step {step}");
    }
}

/// Who recovers may die in it, and the next one goes on with that.
#[test]
fn requests_outlive_who_recovers() {
    for (step, dies_at) in (10..30).flat_map(|step| (0..6).map(move |dies_at| (step, dies_at))) {
        let world = World::new();
        let caches = world.caches();
        world.keep([3]);
        caches.ask(1);
        if die_before(step, || caches.alloc(1, 0)).is_some() {
            break;
        }
        _ = die_before(dies_at, || caches.recover(1));
        caches.recover(1);
        assert!(world.is_emptied(), "dead at step {step}, and in the recovery at {dies_at}");
    }
}

/// CPU 1 dies in an operation, at any step, or after somebody has taken its cache. What it was asked for before is asked
/// of who next has its number.
#[test]
fn requests_outlive_a_recovery() {
    for (step, taker_dies) in (0..6).flat_map(|step| [false, true].map(|dies| (step, dies))) {
        let world = World::new();
        let caches = world.caches();
        caches.alloc(1, 0).unwrap();
        assert!(die_before(step, || caches.alloc(1, 0)).is_none());
        if taker_dies {
            // Takes both, from CPU 0 on.
            assert!(die_before(5, || caches.drain_all(|| {})).is_none());
            caches.recover(0);
        } else {
            caches.ask(1);
        }
        caches.recover(1);
        assert!(world.is_emptied(), "dead at step {step}, the taker too: {taker_dies}");
    }
}
