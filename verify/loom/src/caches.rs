//! The races of caches, on 32 units, one leaf word, in blocks of order 3, of which each CPU keeps up to four.
//!
//! Payloads are ordered only by acquire and release: of the caches' words, of the leaf word, and of the barrier.

use loom::sync::Arc;
use nbbs::{Buddy, Caches, Caps, cache_words, metadata_words};

use crate::barrier::{Barrier, on_cpu, was_interrupted};
use crate::caches::Op::{Alloc, Ask, Drain, DrainAll, Free, FreeChecked, Look, Twice};
use crate::payload::Payload;
use crate::race::{MAIN, Outcome, check};
use crate::word::{LANES, LoomWord, Model, on_lane};

const UNITS: u64 = 32;
const ORDER: u32 = 3;
const CPUS: usize = 2;

/// An operation of a CPU. Lane and CPU have the same number.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Allocates a block, and keeps it if there is one.
    Alloc,
    /// Frees the oldest block that it holds, if any.
    Free,
    /// Frees the oldest block that it holds, if any, and searches all caches for it.
    FreeChecked,
    /// Frees, with a search of all caches, a block that another CPU has freed long ago and keeps. It must be refused.
    Twice(u64),
    /// Gives back what it keeps.
    Drain,
    /// Asks a CPU to give back.
    Ask(usize),
    /// Gives back what all CPUs keep.
    DrainAll,
    /// Counts what all CPUs keep.
    Look,
}

/// A race on the caches of two CPUs.
#[derive(Clone, Copy, Debug)]
pub struct CacheRace {
    /// Its name on the command line.
    pub name: &'static str,
    /// The operations that come first, with their CPUs; the last lane is the main thread's, which has no cache.
    setup: &'static [(usize, Op)],
    /// What each CPU does.
    lanes: &'static [&'static [Op]],
    /// Whether CPU 0 is interrupted by the barrier of a `DrainAll`, once at each of its steps.
    interrupted: bool,
    /// The most preemptions.
    pub bound: Option<usize>,
}

/// All races of caches.
pub static CACHES: &[CacheRace] = &[
    // A CPU takes a block from its cache and brings one back, while another empties the cache and allocates what became
    // free.
    CacheRace {
        name: "hit-or-drain-all",
        setup: &[(0, Alloc), (0, Alloc), (0, Free)],
        lanes: &[&[Alloc, Free], &[DrainAll, Alloc]],
        interrupted: true,
        bound: Some(2),
    },
    // The same with a CPU that brings a block first, and next finds its cache taken or emptied.
    CacheRace {
        name: "free-or-drain-all",
        setup: &[(0, Alloc), (MAIN, Alloc), (MAIN, Alloc)],
        lanes: &[&[Free, Alloc], &[DrainAll]],
        interrupted: true,
        bound: Some(1),
    },
    // The same with a cache that takes blocks from the buddy, and one that gives blocks back by itself.
    CacheRace {
        name: "refill-or-drain-all",
        setup: &[],
        lanes: &[&[Alloc, Drain], &[DrainAll]],
        interrupted: true,
        bound: Some(2),
    },
    // Two threads empty a cache whose CPU is idle.
    CacheRace {
        name: "two-drain-all",
        setup: &[(0, Alloc), (0, Alloc), (0, Free), (0, Free)],
        lanes: &[&[DrainAll], &[DrainAll]],
        interrupted: false,
        bound: Some(3),
    },
    // A block goes from one CPU's cache through the buddy into another's.
    CacheRace {
        name: "cache-to-cache",
        setup: &[(MAIN, Alloc), (MAIN, Alloc), (0, Alloc), (0, Alloc)],
        lanes: &[&[Free, Free, Drain], &[Alloc, Alloc, Free]],
        interrupted: false,
        bound: Some(3),
    },
    // The same, but the other CPU has to ask.
    CacheRace {
        name: "refused-and-asked",
        setup: &[(MAIN, Alloc), (MAIN, Alloc), (0, Alloc), (0, Alloc), (0, Free)],
        lanes: &[&[Free, Alloc], &[Alloc, Alloc]],
        interrupted: false,
        bound: Some(3),
    },
    // Both CPUs ask each other.
    CacheRace {
        name: "ask-each-other",
        setup: &[(0, Alloc), (1, Alloc)],
        lanes: &[&[Ask(1), Free, Alloc], &[Ask(0), Free]],
        interrupted: false,
        bound: Some(3),
    },
    // CPU 1 frees, with a search, a block that was once in CPU 0's cache, at a place that another block then takes.
    CacheRace {
        name: "what-stood-there-once",
        setup: &[(0, Alloc), (0, Drain), (1, Alloc)],
        lanes: &[&[Free, Alloc], &[FreeChecked, Look]],
        interrupted: false,
        bound: None,
    },
    // CPU 1 frees again a block that CPU 0 keeps at the bottom of its stack.
    CacheRace {
        name: "kept-all-the-while",
        setup: &[(0, Alloc), (0, Alloc), (0, Free)],
        lanes: &[&[Free, Alloc], &[Twice(0), Look]],
        interrupted: false,
        bound: None,
    },
];

impl CacheRace {
    /// Runs the race under every execution that loom distinguishes, with at most this many preemptions.
    pub fn run(&self, preemptions: Option<usize>) -> Outcome {
        let race = *self;
        let mut all = check(Model::Bare, preemptions, move || race.once(0));
        for step in 1.. {
            if all.failure.is_some() || !was_interrupted() {
                break;
            }
            let one = check(Model::Bare, preemptions, move || race.once(step));
            all.executions += one.executions;
            all.time += one.time;
            all.failure = one.failure;
        }
        all
    }

    /// Runs one execution, in which the barrier's interrupt comes before step number `step` of CPU 0, or at its end.
    fn once(&self, step: usize) {
        let world = Arc::new(World::new());
        let mut hands: Vec<Hands> =
            (0..LANES).map(|lane| Hands { lane, ..Hands::default() }).collect();
        for &(lane, op) in self.setup {
            on_lane(lane);
            hands[lane].step(&world, op, false);
        }
        let mut idle = hands.split_off(self.lanes.len());
        let race = *self;
        let threads = hands.into_iter().map(|mut hands| {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || {
                on_lane(hands.lane);
                let interrupt = race.interrupted && hands.lane == 0;
                let barrier = interrupt.then(|| Arc::clone(&world.barrier));
                on_cpu(barrier, step, || {
                    for &op in race.lanes[hands.lane] {
                        hands.step(&world, op, race.interrupted);
                    }
                });
                hands
            })
        });
        let threads: Vec<_> = threads.collect();
        idle.extend(threads.into_iter().map(|thread| thread.join().expect("loom ends the run")));
        on_lane(MAIN);
        for mut hands in idle {
            while !hands.blocks.is_empty() {
                hands.step(&world, Free, false);
            }
        }
        (0..CPUS).for_each(|cpu| world.caches(false).drain(cpu));
        assert_eq!(world.caches(false).refused(), 0, "overlap in units that came back");
        let left = || world.buddy().on(0).alloc(ORDER).ok();
        let whole: bool = std::iter::from_fn(left).count() as u64 == UNITS >> ORDER;
        assert!(whole, "not whole: blocks are missing");
    }
}

struct World {
    metadata: Box<[LoomWord]>,
    words: Box<[LoomWord]>,
    payload: Payload,
    barrier: Arc<Barrier>,
}

impl World {
    fn new() -> Self {
        // The counts, and the stack of the order with the word before it; loom has less to do for words that nobody
        // uses.
        let word = |place| match place % cache_words(1) {
            0..13 | 207..212 => LoomWord::default(),
            _ => LoomWord::Unused,
        };
        let hint = |place| if place < 16 { LoomWord::own() } else { LoomWord::default() };
        Self {
            metadata: (0..metadata_words(UNITS)).map(hint).collect(),
            words: (0..cache_words(CPUS)).map(word).collect(),
            payload: Payload::new(UNITS, ORDER),
            barrier: Arc::default(),
        }
    }

    fn buddy(&self) -> Buddy<'_, LoomWord> {
        Buddy::new(&self.metadata, UNITS).expect("as many words as it takes")
    }

    fn caches(&self, checked: bool) -> Caches<'_, LoomWord> {
        let caps = Caps::new().units(ORDER, UNITS).checked(checked);
        Caches::new(self.buddy(), &self.words).with_caps(caps)
    }
}

/// A CPU, and what it holds.
#[derive(Default)]
struct Hands {
    lane: usize,
    blocks: Vec<u64>,
}

impl Hands {
    fn step(&mut self, world: &World, op: Op, interrupted: bool) {
        let (cpu, caches) = (self.lane, world.caches(matches!(op, FreeChecked | Twice(_))));
        match op {
            Alloc => {
                if let Ok(index) = caches.alloc(cpu, ORDER) {
                    world.payload.take(cpu, index, ORDER);
                    self.blocks.push(index);
                }
            }
            Free | FreeChecked if self.blocks.is_empty() => {}
            Free | FreeChecked => {
                let index = self.blocks.remove(0);
                world.payload.give(cpu, index, ORDER);
                assert_eq!(caches.free_sized(cpu, index, ORDER), Ok(()), "lost");
            }
            Twice(index) => {
                let freed = caches.free_sized(cpu, index, ORDER);
                assert!(freed.is_err(), "overlap in units freed twice");
            }
            Drain => caches.drain(cpu),
            Ask(other) => caches.ask(other),
            DrainAll if interrupted => caches.drain_all(|| world.barrier.pass()),
            // No CPU is in an operation.
            DrainAll => caches.drain_all(|| {}),
            Look => assert!(caches.cached().units <= UNITS, "overlap in units that are counted"),
        }
    }
}
