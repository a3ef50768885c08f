//! Tests threads with caches, with handlers in the middle of their work, and the owner map at every step.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use nbbs::{Caches, Caps, Metadata, ThreadCaches, cache_words, metadata_words};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, at_once, steer};
use testkit::{BackEnd, Block, Load, Oracle, Violation, check_whole, depth, stress};

const UNITS: u64 = 600;
const THREADS: usize = 3;

/// The state that the threads of a run share.
struct World {
    arena: Arena<Steered>,
    words: Vec<Steered>,
    oracle: Oracle,
    /// Blocks on their way to another thread: `index << 4 | order`, plus 1.
    exchange: [AtomicU64; 4],
}

impl World {
    fn new() -> Self {
        let words = (0..cache_words(THREADS)).map(|_| Steered::default()).collect();
        Self {
            arena: Arena::new(UNITS),
            words,
            oracle: Oracle::new(UNITS),
            exchange: [const { AtomicU64::new(0) }; 4],
        }
    }

    fn caches(&self) -> Caches<'_, Steered> {
        let caps = [0, 1, 2, 3].into_iter().fold(Caps::new(), |caps, order| caps.units(order, 12));
        Caches::new(self.arena.buddy(), &self.words).with_caps(caps.large(5).checked(true))
    }

    /// Does something that a program, or a handler, may do on its CPU at any time.
    fn step(
        &self,
        cpu: usize,
        random: &mut fastrand::Rng,
        held: &mut Vec<Block>,
    ) -> Result<(), Violation> {
        let caches = self.caches();
        match random.u32(0..100) {
            0 => caches.drain(cpu),
            1 => caches.ask_all(),
            2..50 => {
                let order = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6][random.usize(..10)];
                if let Ok(index) = caches.alloc(cpu, order) {
                    held.push(self.oracle.take(cpu, index, order)?);
                }
            }
            _ if held.is_empty() => {}
            choice => {
                let block = held.swap_remove(random.usize(..held.len()));
                if choice < 70 {
                    let word = (block.index << 4 | u64::from(block.order)) + 1;
                    // AcqRel: a block is handed over with everything that was done to it.
                    let other = self.exchange[random.usize(..4)].swap(word, Ordering::AcqRel);
                    held.extend(
                        other
                            .checked_sub(1)
                            .map(|other| Block { index: other >> 4, order: (other & 15) as u32 }),
                    );
                } else {
                    self.free(cpu, block, choice % 2 == 0)?;
                }
            }
        }
        Ok(())
    }

    fn free(&self, cpu: usize, block: Block, sized: bool) -> Result<(), Violation> {
        self.oracle.give(block)?;
        let freed = if sized {
            self.caches().free_sized(cpu, block.index, block.order)
        } else {
            self.caches().free(cpu, block.index).map(|_| ())
        };
        freed.map_err(|error| Violation::FreeRefused { block, reason: error.to_string() })
    }

    /// Does a CPU's work, in which handlers interrupt some of the accesses, at random.
    fn work(&'static self, cpu: usize, seed: u64) -> Result<(), Violation> {
        let mut random = fastrand::Rng::with_seed(seed << 8 | cpu as u64);
        let handlers = Rc::new(RefCell::new((Vec::new(), None)));
        let (inside, mut chance) = (Rc::clone(&handlers), random.fork());
        let hook = move || match chance.u32(0..300) {
            0..5 => {
                let (held, wrong) = &mut *inside.borrow_mut();
                // Without a hook: one handler at a time.
                let result = steer(|| {}, || self.step(cpu, &mut chance, held));
                *wrong = wrong.take().or(result.err());
            }
            5 => std::thread::yield_now(),
            _ => {}
        };
        let mut held = Vec::new();
        steer(hook, || {
            (0..1500 * depth()).try_for_each(|_| self.step(cpu, &mut random, &mut held))
        })?;
        let (mut left, wrong) = handlers.take();
        wrong.map_or(Ok(()), Err)?;
        held.append(&mut left);
        held.into_iter().try_for_each(|block| self.free(cpu, block, true))
    }
}

#[test]
fn cpus_with_handlers() {
    for seed in 0..3 {
        let world: &'static World = Box::leak(Box::new(World::new()));
        let work = |cpu| Box::new(move || world.work(cpu, seed)) as Body<'_>;
        at_once((0..THREADS).map(work).collect()).unwrap();
        for word in &world.exchange {
            if let Some(word) = word.load(Ordering::Acquire).checked_sub(1) {
                world.free(0, Block { index: word >> 4, order: (word & 15) as u32 }, true).unwrap();
            }
        }
        world.oracle.check_empty().unwrap();
        world.caches().audit().unwrap();
        (0..THREADS).for_each(|cpu| world.caches().drain(cpu));
        let buddy = world.arena.buddy();
        assert_eq!((world.caches().refused(), buddy.stats().used_units), (0, 0));
        buddy.audit().unwrap();
        check_whole(&buddy, &world.oracle).unwrap();
    }
}

/// Caches of threads as an allocator under test: what a thread keeps comes back when it ends.
struct OfThreads(&'static ThreadCaches);

impl BackEnd for OfThreads {
    fn units(&self) -> u64 {
        self.0.buddy().units()
    }

    fn max_order(&self) -> u32 {
        self.0.buddy().max_order()
    }

    fn metadata_bytes(&self) -> usize {
        0
    }

    fn alloc(&self, _: usize, order: u32) -> Option<u64> {
        self.0.alloc(order).ok()
    }

    fn free(&self, _: usize, index: u64, order: u32) -> Result<(), String> {
        self.0.free_sized(index, order).map_err(|error| error.to_string())
    }
}

#[test]
fn threads_that_end_leave_nothing_behind() {
    static METADATA: Metadata<{ metadata_words(UNITS) }> = Metadata::new();
    static PAGES: ThreadCaches =
        ThreadCaches::with_caps(METADATA.arena(UNITS), Caps::new().large(6).checked(true));
    let oracle = Oracle::new(UNITS);
    let load = Load::new(THREADS, 20_000 * depth(), 0..=6).by_size();
    stress(&OfThreads(&PAGES), &oracle, &load).unwrap();
    PAGES.drain();
    assert_eq!(PAGES.buddy().stats().used_units, 0);
}

/// Each arena has a cache of its own in each thread, and requests to drain reach the others.
#[test]
fn threads_keep_arenas_apart_and_hear_each_other() {
    const fn caches(words: &'static Metadata<{ metadata_words(64) }>) -> ThreadCaches {
        ThreadCaches::with_caps(words.arena(64), Caps::new())
    }
    static WORDS: [Metadata<{ metadata_words(64) }>; 2] = [const { Metadata::new() }; 2];
    static PAGES: [ThreadCaches; 2] = [caches(&WORDS[0]), caches(&WORDS[1])];
    let [one, two] = &PAGES;
    let (first, second) = (one.alloc(0).unwrap(), two.alloc(1).unwrap());
    assert_eq!((one.cached().blocks[0], two.cached().blocks[1]), (31, 15));
    std::thread::spawn(|| {
        // An allocation of what the other thread keeps is refused, and that thread is asked.
        let all = std::iter::from_fn(|| PAGES[0].alloc(0).ok()).count();
        assert_eq!(all, 32);
    })
    .join()
    .unwrap();
    assert_eq!((one.alloc(0).is_ok(), one.cached().units), (true, 0));
    assert_eq!((one.free(first), two.free_sized(second, 1)), (Ok(1), Ok(())));
    assert_eq!(two.cached().units, 32);
}

/// What a thread does in the destructors of its thread-locals, before its caches are dropped or after, is done in
/// order.
#[test]
fn threads_that_end_may_still_allocate() {
    static METADATA: Metadata<{ metadata_words(64) }> = Metadata::new();
    static PAGES: ThreadCaches = ThreadCaches::new(METADATA.arena(64));
    struct Last(u64);
    impl Drop for Last {
        fn drop(&mut self) {
            let another = PAGES.alloc(1).unwrap();
            PAGES.free_sized(self.0, 0).unwrap();
            PAGES.free_sized(another, 1).unwrap();
        }
    }
    std::thread_local! {
        static BEFORE: RefCell<Option<Last>> = const { RefCell::new(None) };
        static AFTER: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let work = || {
        BEFORE.set(None);
        let last = || Some(Last(PAGES.alloc(0).unwrap()));
        (BEFORE.set(last()), AFTER.set(last())).0
    };
    std::thread::spawn(work).join().unwrap();
    assert_eq!(PAGES.buddy().stats().used_units, 0);
    PAGES.buddy().audit().unwrap();
}
