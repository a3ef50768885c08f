//! Tests what caches cost, in accesses to shared words. These are counts, which are the same on every machine.

use nbbs::{Caches, Caps, cache_words};
use testkit::counting::{self, Counted};
use testkit::program::Arena;

/// Returns the plain accesses and read-modify-writes that `work` takes.
fn count<R>(work: impl FnOnce() -> R) -> (R, (u64, u64)) {
    let (result, counts) = counting::count(work);
    (result, (counts.loads + counts.stores, counts.swaps))
}

/// An arena and the caches of two CPUs.
struct World {
    arena: Arena<Counted>,
    words: Vec<Counted>,
}

const UNITS: u64 = 1 << 16;

impl World {
    fn new() -> Self {
        let words = (0..cache_words(2)).map(|_| Counted::default()).collect();
        Self { arena: Arena::new(UNITS), words }
    }

    /// As in builds without debug assertions.
    fn caches(&self) -> Caches<'_, Counted> {
        Caches::new(self.arena.buddy(), &self.words).with_caps(Caps::new().checked(false))
    }

    /// Fills memory to 60 %, at random.
    fn fill(&self, order: u32, random: &mut fastrand::Rng) {
        let all = || self.arena.buddy().on(1).alloc(order).ok();
        let mut blocks: Vec<u64> = std::iter::from_fn(all).collect();
        random.shuffle(&mut blocks);
        blocks.truncate(blocks.len() * 4 / 10);
        blocks.iter().for_each(|&block| self.arena.buddy().on(1).free_sized(block, order).unwrap());
    }

    fn alloc(&self, order: u32, units: u64) -> Vec<u64> {
        (0..units >> order).map(|_| self.caches().alloc(0, order).unwrap()).collect()
    }

    fn free(&self, order: u32, blocks: &[u64]) {
        blocks.iter().for_each(|&block| self.caches().free_sized(0, block, order).unwrap());
        self.caches().drain(0);
    }
}

#[test]
fn a_hit_takes_few_plain_accesses_and_no_read_modify_write() {
    let world = World::new();
    let caches = world.caches();
    for order in 0..=9 {
        let first = caches.alloc(0, order).unwrap();
        caches.free_sized(0, first, order).unwrap();
        let (block, alloc) = count(|| caches.alloc(0, order).unwrap());
        let (_, free) = count(|| caches.free_sized(0, block, order).unwrap());
        assert_eq!((alloc, free.1), ((8, 0), 0), "order {order}");
        assert!(free.0 <= 9, "order {order}: {free:?}");
        // Finding the order takes one more load for each level.
        let block = caches.alloc(0, order).unwrap();
        let (_, unsized_free) = count(|| caches.free(0, block).unwrap());
        assert!(unsized_free.1 == 0 && unsized_free.0 <= 9 + 4, "{unsized_free:?}");
    }
}

/// Checks the read-modify-writes of a drain and of a refill, in thousandths per unit.
#[track_caller]
fn assert_cost(
    world: &World,
    order: u32,
    mix: impl FnOnce(&mut Vec<u64>),
    [refill, drain]: [u64; 2],
) {
    let units = UNITS / 8;
    let (mut blocks, (_, refilled)) = count(|| world.alloc(order, units));
    mix(&mut blocks);
    let (_, (_, drained)) = count(|| world.free(order, &blocks));
    let (refilled, drained) = (1000 * refilled / units, 1000 * drained / units);
    assert!(
        refilled <= refill && drained <= drain,
        "order {order}: {refilled} and {drained} thousandths of a read-modify-write a unit"
    );
}

#[test]
fn what_a_unit_costs_in_fresh_memory() {
    for order in [0, 1, 2, 3] {
        assert_cost(&World::new(), order, |_| {}, [70, 100]);
    }
    assert_cost(&World::new(), 9, |_| {}, [3, 3]);
}

/// What the cache took goes back as it came, or in any order; then each block of a batch lies in a word of its own.
#[test]
fn what_a_unit_costs_in_memory_that_is_60_percent_full_at_random() {
    let mut random = fastrand::Rng::with_seed(7);
    for order in [0, 1, 2, 3] {
        let world = World::new();
        world.fill(order, &mut random);
        assert_cost(&world, order, |_| {}, [120, 120]);
        let once_a_word = 1000 >> order;
        assert_cost(&world, order, |blocks| random.shuffle(blocks), [120, once_a_word + 20]);
    }
}

/// A program that allocates and frees at random rarely needs the buddy.
#[test]
fn what_a_step_costs_in_a_churn_at_random() {
    let mut random = fastrand::Rng::with_seed(7);
    let world = World::new();
    world.fill(0, &mut random);
    let mut held = world.alloc(0, 1000);
    let steps = 100_000;
    let churn = || {
        for _ in 0..steps {
            if random.bool() && held.len() < 1500 || held.len() < 500 {
                held.push(world.caches().alloc(0, 0).unwrap());
            } else {
                let block = held.swap_remove(random.usize(..held.len()));
                world.caches().free_sized(0, block, 0).unwrap();
            }
        }
    };
    let (_, (_, swaps)) = count(churn);
    assert!(swaps * 50 <= steps, "{swaps} read-modify-writes in {steps} steps");
}

/// Single units here and there go back by one read-modify-write for each word that they lie in.
#[test]
fn scattered_units_cost_one_for_each_word() {
    let world = World::new();
    let all = world.alloc(0, UNITS / 2);
    let caches = world.caches();
    // Four units of each of eight words that stay in use, in random order.
    let mut scattered: Vec<u64> =
        all.iter().copied().filter(|unit| unit % 8 == 3 && unit / 32 % 5 == 2).take(32).collect();
    fastrand::Rng::with_seed(3).shuffle(&mut scattered);
    caches.drain(0);
    let (_, (_, kept)) = count(|| {
        scattered.iter().for_each(|&block| caches.free_sized(0, block, 0).unwrap());
    });
    let (_, (_, given)) = count(|| caches.drain(0));
    assert_eq!((kept, caches.cached().units), (0, 0));
    // The words above learn that something is free: otherwise they are full.
    assert!((8..=12).contains(&given), "{given} for 8 words");
}
