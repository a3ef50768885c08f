//! Tests lanes: any number is valid, none is unsafe, and none keeps memory from the others.

use std::{iter, thread};

use nbbs::{AllocError, Block, Lane};
use testkit::program::Arena;
use testkit::{Oracle, check_whole};

#[test]
fn any_lane_is_valid() {
    for units in [1, 33, 5000, 1 << 19] {
        let arena: Arena = Arena::new(units);
        let buddy = arena.buddy();
        for lane in [0, 1, 63, 64, 65, 1 << 31, usize::MAX] {
            for order in 0..=buddy.max_order() {
                let block = buddy.on(lane).alloc(order).unwrap();
                assert_eq!(buddy.on(lane ^ 1).free(block), Ok(1 << order));
                let block = buddy.on(lane).alloc(order).unwrap();
                assert_eq!(buddy.on(lane / 2).free_sized(block, order), Ok(()));
            }
        }
        buddy.audit().unwrap();
        check_whole(&buddy, &Oracle::new(units)).unwrap();
    }
}

/// A lane's last word stays open when it empties. An allocation of a larger block, on that lane or another, closes it.
#[test]
fn no_lane_keeps_memory_from_another() {
    const UNITS: u64 = 1 << 18;
    let arena: Arena = Arena::new(UNITS);
    let buddy = arena.buddy();
    for order in 0..=17 {
        let blocks: Vec<_> =
            (0..64).filter_map(|lane| Some((lane, buddy.on(lane).alloc(order).ok()?))).collect();
        for (lane, block) in blocks {
            buddy.on(lane).free(block).unwrap();
        }
        assert_eq!(buddy.stats().free_blocks[18], 1, "after order {order}");
        assert_eq!(buddy.on(100).alloc(18), Ok(0), "after order {order}");
        buddy.on(1).free(0).unwrap();
        buddy.audit().unwrap();
    }
}

/// One lane can take all there is, whatever the others hold.
#[test]
fn a_lane_gets_the_last_unit() {
    const UNITS: u64 = 20_000;
    let arena: Arena = Arena::new(UNITS);
    let (buddy, oracle) = (arena.buddy(), Oracle::new(UNITS));
    let mut held: Vec<_> = (1..5)
        .map(|lane| oracle.take(lane, buddy.on(lane).alloc(3).unwrap(), 3).unwrap())
        .collect();
    let all = std::iter::from_fn(|| buddy.on(0).alloc(0).ok());
    held.extend(all.map(|index| oracle.take(0, index, 0).unwrap()));
    assert_eq!(oracle.held_units(), UNITS);
    assert_eq!(buddy.on(1).alloc(0), Err(AllocError::Exhausted { units: 1 }));
    for block in held {
        buddy.on(9).free(block.index).unwrap();
    }
    buddy.audit().unwrap();
    assert_eq!(buddy.alloc(14), Ok(0));
}

/// A lane claims block behind block without a look for more room: to the end of a word and of the arena, no further.
#[test]
fn a_lane_fills_an_arena_to_its_end() {
    for units in (1..=130).chain([512, 513, 8191, 8229, 20_000, (1 << 17) + 31]) {
        let arena: Arena = Arena::new(units);
        let buddy = arena.buddy();
        for order in 0..=buddy.max_order() {
            let all = 0..units >> order << order;
            let mut blocks: Vec<_> = iter::from_fn(|| buddy.on(0).alloc(order).ok()).collect();
            blocks.sort_unstable();
            let expected: Vec<_> = all.step_by(1 << order).collect();
            assert_eq!(blocks, expected, "{units} units, order {order}");
            buddy.audit().unwrap();
            let last = blocks[blocks.len() - 1];
            assert_eq!(buddy.on(0).free_sized(last, order), Ok(()));
            assert_eq!(buddy.on(0).alloc(order), Ok(last), "{units} units, order {order}");
            assert_eq!(buddy.on(0).alloc(order), Err(AllocError::Exhausted { units: 1 << order }));
            blocks.into_iter().for_each(|block| _ = buddy.on(1).free(block).unwrap());
        }
        check_whole(&buddy, &Oracle::new(units)).unwrap();
    }
}

/// Behind a block that was freed and is allocated again, something larger may be free.
#[test]
fn a_lane_takes_what_was_freed_and_not_what_is_behind() {
    let arena: Arena = Arena::new(32);
    let buddy = arena.buddy();
    let lane = buddy.on(0);
    (0..32).for_each(|unit| assert_eq!(lane.alloc(0), Ok(unit)));
    [4, 5, 6, 7, 20, 3].into_iter().for_each(|unit| lane.free_sized(unit, 0).unwrap());
    assert_eq!([lane.alloc(0), lane.alloc(0), lane.alloc(2)], [Ok(3), Ok(20), Ok(4)]);
}

/// More threads than there are lanes, none of which names a lane.
#[test]
fn threads_without_a_lane() {
    let arena: Arena = Arena::new(9000);
    let (buddy, oracle) = (arena.buddy(), Oracle::new(9000));
    thread::scope(|scope| {
        for thread in 0..70 {
            let oracle = &oracle;
            scope.spawn(move || {
                for order in (0..12).chain((0..12).rev()) {
                    let Ok(index) = buddy.alloc(order) else {
                        continue;
                    };
                    let block = oracle.take(thread, index, order).unwrap();
                    oracle.give(block).unwrap();
                    assert_eq!(buddy.free(index), Ok(1 << order));
                }
            });
        }
    });
    oracle.check_empty().unwrap();
    check_whole(&buddy, &oracle).unwrap();
    buddy.audit().unwrap();
}

/// Handles stay small: they are passed by value.
#[test]
fn a_lane_is_two_words_and_a_block_three() {
    assert_eq!(size_of::<Lane<'_>>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Block<'_>>(), 2 * size_of::<usize>() + 8);
}
