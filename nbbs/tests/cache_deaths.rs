//! Tests a thread that dies in the middle of an operation on a cache: nothing is handed out twice, nobody waits, and at
//! most that cache is lost. If the CPU's number is used again, only what was in its hands is lost.

use std::cell::Cell;

use nbbs::{Cache, Caches, Caps, cache_words};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, die_before};
use testkit::{Block, Oracle};

const UNITS: u64 = 256;
const MANY: u64 = 5000;
/// The number of units of an order that a cache keeps.
const CAP: u64 = 16;

const CAPS: Caps = Caps::new()
    .units(0, CAP)
    .units(1, CAP)
    .units(2, CAP)
    .units(3, CAP)
    .large(4)
    .units(4, CAP)
    .checked(false);

struct World {
    arena: Arena<Steered>,
    words: Vec<Steered>,
    oracle: Oracle,
    /// A block that is there to be freed.
    extra: Cell<u64>,
}

type Act = fn(&World);

impl World {
    fn new() -> Self {
        let words = (0..cache_words(2)).map(|_| Steered::default()).collect();
        Self { arena: Arena::new(UNITS), words, oracle: Oracle::new(UNITS), extra: Cell::new(0) }
    }

    fn caches(&self) -> Caches<'_, Steered> {
        Caches::new(self.arena.buddy(), &self.words).with_caps(CAPS)
    }

    /// Allocates blocks on CPU 0 that nobody frees.
    fn hold(&self, order: u32, count: usize) -> Vec<Block> {
        let next = || self.caches().alloc(0, order).ok();
        let blocks = std::iter::from_fn(next).take(count);
        blocks.map(|index| self.oracle.take(0, index, order).unwrap()).collect()
    }

    /// Allocates blocks for CPU 0 to free, without the owner map, as it may die.
    fn free(&self, order: u32, count: usize) {
        let blocks: Vec<u64> = (0..count).map(|_| self.caches().alloc(0, order).unwrap()).collect();
        blocks.iter().for_each(|&block| self.caches().free_sized(0, block, order).unwrap());
    }

    /// Allocates everything that CPU 1, and others that use the dead CPU's cache, can get. They keep it.
    fn take_all(&self) -> u64 {
        let mut units = 0;
        for cpu in [0, 1] {
            let next = || count_steps(MANY, || self.caches().alloc(cpu, 0)).unwrap().0.ok();
            for index in std::iter::from_fn(next) {
                self.oracle.take(cpu, index, 0).unwrap();
                units += 1;
            }
        }
        units
    }
}

const OPERATIONS: [(Act, Act); 8] = [
    (|_| {}, |world| _ = world.caches().alloc(0, 0)),
    (|world| world.free(1, 3), |world| _ = world.caches().alloc(0, 1)),
    (
        |world| {
            world.extra.set(world.arena.buddy().on(1).alloc(0).unwrap());
            world.free(0, 16);
            // As many as there may be: some have to go.
            while world.caches().cached().blocks[0] < CAP {
                let block = world.arena.buddy().on(1).alloc(0).unwrap();
                world.caches().free_sized(0, block, 0).unwrap();
            }
        },
        |world| _ = world.caches().free_sized(0, world.extra.get(), 0),
    ),
    (|world| world.free(0, 16), |world| world.caches().drain(0)),
    (
        |world| [0, 1, 2, 3, 4].into_iter().for_each(|order| world.free(order, 1)),
        |world| world.caches().drain(0),
    ),
    (
        |world| {
            world.free(2, 3);
            world.caches().ask(0);
        },
        |world| _ = world.caches().alloc(0, 0),
    ),
    (|world| world.free(0, 9), |world| _ = world.caches().alloc(0, 8)),
    (
        |world| [0, 1, 2, 3, 4].into_iter().for_each(|order| world.free(order, 1)),
        |world| world.caches().drain_all(|| {}),
    ),
];

/// Lets each operation die at each of its steps, and calls `check` with the units that nobody holds, those that the
/// cache kept before, and those that can be allocated.
fn die_everywhere(recover: bool, check: impl Fn(u64, u64, u64)) {
    for (number, (before, act)) in OPERATIONS.into_iter().enumerate() {
        let steps = (0..MANY).find(|&step| {
            let world = World::new();
            let held = world.hold(0, 5);
            before(&world);
            let kept = world.caches().cached().units;
            if die_before(step, || act(&world)).is_some() {
                return true;
            }
            if recover {
                world.caches().recover(0);
                world.caches().audit().unwrap();
            }
            let free = UNITS - held.len() as u64;
            check(free, kept, world.take_all());
            assert_eq!(world.caches().refused(), 0, "operation {number}, step {step}");
            false
        });
        assert!(steps.is_some_and(|steps| steps >= 7), "operation {number}: {steps:?}");
    }
}

#[test]
fn at_most_the_cache_is_lost_and_what_was_in_its_hands() {
    die_everywhere(false, |free, kept, had| {
        // At most half a cap and a block go to or from the buddy.
        assert!(had + kept + CAP / 2 + 1 >= free, "{had} of {free} units, {kept} were kept");
    });
}

#[test]
fn a_number_that_is_used_again_has_its_cache_back() {
    die_everywhere(true, |free, _, had| {
        // All blocks of one order, while its older half moves.
        assert!(had + CAP + 1 >= free, "{had} of {free} units");
    });
}

/// An owned cache is not dropped.
#[test]
fn an_owner_who_dies_takes_his_cache_with_him() {
    let steps = (0..MANY).find(|&step| {
        let world = World::new();
        let buddy = world.arena.buddy();
        let mut cache = std::mem::ManuallyDrop::new(Cache::new(buddy, 0, CAPS));
        let work = || {
            let blocks: Vec<u64> = (0..20).map(|_| cache.alloc(0).unwrap()).collect();
            blocks.iter().for_each(|&block| cache.free_sized(block, 0).unwrap());
            cache.drain();
        };
        let alive = die_before(step, work).is_some();
        let had = world.take_all();
        // The 20 units that the program itself had in its hands are lost, too.
        assert!(had + 20 + CAP + 1 >= UNITS, "{had} of {UNITS} units, step {step}");
        alive
    });
    assert!(steps.is_some_and(|steps| steps > 10), "{steps:?}");
}
