//! Caches keep what they may, give it back when they are asked, and lose nothing.

use nbbs::sync::AtomicU64;
use nbbs::{AllocError, Buddy, Cache, Caches, Caps, FreeError, MetadataBox, Piece, cache_words};
use testkit::Oracle;
use testkit::program::Arena;

fn words(cpus: usize) -> Vec<AtomicU64> {
    (0..cache_words(cpus)).map(|_| AtomicU64::new(0)).collect()
}

/// Returns the number of units in use in the arena.
fn used(buddy: &Buddy<'_>) -> u64 {
    buddy.audit().unwrap();
    buddy.stats().used_units
}

/// Allocates as many blocks as there are.
fn all(mut alloc: impl FnMut() -> Result<u64, AllocError>) -> Vec<u64> {
    std::iter::from_fn(|| alloc().ok()).collect()
}

#[test]
fn nothing_is_kept_beyond_the_cap_of_an_order() {
    for units in [0, 1, 7, 8, 9, 40, 64, 1000, 1 << 15] {
        let caps = (0..=10).fold(Caps::new().large(10), |caps, order| caps.units(order, units));
        let arena: Arena = Arena::new(1 << 19);
        let (buddy, words) = (arena.buddy(), words(1));
        let caches = Caches::new(buddy, &words).with_caps(caps);
        let mut cache = Cache::new(buddy, 0, caps);
        for order in [0, 1, 2, 3, 4, 6, 8, 9, 10] {
            let cap = match order {
                0..=3 => (units >> order).min(64),
                9 => 0, // not the large order
                _ => (units >> order).min(16),
            };
            let blocks: Vec<u64> = (0..80).map(|_| buddy.alloc(order).unwrap()).collect();
            caches.drain(0);
            for &block in &blocks {
                caches.free_sized(0, block, order).unwrap();
                assert!(caches.cached().blocks[order as usize] <= cap, "{units} units, {order}");
            }
            assert_eq!(caches.cached().blocks[order as usize] > 0, cap > 0);
            for _ in 0..80 {
                caches.alloc(0, order).unwrap();
                assert!(caches.cached().blocks[order as usize] <= cap, "{units} units, {order}");
            }
            for _ in 0..80 {
                let block = cache.alloc(order).unwrap();
                assert!(cache.cached().blocks[order as usize] <= cap, "{units} units, {order}");
                buddy.free(block).unwrap();
            }
        }
        assert_eq!(caches.refused(), 0);
    }
}

/// Frees 17 blocks, `step` blocks apart, into a cache that has room for 16. Returns how many it gave back.
fn given_back(step: usize) -> usize {
    let arena: Arena = Arena::new(1 << 10);
    let (buddy, words) = (arena.buddy(), words(1));
    let caches = Caches::new(buddy, &words).with_caps(Caps::new().units(0, 16));
    let blocks: Vec<u64> = (0..17 * step).map(|_| buddy.alloc(0).unwrap()).step_by(step).collect();
    blocks.iter().for_each(|&block| caches.free_sized(0, block, 0).unwrap());
    let given = 17 - caches.cached().units as usize;
    for &block in &blocks[..given] {
        assert_eq!(buddy.order_of(block), Err(FreeError::NotAllocated { index: block }));
    }
    let kept: Vec<u64> = (given..17).map(|_| caches.alloc(0, 0).unwrap()).collect();
    assert!(kept.iter().eq(blocks[given..].iter().rev()), "{kept:?} of {blocks:?}");
    given
}

/// The block freed last is handed out first, and the blocks freed longest ago go back: half of them if they are close
/// together, an eighth otherwise.
#[test]
fn the_oldest_go_back() {
    assert_eq!([1, 7, 8, 40].map(given_back), [8, 8, 2, 2]);
}

#[test]
fn orders_that_are_not_kept_go_past() {
    let arena: Arena = Arena::new(1 << 12);
    let (buddy, words) = (arena.buddy(), words(1));
    let caches = Caches::new(buddy, &words);
    let mut cache = buddy.cache(1);
    for order in [10, 11] {
        let (one, other) = (caches.alloc(0, order).unwrap(), cache.alloc(order).unwrap());
        assert_eq!(used(&buddy), 2 << order);
        assert_eq!((caches.free(0, one), cache.free(other)), (Ok(1 << order), Ok(1 << order)));
        assert_eq!(used(&buddy), 0);
    }
    let too_large = Err(AllocError::OrderTooLarge { order: 13, max: 12 });
    assert_eq!((caches.alloc(0, 13), cache.alloc(13)), (too_large, too_large));
    // A large order of which the arena has no block.
    let caches = caches.with_caps(Caps::new().large(13));
    assert_eq!(caches.alloc(0, 13), too_large);
    assert_eq!(caches.free_sized(0, 0, 13), Err(FreeError::OrderTooLarge { order: 13, max: 12 }));
}

#[test]
fn a_number_without_words_goes_past() {
    let arena: Arena = Arena::new(64);
    let (buddy, words) = (arena.buddy(), words(2));
    let caches = Caches::new(buddy, &words[1..]);
    assert_eq!(caches.cpus(), 1);
    for cpu in [1, 2, usize::MAX] {
        let block = caches.alloc(cpu, 0).unwrap();
        assert_eq!((used(&buddy), caches.cached().units), (1, 0));
        caches.drain(cpu);
        caches.ask(cpu);
        caches.recover(cpu);
        caches.free_sized(cpu, block, 0).unwrap();
        assert_eq!(used(&buddy), 0);
    }
}

#[test]
fn dropping_gives_everything_back() {
    let arena: Arena = Arena::new(1 << 12);
    let buddy = arena.buddy();
    let mut cache = buddy.cache(0);
    for order in 0..=9 {
        let block = cache.alloc(order).unwrap();
        cache.free_sized(block, order).unwrap();
    }
    assert!(cache.cached().units == used(&buddy) && used(&buddy) > 512);
    drop(cache);
    assert_eq!(used(&buddy), 0);
}

/// Everything can be allocated through a cache, whatever it keeps, at every order.
#[test]
fn a_refusal_comes_after_all_was_given_back() {
    for order in 0..=9 {
        let arena: Arena = Arena::new(600);
        let (buddy, words) = (arena.buddy(), words(1));
        let caches = Caches::new(buddy, &words).with_caps(Caps::new().large(6));
        let mut cache = Cache::new(buddy, 0, Caps::new().large(6));
        let oracle = Oracle::new(600);
        for kept in [0, 1, 2, 3, 6] {
            let block = caches.alloc(0, kept).unwrap();
            caches.free_sized(0, block, kept).unwrap();
        }
        let blocks = all(|| caches.alloc(0, order));
        blocks.iter().for_each(|&block| _ = oracle.take(0, block, order).unwrap());
        assert_eq!(oracle.free_blocks(order), 0);
        assert_eq!(caches.alloc(0, order), Err(AllocError::Exhausted { units: 1 << order }));
        blocks.iter().for_each(|&block| caches.free_sized(0, block, order).unwrap());
        caches.drain(0);
        for kept in [0, 1, 2, 3, 6] {
            let block = cache.alloc(kept).unwrap();
            cache.free_sized(block, kept).unwrap();
        }
        assert_eq!(all(|| cache.alloc(order)).len(), blocks.len());
        caches.audit().unwrap();
    }
}

/// An allocation of what others keep is refused; they are asked, and give it back with their next operation.
#[test]
fn a_refusal_asks_the_others() {
    let arena: Arena = Arena::new(64);
    let (buddy, words) = (arena.buddy(), words(3));
    let caches = Caches::new(buddy, &words);
    let mine = caches.alloc(1, 0).unwrap();
    assert_eq!(caches.cached().units, 31);
    assert_eq!(all(|| caches.alloc(0, 0)).len(), 32);
    assert_eq!(caches.stats().cached_units, 31);
    caches.free_sized(1, mine, 0).unwrap();
    assert_eq!(caches.stats().cached_units, 0);
    assert_eq!(all(|| caches.alloc(0, 0)).len(), 32);
    // Nobody asked the CPU that was refused; its cache was empty.
    assert_eq!((used(&buddy), caches.cached().units), (64, 0));
}

#[test]
fn asked_once_it_is_done_once() {
    let arena: Arena = Arena::new(1 << 10);
    let (buddy, words) = (arena.buddy(), words(2));
    let caches = Caches::new(buddy, &words);
    caches.ask_all();
    let block = caches.alloc(1, 0).unwrap();
    assert_eq!(caches.cached().units, 0);
    caches.free_sized(1, block, 0).unwrap();
    assert_eq!(caches.cached().units, 1);
    assert_eq!(used(&buddy), 1);
}

#[test]
fn what_is_cached_is_told_from_what_is_used() {
    let arena: Arena = Arena::new(1 << 12);
    let (buddy, words) = (arena.buddy(), words(2));
    let caches = Caches::new(buddy, &words);
    let mut held = Vec::new();
    for order in 0..=9 {
        held.push((caches.alloc(0, order).unwrap(), order));
        held.push((caches.alloc(1, order).unwrap(), order));
    }
    let (stats, cached) = (caches.stats(), caches.audit().unwrap());
    assert_eq!(stats.used_units, 2 * ((1 << 10) - 1));
    assert_eq!(stats.cached_units, cached.units);
    assert_eq!(stats.used_units + stats.free_units + stats.cached_units, stats.units);
    for order in 0..=9 {
        assert_eq!(stats.used_blocks[order], 2);
    }
    let mut blocks = 0;
    buddy.walk(|piece| blocks += u64::from(matches!(piece, Piece::Used { .. })));
    assert_eq!(blocks, 20 + cached.blocks.iter().sum::<u64>());
    assert_eq!(buddy.stats().cached_units, 0);
}

/// Runs bypass the cache, and come back as runs.
#[test]
fn runs_are_no_blocks() {
    let arena: Arena = Arena::new(1 << 12);
    let (buddy, words) = (arena.buddy(), words(1));
    let caches = Caches::new(buddy, &words).with_caps(Caps::new().large(6));
    for (index, units) in [(0, 3), (8, 5), (33, 4), (100, 40), (29, 2), (128, 64), (300, 64)] {
        let run = buddy.here().alloc_at(index, units).unwrap();
        caches.free(0, run).unwrap();
        caches.drain(0);
        assert_eq!(used(&buddy), 0, "{units} units at {index}");
    }
    // A run with as many units as a block of the large order, and its alignment, may be taken for one.
    let run = buddy.here().alloc_at(64, 128).unwrap();
    buddy.here().shrink(run, 64).unwrap();
    caches.free_sized(0, run, 6).unwrap();
    caches.drain(0);
    assert_eq!((used(&buddy), caches.refused()), (0, 0));
}

/// All handles on the same words share the same caches.
#[test]
fn caches_are_in_their_words() {
    let arena: Arena = Arena::new(64);
    let (buddy, words) = (arena.buddy(), words(2));
    let block = Caches::new(buddy, &words).alloc(1, 0).unwrap();
    let other = Caches::new(arena.buddy(), &words);
    assert_eq!(other.cached().units, 31);
    other.free(1, block).unwrap();
    other.drain(1);
    assert_eq!(used(&buddy), 0);
}

#[test]
fn caps_for_an_arena_keep_an_eighth_of_it() {
    for units in [1, 100, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 30] {
        for caches in [0, 1, 2, 16, 64, 1024] {
            let caps = Caps::for_arena(units, caches).large(9);
            let metadata = MetadataBox::new(1 << 14).unwrap();
            let buddy = metadata.arena().unwrap();
            let mut cache = Cache::new(buddy, 0, caps);
            for order in 0..=9 {
                let blocks: Vec<u64> =
                    std::iter::from_fn(|| cache.alloc(order).ok()).take(100).collect();
                blocks.iter().for_each(|&block| cache.free_sized(block, order).unwrap());
            }
            let kept = cache.cached().units;
            assert!(kept <= units / 8 / 1.max(caches as u64), "{units} {caches}: {kept}");
        }
    }
}
