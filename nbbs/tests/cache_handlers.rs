//! Tests a handler that interrupts an operation on its CPU's cache at any step, and one that interrupts that handler:
//! nothing is handed out twice or lost, and nobody waits.

use std::cell::Cell;
use std::rc::Rc;

use nbbs::{Caches, Caps, cache_words};
use testkit::program::Arena;
use testkit::steered::{Steered, count_steps, steer};
use testkit::{Block, Oracle};

const UNITS: u64 = 256;
/// More steps than an operation takes here: an operation that takes more is waiting.
const MANY: u64 = 5000;

/// A CPU in the middle of its work, with everything that it may do at a time.
struct World {
    arena: Arena<Steered>,
    words: Vec<Steered>,
    oracle: Oracle,
    held: Cell<Vec<Block>>,
}

/// What an operation, or a handler, does.
type Act = fn(&World);

impl World {
    fn new() -> Self {
        let words = (0..cache_words(2)).map(|_| Steered::default()).collect();
        Self { arena: Arena::new(UNITS), words, oracle: Oracle::new(UNITS), held: Cell::default() }
    }

    /// Creates caches of few blocks of each order, so that each operation soon needs the buddy.
    fn caches(&self) -> Caches<'_, Steered> {
        let caps = Caps::new().units(0, 4).units(1, 4).units(2, 8).units(3, 16).large(4);
        Caches::new(self.arena.buddy(), &self.words).with_caps(caps.units(4, 16).checked(false))
    }

    fn alloc(&self, order: u32) {
        if let Ok(index) = self.caches().alloc(0, order) {
            let block = self.oracle.take(0, index, order).unwrap();
            let mut held = self.held.take();
            held.push(block);
            self.held.set(held);
        }
    }

    /// Frees the oldest block of an order that is held.
    fn free(&self, order: u32) {
        let mut held = self.held.take();
        let oldest = held.iter().position(|block| block.order == order);
        let block = oldest.map(|at| held.remove(at));
        self.held.set(held);
        if let Some(block) = block {
            self.oracle.give(block).unwrap();
            self.caches().free_sized(0, block.index, order).unwrap();
        }
    }

    /// Gives everything back, and checks that all memory is free.
    fn end(self) {
        for block in self.held.take() {
            self.oracle.give(block).unwrap();
            self.caches().free_sized(0, block.index, block.order).unwrap();
        }
        self.oracle.check_empty().unwrap();
        self.caches().audit().unwrap();
        self.caches().drain(0);
        assert_eq!((self.caches().refused(), self.caches().cached().units), (0, 0));
        let buddy = self.arena.buddy();
        buddy.audit().unwrap();
        assert_eq!(buddy.stats().free_units, UNITS);
    }
}

/// What happens on the CPU before the operation that is interrupted, and that operation.
const OPERATIONS: [(&str, Act, Act); 10] = [
    (
        "a drain of all",
        |world| (0..3).for_each(|_| world.alloc(0)),
        |world| world.caches().drain_all(|| {}),
    ),
    (
        "a hit",
        |world| [0, 0, 0].into_iter().for_each(|order| world.alloc(order)),
        |world| world.free(0),
    ),
    ("a refill", |_| {}, |world| world.alloc(0)),
    ("a hit from the cache", |world| world.alloc(0), |world| world.alloc(0)),
    (
        "half of it goes back",
        |world| (0..5).for_each(|_| world.alloc(0)),
        |world| (0..5).for_each(|_| world.free(0)),
    ),
    ("a large block", |world| world.alloc(4), |world| world.free(4)),
    (
        "a drain",
        |world| [0, 0, 0, 1, 2, 3, 4].into_iter().for_each(|order| world.alloc(order)),
        |world| world.caches().drain(0),
    ),
    (
        "an operation that was asked to give back",
        |world| {
            [0, 1, 2].into_iter().for_each(|order| world.alloc(order));
            world.caches().ask(0);
        },
        |world| world.alloc(1),
    ),
    (
        "a refusal",
        |world| (0..3).for_each(|_| world.alloc(6)),
        |world| [3, 3, 3, 3, 3, 3, 3, 3].into_iter().for_each(|order| world.alloc(order)),
    ),
    ("an order that is not kept", |world| world.alloc(0), |world| world.alloc(5)),
];

const HANDLERS: [(&str, Act); 7] = [
    ("allocates", |world| world.alloc(0)),
    ("frees", |world| world.free(0)),
    ("does both", |world| (0..4).for_each(|_| (world.alloc(0), world.free(0)).1)),
    ("drains", |world| world.caches().drain(0)),
    // On its own CPU no barrier is needed.
    ("drains all", |world| world.caches().drain_all(|| {})),
    ("asks", |world| world.caches().ask_all()),
    ("takes all", |world| (0..70).for_each(|_| world.alloc(1))),
];

/// Runs `act` with `handler` before its step number `step`. Returns `false` if it has no such step.
fn interrupted(
    world: &Rc<World>,
    act: impl FnOnce(&World),
    step: u64,
    handler: impl Fn(&World) + 'static,
) -> bool {
    let left = Rc::new(Cell::new(Some(step)));
    let (countdown, inside) = (Rc::clone(&left), Rc::clone(world));
    let hook = move || match countdown.get() {
        Some(0) => {
            countdown.set(None);
            handler(&inside);
        }
        left => countdown.set(left.map(|left| left - 1)),
    };
    steer(hook, || act(world));
    left.get().is_none()
}

/// Runs `act` without another handler in between, within a bound.
fn alone(world: &World, act: Act) {
    count_steps(MANY, || act(world)).unwrap();
}

fn prepared(before: Act) -> Rc<World> {
    let world = Rc::new(World::new());
    before(&world);
    world
}

fn end(world: Rc<World>) {
    Rc::into_inner(world).unwrap().end();
}

#[test]
fn at_every_step_of_every_operation() {
    let mut runs = 0;
    for (operation, before, act) in OPERATIONS {
        for (handler, handle) in HANDLERS {
            let done = (0..MANY).find(|&step| {
                let world = prepared(before);
                let was_there = interrupted(&world, act, step, move |world| alone(world, handle));
                end(world);
                runs += 1;
                !was_there
            });
            assert!(done.is_some_and(|steps| steps > 4), "{operation}, {handler}: {done:?} steps");
        }
    }
    assert!(runs > 1500, "{runs}");
}

#[test]
fn and_at_every_step_of_the_handler() {
    let mut runs = 0;
    for (operation, before, act) in OPERATIONS {
        for (_, handle) in &HANDLERS[..5] {
            for step in 0.. {
                let mut was_there = true;
                for inner in 0.. {
                    let world = prepared(before);
                    let (deeper, told) = (Rc::clone(&world), Rc::new(Cell::new(false)));
                    let tell = Rc::clone(&told);
                    was_there = interrupted(&world, act, step, move |_| {
                        let both: Act = |world| (world.alloc(0), world.free(1)).1;
                        tell.set(interrupted(&deeper, handle, inner, move |world| {
                            alone(world, both)
                        }));
                    });
                    end(world);
                    runs += 1;
                    if !told.get() {
                        break;
                    }
                    assert!(inner < MANY, "{operation}");
                }
                if !was_there {
                    break;
                }
            }
        }
    }
    assert!(runs > 20_000, "{runs}");
}

/// A drain that interrupts an operation is done when the operation has ended, at whatever step it came.
#[test]
fn a_drain_in_between_is_done_in_the_end() {
    let before: Act = |world| {
        [0, 0, 1, 2, 3].into_iter().for_each(|order| world.alloc(order));
        [1, 2, 3].into_iter().for_each(|order| world.free(order));
    };
    let unit: [Act; 3] = [
        |world| world.alloc(0),
        |world| world.free(0),
        |world| (0..4).for_each(|_| world.alloc(0)),
    ];
    for act in unit {
        let steps = (0..MANY).find(|&step| {
            let world = prepared(before);
            assert_eq!(world.caches().cached().blocks[1..4], [1, 1, 1]);
            let drain: Act = |world| world.caches().drain(0);
            let was_there = interrupted(&world, act, step, move |world| alone(world, drain));
            let left = world.caches().cached().blocks[1..4].iter().sum::<u64>();
            assert_eq!(left, if was_there { 0 } else { 3 }, "step {step}");
            end(world);
            !was_there
        });
        // The last step checks whether anybody asked.
        assert!(steps.is_some_and(|steps| steps >= 7), "{steps:?}");
    }
}
