//! Tests threads against each other, with the owner map at every step, while the pool grows and shrinks.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use baselines::Units;
use baselines::free_list::Untagged;
use nbbs_pool::sync::Word;
use support::steps::Stepped;
use support::{Bank, Locals, Pointers};
use testkit::steered::Steered;
use testkit::{Load, Oracle, Violation, stress, stress_beside};

const CASES: [(usize, usize); 5] = [(4, 1), (64, 1), (70, 3), (200, 5), (1000, 2)];

fn pointers<W: Word + Sync>(load: &Load) {
    for (chunk_size, chunks) in CASES {
        let bank = Bank::new(chunk_size, chunks);
        let back_end = Pointers::<W>::new(&bank);
        let report = stress_beside(&back_end, &Oracle::of(&back_end), load, |running| {
            while running.load(Ordering::Relaxed) {
                back_end.pool.shrink();
                _ = back_end.pool.grow();
                std::thread::yield_now();
            }
            Ok(())
        });
        let report =
            report.unwrap_or_else(|violation| panic!("{violation}: {chunk_size} {load:?}"));
        assert!(report.allocations > 0 && back_end.pool.is_empty(), "{report:?}");
    }
}

fn locals<W: Word + Sync>(load: &Load, most: usize) {
    for (chunk_size, chunks) in CASES {
        let bank = Bank::new(chunk_size, chunks);
        let pool = Pointers::<W>::new(&bank).pool;
        let back_end = Locals::new(&bank, &pool, load.threads, most);
        let report = stress_beside(&back_end, &Oracle::of(&back_end), load, |running| {
            while running.load(Ordering::Relaxed) {
                pool.shrink();
                _ = pool.grow();
                std::thread::yield_now();
            }
            Ok(())
        });
        let report =
            report.unwrap_or_else(|violation| panic!("{violation}: {chunk_size} {load:?}"));
        assert!(report.allocations > 0 && pool.is_empty(), "{report:?}");
    }
}

fn loads(operations: u64) -> impl Iterator<Item = Load> {
    [(2, 50), (3, 100), (8, 90)].into_iter().flat_map(move |(threads, occupancy)| {
        [0, 60].map(|hand_over| {
            let load = Load::new(threads, operations / threads as u64, 0..=0).occupancy(occupancy);
            Load { hand_over, ..load }
        })
    })
}

#[test]
fn by_pointer() {
    loads(60_000).for_each(|load| pointers::<AtomicU64>(&load));
    loads(20_000).for_each(|load| pointers::<Stepped>(&load.jitter(40)));
}

#[test]
fn by_local() {
    for most in [2, 100, usize::MAX] {
        loads(60_000).for_each(|load| locals::<AtomicU64>(&load, most));
        loads(20_000).for_each(|load| locals::<Stepped>(&load.jitter(40), most));
    }
}

/// The same stress finds the list's error.
#[test]
fn the_untagged_list_fails() {
    // A seed in a dozen or so does where other programs use the processors.
    let found = (0..500).find_map(|seed| {
        let back_end = Units(Untagged::<Steered>::new(8));
        let load = Load::new(4, 20_000, 0..=0).occupancy(90).jitter(10).seed(seed);
        stress(&back_end, &Oracle::of(&back_end), &load).err()
    });
    let violation = found.expect("the untagged list must be caught");
    assert!(!matches!(violation, Violation::Stuck { .. }), "{violation}");
}
