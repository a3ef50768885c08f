//! Tests the most that one operation of a churn takes, alone and behind a cache. It is counted in loads: no clock can
//! distinguish a slow operation from a thread that was not running. `cargo test -p nbbs --test worst -- --nocapture`
//! prints the counts.

use fastrand::Rng;
use nbbs::{AllocError, Buddy, Caches, Caps, FreeError, cache_words};
use testkit::counting::{Counted, count};
use testkit::program::Arena;

/// 1 GiB in pages.
const UNITS: u64 = 1 << 18;
const STEPS: usize = 250_000;

/// The loads that no operation exceeds: an allocation, and a free. A free goes up its path, and takes a handful of
/// loads for each level that it merges. An allocation is misled by bounds that earlier operations left too high, and
/// lowers each.
const ALONE: [u64; 2] = [1000, 32];
/// The same behind a cache, which takes what one word has, gives back 8 blocks at a time if they lie apart, and all
/// that it keeps if there are none.
const CACHED: [u64; 2] = [1700, 300];

/// Draws the order of the next block.
type Draw = fn(&mut Rng) -> u32;

fn loads<R>(operation: impl FnOnce() -> R) -> (R, u64) {
    let (result, counts) = count(operation);
    (result, counts.loads)
}

/// The loads of the operations of a kind.
#[derive(Default)]
struct Seen {
    worst: u64,
    sum: u64,
    operations: u64,
}

impl Seen {
    fn add(&mut self, loads: u64) {
        self.worst = self.worst.max(loads);
        self.sum += loads;
        self.operations += 1;
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.operations as f64
    }
}

/// Fills a percentage of the arena; then allocates three times in four while less is in use, and otherwise frees any
/// block. Returns what allocations and frees took.
fn churn(
    fill: u64,
    draw: Draw,
    alloc: impl Fn(u32) -> Result<u64, AllocError>,
    free: impl Fn(u64, u32) -> Result<(), FreeError>,
) -> [Seen; 2] {
    let (mut random, mut seen) = (Rng::with_seed(fill), [Seen::default(), Seen::default()]);
    let (mut held, mut used, mut is_full) = (Vec::new(), 0, false);
    let mut left = STEPS;
    while left > 0 {
        let is_below = used < UNITS * fill / 100;
        is_full |= !is_below;
        left -= usize::from(is_full);
        if is_below && (!is_full || random.u8(0..4) < 3) {
            let order = draw(&mut random);
            let (block, loads) = loads(|| alloc(order));
            seen[0].add(loads);
            if let Ok(block) = block {
                held.push((block, order));
                used += 1 << order;
            } else {
                is_full = true;
            }
        } else {
            let (block, order) = held.swap_remove(random.usize(..held.len()));
            let (freed, loads) = loads(|| free(block, order));
            freed.unwrap();
            seen[1].add(loads);
            used -= 1 << order;
        }
    }
    seen
}

/// Orders as programs ask for them: single units; half as many blocks of each order as of the one below; all orders
/// alike.
const ORDERS: [(&str, Draw); 5] = [
    ("order 0", |_| 0),
    ("orders 0 to 4, geometric", |random| (random.u64(..) | 1 << 4).trailing_zeros()),
    ("orders 0 to 4, uniform", |random| random.u32(0..=4)),
    ("orders 0 to 9, geometric", |random| (random.u64(..) | 1 << 9).trailing_zeros()),
    ("orders 0 to 9, uniform", |random| random.u32(0..=9)),
];

/// Churns with all mixes of orders at 30, 60 and 90 %, and checks that no operation takes more loads than the limits.
fn check(name: &str, limits: [u64; 2], run: impl Fn(Buddy<'_, Counted>, u64, Draw) -> [Seen; 2]) {
    for (orders, draw) in ORDERS {
        for fill in [30, 60, 90] {
            let arena = Arena::<Counted>::new(UNITS);
            let seen = run(arena.buddy(), fill, draw);
            let [alloc, free] = seen.each_ref().map(|seen| (seen.worst, seen.mean()));
            println!(
                "{name}, {orders}, {fill} % full: loads of an allocation {} (mean {:.1}), of a free {} ({:.1})",
                alloc.0, alloc.1, free.0, free.1
            );
            let within = alloc.0 <= limits[0] && free.0 <= limits[1];
            assert!(within, "{name}, {orders}, {fill} %: {alloc:?}, {free:?}, not {limits:?}");
            assert!(seen.iter().all(|seen| seen.operations > STEPS as u64 / 4), "no churn");
        }
    }
}

#[test]
fn no_operation_of_a_churn_takes_long() {
    check("nbbs", ALONE, |buddy, fill, draw| {
        let lane = buddy.on(0);
        churn(fill, draw, |order| lane.alloc(order), |block, order| lane.free_sized(block, order))
    });
}

#[test]
fn nor_behind_a_cache() {
    let words: Box<[Counted]> = (0..cache_words(1)).map(|_| Counted::default()).collect();
    check("nbbs-cached", CACHED, |buddy, fill, draw| {
        let caches = Caches::new(buddy, &words).with_caps(Caps::new().checked(false));
        let free = |block, order| caches.free_sized(0, block, order);
        let seen = churn(fill, draw, |order| caches.alloc(0, order), free);
        caches.drain(0);
        seen
    });
}
