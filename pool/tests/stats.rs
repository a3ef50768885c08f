//! Tests what a pool says that it has: alone, exactly; beside others, what can be; and what that takes.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nbbs_pool::{Config, Handles, Pool, SmallHandle};
use support::steps::Stepped;
use support::{Bank, BankPool, Item, config};
use testkit::steered::count_steps;

const ITEM: Item = Item([0; 4]);

/// Also what has gone: the bookkeeping of its chunks stays. 14 chunks take a second table.
#[test]
fn all_that_the_source_has_lent() {
    let bank = Bank::new(100, 14);
    let pool = Pool::<Item, _>::with_source(&bank, config(&bank));
    assert_eq!(pool.stats(), Default::default());
    let mut last = 0;
    for chunks in [1, 8, 9, 14] {
        pool.reserve(100 * chunks).unwrap();
        let stats = pool.stats();
        assert_eq!(
            (stats.chunks, stats.slots, stats.peak_slots),
            (chunks, 100 * chunks, 100 * chunks)
        );
        assert_eq!(stats.bytes, 100 * chunks * size_of::<Item>());
        assert_eq!(stats.bytes + stats.bookkeeping, bank.lent_bytes());
        assert!(stats.bookkeeping >= last + pool.chunk_overhead());
        last = stats.bookkeeping;
    }
    let one = pool.alloc(ITEM).unwrap();
    assert_eq!(pool.shrink(), 1300);
    let stats = pool.stats();
    assert_eq!((stats.chunks, stats.slots, stats.objects, stats.free), (1, 100, 1, 99));
    assert_eq!((stats.peak_slots, stats.bookkeeping), (1400, last));
    assert_eq!(stats.bytes + stats.bookkeeping, bank.lent_bytes());
    pool.free(one).unwrap();
    pool.reserve(500).unwrap();
    assert_eq!((pool.stats().peak_slots, pool.stats().bookkeeping), (1400, last));
}

/// Handles and marks have more for each slot.
#[test]
fn what_is_beside_slots_counts() {
    let bank = Bank::new(100, 4);
    let handles = Handles::<Item, SmallHandle, _>::with_source(&bank, config(&bank));
    handles.insert(ITEM).unwrap();
    let of = handles.pool().stats();
    assert_eq!((of.objects, of.bytes + of.bookkeeping), (1, bank.lent_bytes()));
    drop(handles);
    let marked = Pool::<Item, _>::with_marks(&bank, config(&bank));
    marked.reserve(1).unwrap();
    let of = marked.stats();
    assert_eq!((of.objects, of.bytes + of.bookkeeping), (0, bank.lent_bytes()));
}

/// A limit may make the last chunk shorter.
#[test]
fn a_line() {
    let pool = Pool::<u64>::with_config(Config::new().chunk_size(100).limit(150).reserve(150));
    let mut local = pool.local();
    let _one = local.alloc(7).unwrap();
    let more = pool.stats().bookkeeping;
    let said = format!(
        "150 slots: 1 in use, 63 kept by locals, 86 free; peak 150; 1200 bytes, {more} of bookkeeping; chunks 2"
    );
    assert_eq!(pool.stats().to_string(), said);
}

/// While threads allocate, free, grow and shrink, the counts add up, and none is beyond what there can be.
#[test]
fn beside_others() {
    let bank = Bank::new(64, 20);
    let pool = Pool::<Item, _>::with_source(&bank, config(&bank));
    let done = AtomicBool::new(false);
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    thread::scope(|scope| {
        let work = || {
            let (mut local, mut held) = (pool.local(), Vec::new());
            for round in 0..rounds {
                held.extend(local.alloc(ITEM));
                held.extend(pool.alloc_box(ITEM));
                if held.len() > 300 {
                    held.clear();
                }
                if round % 100 == 0 {
                    pool.shrink();
                }
            }
        };
        let workers = [(); 2].map(|()| scope.spawn(work));
        scope.spawn(|| {
            // Relaxed: it only ends the loop; partner: the store below.
            while !done.load(Ordering::Relaxed) {
                let stats = pool.stats();
                assert_eq!(stats.objects + stats.kept + stats.free, stats.slots, "{stats:?}");
                assert!(
                    stats.slots <= stats.peak_slots && stats.slots == 64 * stats.chunks,
                    "{stats:?}"
                );
            }
        });
        let all_done = workers.map(|worker| worker.join());
        // Relaxed: it only ends the loop; partner: the load above.
        done.store(true, Ordering::Relaxed);
        all_done.into_iter().for_each(|done| done.unwrap());
    });
    let stats = pool.stats();
    assert_eq!((stats.objects, stats.kept, stats.slots), (0, 0, pool.capacity()));
}

/// As many loads of words and pointers as documented, of which the lanes' do not count here.
#[test]
fn a_look_takes_few_loads() {
    for (slots, chunks) in [(64, 1), (1000, 3), (100, 20)] {
        let bank = Bank::new(slots, chunks);
        let pool = BankPool::<Stepped>::with_words(&bank, config(&bank));
        pool.reserve(slots * chunks).unwrap();
        let (stats, steps) = count_steps(10_000, || pool.stats()).unwrap();
        assert_eq!(stats.slots, slots * chunks);
        let most = (chunks * slots.div_ceil(64) + 3 * chunks + 29) as u64;
        assert_eq!(steps, most, "{slots} slots in each of {chunks} chunks");
    }
}
