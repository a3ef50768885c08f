//! Tests when a pool grows, where threads begin, and how many words an operation looks at.

mod support;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use nbbs_pool::{Config, Exhausted, Pool, SmallHandle};
use support::steps::Stepped;
use support::{Bank, BankPool, Item, config};
use testkit::program::Body;
use testkit::steered::{Turn, count_steps, follow};

const ITEM: Item = Item([0; 4]);

/// An allocation that makes a word full, or finds it full, adds a chunk if too few slots are left.
#[test]
fn chunks_are_added_ahead_of_demand() {
    for ahead in [1, 40, 64, 200] {
        let bank = Bank::new(128, 4);
        let pool = Pool::<Item, _>::with_source(&bank, config(&bank).ahead(ahead));
        let mut capacity = 0;
        for made in 1..=512 {
            pool.alloc(ITEM).unwrap();
            capacity += if made > capacity { 128 } else { 0 };
            let looks = made % 64 <= 1;
            let adds = looks && capacity - made < ahead && capacity < 512;
            capacity += if adds { 128 } else { 0 };
            assert_eq!(pool.capacity(), capacity, "{made} made, {ahead} ahead");
        }
    }
}

/// What can never be met is refused before a chunk is added, and the error says what would be possible.
#[test]
fn a_reservation_that_cannot_be_is_refused_at_once() {
    let bank = Bank::new(100, 2);
    let limited = Pool::<Item, _>::with_source(&bank, Config::new().chunk_size(100).limit(150));
    for slots in [151, 1000, usize::MAX] {
        let refused = limited.reserve(slots).unwrap_err();
        assert_eq!(refused, Exhausted::Slots { slots, limit: 150 });
        let text = format!("{slots} slots are asked for, and the pool may have 150");
        assert_eq!((refused.to_string(), limited.capacity()), (text, 0));
    }
    limited.reserve(150).unwrap();
    assert_eq!(limited.grow(), Err(Exhausted::Slots { slots: 151, limit: 150 }));
    assert_eq!((limited.len(), limited.shrink()), (0, 150));

    let unlimited = Pool::<Item, _>::with_source(&bank, Config::new().chunk_size(100));
    let most_chunks = (1 << 31) - 8;
    let limit =
        (isize::MAX as usize / size_of::<Item>()).min(100_usize.saturating_mul(most_chunks));
    for slots in [limit + 1, usize::MAX] {
        assert_eq!(unlimited.reserve(slots), Err(Exhausted::Slots { slots, limit }));
        assert_eq!(unlimited.capacity(), 0);
    }
    // What is merely more than the source has is refused when the source says so, and what it gave stays.
    let bytes = 100 * size_of::<Item>();
    assert_eq!(unlimited.reserve(1000), Err(Exhausted::Memory { bytes, align: 32 }));
    assert_eq!((unlimited.capacity(), unlimited.shrink()), (200, 200));
}

/// What the pool may have is not refused as if it could never be had, wherever another call that reserves as much is
/// stopped.
#[test]
fn two_reserve_all_that_there_can_be() {
    let mut in_hands = 0;
    for stop in 0..60 {
        let bank = Bank::new(2, 4);
        let config = Config::new().chunk_size(2).limit(2);
        let pool = BankPool::<Stepped>::with_words(&bank, config);
        let answers = Mutex::new(Vec::new());
        let reserve = || -> Body<'_> {
            Box::new(|| {
                let answer = pool.reserve(2);
                let capacity = pool.capacity();
                answers.lock().unwrap().push((answer, capacity));
                Ok(())
            })
        };
        follow(&[Turn::steps(0, stop), Turn::rest(1)], vec![reserve(), reserve()]).unwrap();
        for (answer, capacity) in answers.into_inner().unwrap() {
            match answer {
                Ok(()) => assert_eq!(capacity, 2, "stopped after {stop} steps"),
                Err(error) => {
                    assert_eq!(error, Exhausted::Limit { limit: 2 });
                    in_hands += 1;
                }
            }
        }
    }
    assert!(in_hands > 0, "no chunk was in the other's hands");
}

/// A configuration that reserves more than its limit reserves the limit; one that reserves what cannot be, nothing.
#[test]
fn a_pool_begins_with_what_can_be_reserved() {
    let config = Config::new().chunk_size(100).limit(150).reserve(usize::MAX);
    let pool = Pool::<u32>::with_config(config);
    assert_eq!((pool.config().reserved(), pool.capacity(), pool.shrink()), (150, 150, 0));
    // A pool that was made in a constant expression has it with the first allocation.
    let bank = Bank::new(100, 2);
    let later = Pool::<Item, _>::with_source(&bank, config);
    later.alloc(ITEM).unwrap();
    assert_eq!(later.capacity(), 150);

    // What cannot be reserved is not tried: neither when a pool is made, nor when an allocation adds a chunk.
    let config = Config::new().chunk_size(100).reserve(usize::MAX);
    assert_eq!(Pool::<u32>::with_config(config).capacity(), 0);
    let bank = Bank::new(100, 2);
    let pool = Pool::<Item, _>::with_source(&bank, config);
    pool.alloc(ITEM).unwrap();
    assert_eq!((pool.config().reserved(), pool.capacity()), (usize::MAX, 100));
}

/// Each begins with a cache line of words of its own, as long as there are enough.
#[test]
fn threads_and_locals_begin_apart() {
    let bank = Bank::new(64 * 64, 1);
    let pool = Pool::<Item, _>::with_source(&bank, config(&bank));
    pool.reserve(1).unwrap();
    let line = |object: *const Item| bank.number(object) / (64 * 8);
    let mut locals: Vec<_> = (0..8).map(|_| pool.local()).collect();
    let lines = locals.iter_mut().map(|local| line(&raw const *local.alloc(ITEM).unwrap()));
    assert_eq!(lines.collect::<BTreeSet<_>>().len(), 8);
    drop(locals);

    let begin = || {
        let first = line(pool.alloc(ITEM).unwrap().as_ptr());
        // It continues where it is.
        (0..63).for_each(|_| assert_eq!(line(pool.alloc(ITEM).unwrap().as_ptr()), first));
        first
    };
    let lines = (0..8).map(|_| thread::scope(|scope| scope.spawn(begin).join().unwrap()));
    assert!(lines.collect::<BTreeSet<_>>().len() > 1);
}

/// The most words that an operation looks at, however many chunks there are, and however often they have gone and come.
const FEW: u64 = 80;

#[test]
fn operations_look_at_few_words() {
    let bank = Bank::new(64, 27);
    // Two segments.
    let config = Config::new().chunk_size(64).limit(24 * 64);
    let pool = BankPool::<Stepped>::with_words(&bank, config);
    for _ in 0..20 {
        count_steps(10_000, || pool.reserve(24 * 64)).unwrap().0.unwrap();
        let all: Vec<_> = (0..24 * 64).map(|_| pool.alloc(ITEM).unwrap()).collect();
        for &object in &all {
            count_steps(FEW, || pool.free(object)).unwrap().0.unwrap();
            let (again, _) = count_steps(FEW, || pool.alloc(ITEM)).unwrap();
            assert_eq!(again.unwrap(), object);
        }
        let elsewhere = std::ptr::NonNull::from(&ITEM);
        assert!(!count_steps(FEW, || pool.is_valid(elsewhere)).unwrap().0);
        all.into_iter().for_each(|object| pool.free(object).unwrap());
        assert_eq!(pool.shrink(), 24 * 64);
    }
}

/// Full chunks are skipped by hints, 64 at a time, not one by one.
#[test]
fn nobody_looks_into_full_chunks() {
    let bank = Bank::new(1, 120);
    let config = Config::new().chunk_size(1).limit(120);
    let pool = BankPool::<Stepped>::with_words(&bank, config);
    let all: Vec<_> = (0..120).map(|_| pool.alloc(ITEM).unwrap()).collect();
    // Far from the chunk of the last claim: the nearest come first.
    pool.free(all[0]).unwrap();
    let (again, _) = count_steps(FEW, || pool.alloc(ITEM)).unwrap();
    assert_eq!(again.unwrap(), all[0]);
}

/// Slots that are freed together are given back and taken word by word.
#[test]
fn a_batch_takes_few_steps() {
    let bank = Bank::new(256, 1);
    let pool = BankPool::<Stepped>::with_words(&bank, config(&bank));
    pool.reserve(1).unwrap();
    let mut all = Vec::new();
    let alloc = || pool.alloc_batch([ITEM; 256], |each| all.push(each));
    count_steps(4 * FEW, alloc).unwrap().0.unwrap();
    count_steps(4 * 256 / 64 * 8 + 256, || pool.free_batch(all)).unwrap();
    assert_eq!((pool.len(), pool.shrink()), (0, 256));
}

/// The bookkeeping has the documented size.
#[test]
fn a_chunk_takes_what_it_says() {
    fn check<const SLOTS: usize>() {
        let bank = Bank::new(SLOTS, 1);
        let pool = Pool::<Item, _>::with_source(&bank, config(&bank));
        pool.reserve(1).unwrap();
        let mut sizes = bank.lent_sizes();
        assert!(sizes.remove(&(SLOTS * size_of::<Item>())));
        assert!(sizes.contains(&pool.chunk_overhead()), "{} of {sizes:?}", pool.chunk_overhead());
        assert!(pool.chunk_overhead() <= SLOTS.div_ceil(64) * 16 + SLOTS.div_ceil(4096) * 8 + 128);

        let handles = nbbs_pool::Handles::<Item, SmallHandle, _>::with_source(&bank, config(&bank));
        let more = handles.pool().chunk_overhead() - pool.chunk_overhead();
        assert_eq!(more, SLOTS * 8);
    }
    check::<1>();
    check::<64>();
    check::<5000>();
}

/// The free slot nearest to the last claim is the likeliest to be in a cache still.
#[test]
fn room_is_looked_for_nearby_first() {
    let pool = Pool::<u64>::with_config(Config::new().chunk_size(64));
    let mut objects: Vec<_> = (0..9 * 64).map(|n| pool.alloc(n).unwrap()).collect();
    // From chunk 8 on; each claim goes on from the one before.
    for (chunks, order) in [([0, 6], [6, 0]), ([7, 2], [2, 7]), ([8, 1], [8, 1]), ([8, 0], [0, 8])]
    {
        for chunk in chunks {
            pool.free(objects[chunk * 64]).unwrap();
        }
        for chunk in order {
            let place = pool.alloc(0).unwrap();
            assert_eq!(place, objects[chunk * 64], "{chunks:?}");
            objects[chunk * 64] = place;
        }
    }
}
