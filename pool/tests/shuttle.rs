//! Tests under shuttle: random schedules of more threads than can be explored in full, with growth and shrinking beside
//! allocation. Contents are checked; the bank checks that no slot is in a chunk that has gone.
#![cfg(not(miri))]

mod support;

use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use nbbs_pool::Pool;
use nbbs_pool::sync::{Ordering, Pointer, Word};
use shuttle::sync::atomic::AtomicU64;
use shuttle::thread;
use support::{Bank, Item};

struct Shuttle(AtomicU64);

// SAFETY: shuttle's atomics behave as atomics.
unsafe impl Word for Shuttle {
    type Pointer<P> = Yielding<P>;

    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// A pointer at which other threads get their chance.
struct Yielding<P>(AtomicPtr<P>, AtomicU64);

impl<P> Pointer<P> for Yielding<P> {
    fn null() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()), AtomicU64::new(0))
    }

    fn load(&self, order: Ordering) -> *mut P {
        self.1.load(Ordering::Relaxed);
        self.0.load(order)
    }

    fn compare_exchange(
        &self,
        current: *mut P,
        new: *mut P,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut P, *mut P> {
        self.1.load(Ordering::Relaxed);
        self.0.compare_exchange(current, new, success, failure)
    }
}

type Shared = Pool<Item, &'static Bank, Shuttle>;

/// Allocates and frees, by box, pointer and local in turn.
fn work(pool: &Shared, bank: &Bank, seed: u64) {
    let mut local = pool.local_of(2);
    for round in 0..3 {
        let item = Item([seed * 10 + round; 4]);
        if let Ok(one) = pool.alloc_box(item) {
            bank.number(&*one);
            if let Ok(other) = local.alloc(Item([77; 4])) {
                bank.number(&*other);
                assert_eq!((*one, *other), (item, Item([77; 4])));
                local.free(other);
            }
            assert_eq!(*one, item);
        }
        if let Ok(pointer) = pool.alloc(item) {
            assert!(pool.is_valid(pointer));
            assert_eq!(pool.take(pointer).unwrap(), item);
        }
    }
}

fn growth_shrink_and_allocation() {
    let bank: &'static Bank = Box::leak(Box::new(Bank::new(2, 4)));
    let pool: Arc<Shared> = Arc::new(Pool::with_words(bank, support::config(bank)));
    let workers = (0..3).map(|seed| {
        let pool = Arc::clone(&pool);
        thread::spawn(move || work(&pool, bank, seed))
    });
    let workers: Vec<_> = workers.collect();
    let theirs = Arc::clone(&pool);
    let gardener = thread::spawn(move || {
        for _ in 0..4 {
            _ = theirs.grow();
            theirs.shrink();
        }
    });
    workers.into_iter().chain([gardener]).for_each(|thread| thread.join().unwrap());
    assert_eq!(pool.len(), 0);
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc_box(Item([0; 4])).ok()).collect();
    assert_eq!(all.len(), bank.slots());
}

/// Returns and prints the number of schedules.
fn iterations() -> usize {
    let iterations = 500 * testkit::depth() as usize;
    println!("under {iterations} random schedules");
    iterations
}

#[test]
fn random_schedules() {
    shuttle::check_random(growth_shrink_and_allocation, iterations());
}

#[test]
fn schedules_with_three_stalls() {
    shuttle::check_pct(growth_shrink_and_allocation, iterations(), 3);
}
