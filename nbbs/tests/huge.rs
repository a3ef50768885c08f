//! Arenas of 1 TiB and more in units of 4 KiB: metadata only.

use std::collections::BTreeMap;

use nbbs::{AllocError, Buddy, MAX_UNITS, MetadataError, metadata_words};
use testkit::Block;
use testkit::counting::{Counted, Counts, count};
use testkit::program::Arena;

const TIB: u64 = 1 << 28;

/// An owner map for an arena that is too large for the usual one: it only has what is held.
#[derive(Default)]
struct Held(BTreeMap<u64, Block>);

impl Held {
    fn take(&mut self, index: u64, order: u32, units: u64) -> Block {
        let block = Block { index, order };
        assert!(block.is_aligned() && block.units().end <= units, "{block}");
        let before = self.0.range(..block.units().end).next_back();
        assert!(before.is_none_or(|(_, held)| held.units().end <= index), "{block} and {before:?}");
        self.0.insert(index, block);
        block
    }
}

#[test]
fn one_tebibyte() {
    let arena: Arena = Arena::new(TIB);
    assert!(arena.words().len() * 64 <= (TIB as f64 * 2.3) as usize, "2.3 bits for each unit");
    let buddy = arena.buddy();
    assert_eq!(buddy.max_order(), 28);

    // Every order alone, on an empty arena, freed both ways.
    for order in 0..=28 {
        let block = buddy.alloc(order).unwrap();
        assert_eq!(block % (1 << order), 0);
        assert_eq!(buddy.order_of(block), Ok(order));
        assert_eq!(buddy.free(block), Ok(1 << order));
        let block = buddy.on(order as usize).alloc(order).unwrap();
        assert_eq!(buddy.free_sized(block, order), Ok(()));
    }

    // Orders mixed, on many lanes; some freed on the way.
    let (mut held, mut random) = (Held::default(), fastrand::Rng::with_seed(1));
    let mut blocks = Vec::new();
    for step in 0..400_000 {
        let order = random.u32(0..=28).min(random.u32(0..=28)).min(random.u32(0..=28));
        match buddy.on(step % 64).alloc(order) {
            Ok(index) => blocks.push(held.take(index, order, TIB)),
            Err(error) => assert_eq!(error, AllocError::Exhausted { units: 1 << order }),
        }
        if step % 3 == 0 {
            let block = blocks.swap_remove(random.usize(..blocks.len()));
            held.0.remove(&block.index);
            assert_eq!(buddy.on(random.usize(..64)).free(block.index), Ok(block.len()));
        }
    }
    let used: u64 = blocks.iter().map(|block| block.len()).sum();
    assert_eq!(buddy.stats().used_units, used);
    buddy.audit().unwrap();

    for block in blocks {
        assert_eq!(buddy.free_sized(block.index, block.order), Ok(()));
    }
    assert_eq!(buddy.stats().free_blocks[28], 1);
    assert_eq!(buddy.alloc(28), Ok(0));
    buddy.audit().unwrap();
}

/// All memory is in use in blocks of 2 MiB, except one of them and one unit. What is left is found, and other requests
/// are refused, with few loads, where the arena has 8 million words.
#[test]
fn a_full_tebibyte_is_searched_with_few_loads() {
    let arena = Arena::<Counted>::new(TIB);
    let buddy = arena.buddy();
    for _ in 0..TIB >> 9 {
        buddy.alloc(9).unwrap();
    }
    let gap = 0x765_4200_u64 & !511;
    let mut most = Counts::default();
    let mut seen = |counts: Counts| {
        most.loads = most.loads.max(counts.loads);
        most.swaps = most.swaps.max(counts.swaps);
    };
    let refused = |lane, order| {
        let (refused, counts) = count(|| buddy.on(lane).alloc(order));
        assert_eq!(refused, Err(AllocError::Exhausted { units: 1 << order }));
        counts
    };
    for lane in 0..64 {
        seen(refused(lane, 9));
        seen(refused(lane, 0));
    }
    buddy.free(gap).unwrap();
    for lane in 0..64 {
        seen(refused(lane, 10));
        let (found, counts) = count(|| buddy.on(lane).alloc(9));
        assert_eq!(found, Ok(gap));
        seen(counts);
        buddy.free(gap).unwrap();
        let (unit, counts) = count(|| buddy.on(63 - lane).alloc(0));
        seen(counts);
        let unit = unit.unwrap();
        assert_eq!(unit >> 9, gap >> 9);
        buddy.free(unit).unwrap();
    }
    assert!(most.loads < 300 && most.swaps < 30, "{most:?}");
    buddy.audit().unwrap();
}

#[test]
fn the_largest_arena_has_a_size() {
    let words = metadata_words(MAX_UNITS);
    assert_eq!(MAX_UNITS, 1 << 40);
    let bits_per_unit = words as f64 * 64.0 / MAX_UNITS as f64;
    assert!((2.0..=2.3).contains(&bits_per_unit), "{bits_per_unit}");
    assert_eq!(metadata_words(MAX_UNITS + 1), usize::MAX);
    let none: [std::sync::atomic::AtomicU64; 0] = [];
    let error = MetadataError::TooShort { words: 0, needed: words };
    assert_eq!(Buddy::new(&none, MAX_UNITS).unwrap_err(), error);
    for odd in [MAX_UNITS - 1, (1 << 39) + 1, (1 << 33) - 1] {
        assert!(metadata_words(odd) <= words && metadata_words(odd) as u64 > odd / 32);
    }
}
