//! Tests double and wrong frees: what a cache refuses by itself, what only the buddy notices, and that with checks
//! nothing passes.

use nbbs::sync::AtomicU64;
use nbbs::{Buddy, Cache, Caches, Caps, FreeError, cache_words};
use testkit::program::Arena;

const UNITS: u64 = 1 << 12;

/// Both kinds of caches, in front of one buddy.
struct Both<'a> {
    buddy: Buddy<'a>,
    caches: Caches<'a>,
    cache: Cache<'a>,
}

fn with_both(checked: bool, test: impl Fn(Both<'_>)) {
    let arena: Arena = Arena::new(UNITS);
    let words: Vec<AtomicU64> = (0..cache_words(2)).map(|_| AtomicU64::new(0)).collect();
    let (buddy, caps) = (arena.buddy(), Caps::new().checked(checked));
    let caches = Caches::new(buddy, &words).with_caps(caps);
    test(Both { buddy, caches, cache: Cache::new(buddy, 0, caps) });
}

impl Both<'_> {
    /// Returns the refusal of a free by both.
    #[track_caller]
    fn refuse(&mut self, index: u64, order: u32) -> FreeError {
        let by_cpu = self.caches.free_sized(0, index, order).unwrap_err();
        assert_eq!(self.cache.free_sized(index, order), Err(by_cpu));
        by_cpu
    }
}

#[test]
fn places_where_no_block_can_be_are_refused() {
    for checked in [false, true] {
        with_both(checked, |mut both| {
            for order in 0..=9 {
                for index in [UNITS, UNITS + (1 << order), u64::MAX, u64::MAX - 511] {
                    let end = index.saturating_add(1);
                    let refused = FreeError::OutOfRange { start: index, end, units: UNITS };
                    assert_eq!(both.refuse(index, order), refused);
                    assert_eq!(both.caches.free(0, index), Err(refused));
                    assert_eq!(both.cache.free(index), Err(refused));
                }
                if order > 0 {
                    let refused = FreeError::Misaligned { index: 1, order };
                    assert_eq!(both.refuse(1, order), refused);
                }
            }
            assert_eq!((both.caches.cached().units, both.cache.cached().units), (0, 0));
        });
    }
}

/// Without an order the buddy is asked, with checks or without.
#[test]
fn where_the_arena_has_no_block_is_refused() {
    for checked in [false, true] {
        with_both(checked, |mut both| {
            let block = both.buddy.alloc(3).unwrap();
            both.buddy.reserve(100..101).unwrap();
            for (index, refused) in [
                (block + 1, FreeError::NotABlock { index: block + 1 }),
                (block + 8, FreeError::NotAllocated { index: block + 8 }),
                (100, FreeError::Reserved { index: 100 }),
            ] {
                assert_eq!(both.caches.free(1, index), Err(refused));
                assert_eq!(both.cache.free(index), Err(refused));
            }
            assert_eq!(both.caches.free(1, block), Ok(8));
        });
    }
}

#[test]
fn the_block_freed_last_is_refused() {
    for checked in [false, true] {
        with_both(checked, |mut both| {
            for order in 0..=9 {
                let block = both.caches.alloc(0, order).unwrap();
                both.caches.free_sized(0, block, order).unwrap();
                let refused = FreeError::NotAllocated { index: block };
                assert_eq!(both.caches.free_sized(0, block, order), Err(refused));
                assert_eq!(both.caches.free(0, block), Err(refused));
                // The block that is now on top may have been there before: nobody else holds it.
                assert_eq!(both.caches.alloc(0, order), Ok(block));
                assert_eq!(both.caches.free_sized(0, block, order), Ok(()));
                let block = both.cache.alloc(order).unwrap();
                both.cache.free_sized(block, order).unwrap();
                assert_eq!(both.cache.free(block), Err(FreeError::NotAllocated { index: block }));
            }
        });
    }
}

/// The first part of a block that was split may stand there as a run: a leaf word is never a closed block.
#[test]
fn the_first_part_of_a_split_block_is_a_block() {
    for (checked, part) in [false, true].into_iter().flat_map(|c| [2, 5, 7].map(|part| (c, part))) {
        with_both(checked, |mut both| {
            let block = both.caches.alloc(0, 9).unwrap();
            both.buddy.here().split(block, part).unwrap();
            both.caches.free_sized(0, block, part).unwrap();
            let refused = Err(FreeError::NotAllocated { index: block });
            assert_eq!(both.caches.free(0, block), refused);
            assert_eq!(both.caches.alloc(0, part), Ok(block));
            assert_eq!(both.caches.free(0, block), Ok(1 << part));
            both.caches.drain(0);
            let block = both.cache.alloc(9).unwrap();
            both.buddy.here().split(block, part).unwrap();
            both.cache.free_sized(block, part).unwrap();
            assert_eq!(both.cache.free(block), Err(FreeError::NotAllocated { index: block }));
        });
    }
}

/// An index that is left above the stack from earlier does not count as freed.
#[test]
fn what_stood_there_once_is_not_refused() {
    with_both(false, |both| {
        let caps = Caps::new().units(0, 1).units(9, 512).checked(false);
        let caches = both.caches.with_caps(caps);
        for order in [0, 9] {
            let block = both.buddy.alloc(order).unwrap();
            for _ in 0..3 {
                assert_eq!(caches.free_sized(0, block, order), Ok(()));
                assert_eq!(caches.alloc(0, order), Ok(block));
            }
        }
    });
}

/// Nor does an index below the stack, where the stack of another order ends.
#[test]
fn what_stands_below_an_empty_stack_is_not_refused() {
    with_both(false, |Both { buddy, caches, cache: _ }| {
        let caps = (0..4).fold(Caps::new(), |caps, order| caps.units(order, 64 << order));
        let caps = caps.checked(false);
        let caches = caches.with_caps(caps);
        let mut both = Both { buddy, caches, cache: Cache::new(buddy, 0, caps) };
        for order in 0..3 {
            let mut blocks: Vec<u64> = (0..64).map(|_| both.buddy.alloc(order).unwrap()).collect();
            blocks.sort_unstable_by_key(|block| std::cmp::Reverse(block >> order & 1));
            for block in blocks {
                both.caches.free_sized(0, block, order).unwrap();
                both.cache.free_sized(block, order).unwrap();
            }
            // Once it has left the cache, it may come back from the arena as a larger block.
            let top = both.caches.alloc(0, order).unwrap();
            assert_eq!(both.cache.alloc(order), Ok(top));
            assert_eq!(both.caches.cached().blocks[order as usize + 1], 0);
            assert_eq!(both.caches.free_sized(0, top, order + 1), Ok(()));
            assert_eq!(both.cache.free_sized(top, order + 1), Ok(()));
            let (by_cpu, own) = (both.caches.cached(), both.cache.cached());
            assert_eq!((by_cpu.blocks[order as usize + 1], &own), (1, &by_cpu));
            both.caches.drain(0);
            both.cache.drain();
        }
    });
}

/// Without checks a cache believes its caller, and an audit, or in the end the buddy, notices the error.
#[test]
fn what_only_the_buddy_sees() {
    with_both(false, |mut both| {
        let (one, two) = (both.buddy.alloc(0).unwrap(), both.buddy.alloc(0).unwrap());
        // A double free, with another free between.
        for index in [one, two, one] {
            both.caches.free_sized(0, index, 0).unwrap();
            both.cache.free_sized(index, 0).unwrap();
        }
        let broken = both.caches.audit().unwrap_err();
        assert_eq!((broken.cpu, broken.index, broken.order), (Some(0), one, 0));
        assert_eq!(
            broken.to_string(),
            format!("CPU 0 keeps a block of order 0 at unit {one} that is not its own")
        );
        let broken = both.cache.audit().unwrap_err();
        assert_eq!((broken.cpu, broken.index, broken.order), (None, one, 0));
        // Refused are a block that the other gave back first, and a block that was given back twice.
        both.cache.drain();
        assert_eq!((both.cache.refused(), both.buddy.stats().used_units), (1, 0));
        both.caches.drain(0);
        assert_eq!((both.caches.refused(), both.buddy.stats().used_units), (3, 0));
        // A free with a wrong order, and one of a block that was never allocated, among good ones.
        let blocks = [0; 4].map(|_| both.buddy.alloc(1).unwrap());
        both.caches.free_sized(1, blocks[0], 0).unwrap();
        both.caches.free_sized(1, 4000, 1).unwrap();
        blocks[1..].iter().for_each(|&block| both.caches.free_sized(1, block, 1).unwrap());
        assert!(both.caches.audit().is_err());
        both.caches.drain(1);
        assert_eq!((both.caches.refused(), both.buddy.stats().used_units), (5, 2));
        both.buddy.audit().unwrap();
    });
}

#[test]
fn with_checks_nothing_passes() {
    with_both(true, |mut both| {
        let blocks = [0; 10].map(|_| both.caches.alloc(0, 0).unwrap());
        // On any CPU, in any order.
        for (cpu, &block) in blocks.iter().enumerate() {
            both.caches.free_sized(cpu % 2, block, 0).unwrap();
        }
        for cpu in [0, 1, 7] {
            for &index in &blocks {
                let refused = FreeError::NotAllocated { index };
                assert_eq!(both.caches.free_sized(cpu, index, 0), Err(refused));
                assert_eq!(both.caches.free(cpu, index), Err(refused));
            }
        }
        let own = [0; 10].map(|_| both.cache.alloc(0).unwrap());
        own.iter().for_each(|&block| both.cache.free_sized(block, 0).unwrap());
        for &index in &own {
            assert_eq!(both.cache.free_sized(index, 0), Err(FreeError::NotAllocated { index }));
        }
        for order in [0, 1, 2, 3, 6, 9] {
            for actual in [0, 1, 2, 3, 6, 9] {
                let index = both.buddy.alloc(actual).unwrap();
                if actual == order {
                    assert_eq!(both.caches.free_sized(1, index, order), Ok(()));
                    continue;
                }
                if index % (1 << order) == 0 {
                    let refused = FreeError::WrongOrder { index, order, actual };
                    assert_eq!(both.refuse(index, order), refused);
                }
                both.buddy.free(index).unwrap();
            }
            let index = 4095 >> order << order;
            assert_eq!(both.refuse(index, order), FreeError::NotAllocated { index });
        }
        both.caches.audit().unwrap();
        let run = both.buddy.here().alloc_at(3000, 7).unwrap();
        let refused = FreeError::WrongLength { index: run, units: 8, actual: 7 };
        assert_eq!(both.refuse(run, 3), refused);
        assert_eq!((both.caches.refused(), both.cache.refused()), (0, 0));
    });
}

/// Builds with debug assertions check by default, others do not.
#[test]
fn debug_builds_check() {
    assert_eq!(Caps::new(), Caps::new().checked(cfg!(debug_assertions)));
}
