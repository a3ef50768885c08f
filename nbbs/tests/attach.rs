//! Several handles over the same words.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nbbs::{Buddy, FreeError, Metadata, metadata_words};
use testkit::program::{Arena, BOUNDARIES};
use testkit::{Oracle, check_whole};

#[test]
fn what_one_handle_allocates_another_frees() {
    for units in BOUNDARIES {
        let arena: Arena = Arena::new(units);
        let one = arena.buddy();
        for order in 0..=one.max_order() {
            let block = one.alloc(order).unwrap();
            let two = Buddy::attach(arena.words(), units).unwrap();
            assert_eq!(two.order_of(block), Ok(order));
            assert_eq!(two.stats(), one.stats());
            two.audit().unwrap();
            assert_eq!(two.free(block), Ok(1 << order));
            assert_eq!(one.free(block), Err(FreeError::NotAllocated { index: block }));
        }
        one.audit().unwrap();
        check_whole(&one, &Oracle::new(units)).unwrap();
    }
}

/// The words hold everything: if they are copied elsewhere, they are the same arena.
#[test]
fn the_words_can_be_moved() {
    let arena: Arena = Arena::new(5000);
    let buddy = arena.buddy();
    buddy.reserve(10..700).unwrap();
    let blocks: Vec<_> = (0..=10).map(|order| buddy.alloc(order).unwrap()).collect();
    let copy: Vec<_> =
        arena.words().iter().map(|w| AtomicU64::new(w.load(Ordering::Relaxed))).collect();
    let moved = Buddy::attach(&copy, 5000).unwrap();
    moved.audit().unwrap();
    assert_eq!(moved.stats(), buddy.stats());
    for (order, block) in (0..).zip(blocks) {
        assert_eq!(moved.free(block), Ok(1 << order));
    }
    moved.release(10..700).unwrap();
    check_whole(&moved, &Oracle::new(5000)).unwrap();
    moved.audit().unwrap();
    assert_eq!(buddy.stats().reserved_units, 690);
}

#[test]
fn more_words_than_needed_do_no_harm() {
    let words: Vec<_> = (0..metadata_words(100) + 9).map(|_| AtomicU64::new(0)).collect();
    let buddy = Buddy::attach(&words, 100).unwrap();
    check_whole(&buddy, &Oracle::new(100)).unwrap();
    assert!(words[metadata_words(100)..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
fn every_thread_has_a_handle_of_its_own() {
    const UNITS: u64 = 3000;
    static METADATA: Metadata<{ metadata_words(UNITS) }> = Metadata::new();
    let oracle = Oracle::new(UNITS);
    let threads: Vec<_> = (0..4).map(|lane| (lane, &oracle)).collect();
    thread::scope(|scope| {
        for (lane, oracle) in threads {
            scope.spawn(move || {
                for round in 0..2_000_u32 {
                    let buddy = Buddy::attach(METADATA.words(), UNITS).unwrap();
                    let order = round % 8;
                    let Ok(index) = buddy.on(lane).alloc(order) else {
                        continue;
                    };
                    let block = oracle.take(lane, index, order).unwrap();
                    oracle.give(block).unwrap();
                    assert_eq!(buddy.on(lane).free(index), Ok(1 << order));
                }
            });
        }
    });
    let buddy = Buddy::attach(METADATA.words(), UNITS).unwrap();
    oracle.check_empty().unwrap();
    check_whole(&buddy, &oracle).unwrap();
    buddy.audit().unwrap();
}

/// Words that do not belong to an arena of that size are refused, or at least cause no panic and no block out of range.
#[test]
fn a_handle_of_another_size_is_refused_or_harmless() {
    let (mut refused, mut attached) = (0, 0);
    for used in [64, 600, 1000, 5000, 9000] {
        for other in [1, 31, 33, 63, 65, 544, 599, 601, 1024, 4999, 8192, 9001] {
            let arena: Arena = Arena::new(10_000);
            let owner = Buddy::new(arena.words(), used).unwrap();
            for order in (0..=owner.max_order()).rev() {
                let _ = owner.alloc(order);
            }
            let Ok(stranger) = Buddy::attach(arena.words(), other) else {
                refused += 1;
                continue;
            };
            attached += 1;
            for order in 0..=stranger.max_order() {
                if let Ok(index) = stranger.alloc(order) {
                    assert!(index + (1 << order) <= other);
                    let _ = stranger.free(index);
                }
                let _ = stranger.free_sized(0, order);
            }
            let _ = (stranger.free(0), stranger.free(other / 2), stranger.order_of(other - 1));
            let _ = (stranger.reserve(0..other), stranger.release(0..other));
            let _ = stranger.stats();
            let _ = stranger.audit();
        }
    }
    assert!(refused > 0, "{attached} attached, none refused");
}

/// Words of any content, as a file or a shared memory might hold: looking at them does no harm.
#[test]
fn words_of_any_content_can_be_looked_at() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..3_000 {
        let units = [1, 20, 32, 33, 600, 1024, 9000][round % 7];
        let arena: Arena = Arena::new(units);
        let sparse = random.bool();
        for word in arena.words() {
            let value = random.u64(..);
            let mask = if sparse { random.u64(..) & random.u64(..) } else { u64::MAX };
            word.store(value & mask, Ordering::Relaxed);
        }
        let buddy = arena.buddy();
        let _ = Buddy::attach(arena.words(), units);
        let _ = (buddy.audit(), buddy.stats(), buddy.order_bound());
        let _ = buddy.occupancy_map(units.ilog2() / 2, &mut [0; 100]);
        for index in 0..units {
            let _ = buddy.order_of(index);
        }
    }
}
