//! A batch of blocks has the same effect as one call for each block.

use nbbs::{AllocError, Buddy, FreeError};
use testkit::Spec;
use testkit::program::{Arena, BOUNDARIES};

/// Returns an arena with blocks, runs that look like blocks except for their place, a reserved unit, and free units, in
/// 40 of 64 units.
fn in_use(arena: &Arena) -> Buddy<'_> {
    let buddy = arena.buddy();
    for (index, units) in
        [(0, 1), (1, 2), (4, 2), (6, 2), (8, 4), (13, 1), (14, 4), (31, 1), (32, 2)]
    {
        buddy.here().alloc_at(index, units).unwrap();
    }
    buddy.reserve(20..22).unwrap();
    buddy.here().alloc_at(34, 6).unwrap();
    buddy
}

/// Frees blocks one after the other, up to the first that is refused.
fn one_by_one(buddy: &Buddy<'_>, order: u32, blocks: &[u64]) -> Result<(), (usize, FreeError)> {
    for (done, &block) in blocks.iter().enumerate() {
        buddy.free_sized(block, order).map_err(|error| (done, error))?;
    }
    Ok(())
}

#[track_caller]
fn assert_same(order: u32, blocks: &[u64]) {
    let arenas: [Arena; 2] = [Arena::new(64), Arena::new(64)];
    let [many, one] = arenas.each_ref().map(in_use);
    let answer =
        many.here().free_batch(order, blocks).map_err(|refused| (refused.done, refused.error));
    assert_eq!(answer, one_by_one(&one, order, blocks), "order {order}: {blocks:?}");
    let len = |buddy: &Buddy<'_>| (0..64).map(|unit| buddy.len_of(unit)).collect::<Vec<_>>();
    assert_eq!(len(&many), len(&one), "order {order}: {blocks:?}");
    many.audit().unwrap();
}

/// Every batch of three blocks is tried, including duplicates and misaligned blocks.
#[test]
fn a_batch_is_freed_as_its_blocks_would_be() {
    const PLACES: [u64; 13] = [0, 1, 2, 4, 5, 6, 8, 13, 14, 31, 32, 34, 64];
    for order in [0, 1, 2, 6, 7] {
        assert_same(order, &[]);
        for one in PLACES {
            for two in PLACES {
                assert_same(order, &[one, two]);
                for three in PLACES {
                    assert_same(order, &[one, two, three]);
                }
            }
        }
    }
}

/// Batches of every size at every order get as many blocks as are free, no block twice, and leave none out.
#[test]
fn a_batch_gets_what_is_free() {
    for units in BOUNDARIES.into_iter().filter(|&units| units <= 1025) {
        for order in 0..=units.ilog2() {
            for count in [0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 600] {
                let arena: Arena = Arena::new(units);
                let buddy = arena.buddy();
                let mut spec = Spec::new(units);
                let reserved = units / 3..units / 3 + 1;
                buddy.reserve(reserved.clone()).unwrap();
                spec.reserve(reserved);
                let mut blocks = vec![u64::MAX; count];
                let free = (0..units >> order << order).step_by(1 << order);
                let free = free
                    .filter(|&index| spec.all(&(index..index + (1 << order)), testkit::Unit::Free));
                let expected = free.count().min(count);
                let got = buddy.here().alloc_batch(order, &mut blocks);
                if expected == 0 && count > 0 {
                    assert_eq!(got, Err(AllocError::Exhausted { units: 1 << order }));
                } else {
                    assert_eq!(got, Ok(expected), "{count} of order {order} in {units}");
                }
                assert!(blocks[expected..].iter().all(|&block| block == u64::MAX));
                // Panics if a unit is handed out twice.
                blocks[..expected].iter().for_each(|&block| spec.grant(block, order));
                assert_eq!(buddy.stats().used_units, (expected as u64) << order);
                blocks[..expected].reverse();
                assert_eq!(buddy.here().free_batch(order, &blocks[..expected]), Ok(()));
                buddy.audit().unwrap();
                assert_eq!(buddy.stats().used_units, 0);
            }
        }
        let (order, max) = (units.ilog2() + 1, units.ilog2());
        let arena: Arena = Arena::new(units);
        let refused = Err(AllocError::OrderTooLarge { order, max });
        assert_eq!(arena.buddy().here().alloc_batch(order, &mut [0]), refused);
        assert_eq!(arena.buddy().here().alloc_batch(order, &mut []), refused);
    }
}
