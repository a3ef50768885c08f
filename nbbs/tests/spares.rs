//! Tests spares: blocks that a lane's frees left alone, which it takes before it searches.

use std::sync::atomic::{AtomicU64, Ordering};

use nbbs::sync::Word;
use nbbs::{Buddy, Lane, metadata_words};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, follow};

/// Fills the arena with blocks of `order`.
fn fill<W: Word>(buddy: &Buddy<'_, W>, order: u32) {
    while buddy.on(0).alloc(order).is_ok() {}
}

/// Frees a block, by its order or by its index alone.
type Free = fn(Lane<'_>, u64, u32);

const FREES: [Free; 2] = [
    |lane, index, order| lane.free_sized(index, order).unwrap(),
    |lane, index, order| assert_eq!(lane.free(index), Ok(1 << order)),
];

/// The block freed last comes first, then the spares, the last first. A search would begin with the block freed first,
/// which is forgotten, and with what another lane freed.
#[test]
fn the_last_are_taken_before_a_search() {
    for free in FREES {
        for order in 0..=10 {
            let most = if order < 5 { 8 } else { 4 };
            let arena: Arena = Arena::new(1 << 18);
            let buddy = arena.buddy();
            fill(&buddy, order);
            let blocks: Vec<u64> = (1..=most as u64 + 1).map(|n| n << 14).collect();
            // The bounds above allow for what is freed at every other place. The cursor will be at the last block.
            let others = blocks[..most].iter().step_by(2);
            others.for_each(|index| free(buddy.on(1), index + (2 << order), order));
            blocks.iter().for_each(|&index| free(buddy.on(0), index, order));
            for &block in blocks[1..].iter().rev() {
                assert_eq!(buddy.on(0).alloc(order), Ok(block), "order {order}");
            }
            (0..=most / 2).for_each(|_| _ = buddy.on(0).alloc(order).unwrap());
            assert!(buddy.on(0).alloc(order).is_err());
            buddy.audit().unwrap();
        }
    }
}

#[test]
fn a_spare_that_is_part_of_more_is_left() {
    for free in FREES {
        let arena: Arena = Arena::new(1 << 15);
        let buddy = arena.buddy();
        fill(&buddy, 0);
        [300, 9000, 5000].into_iter().for_each(|index| free(buddy.on(0), index, 0));
        free(buddy.on(1), 9001, 0);
        assert_eq!([buddy.on(0).alloc(0), buddy.on(0).alloc(0)], [Ok(5000), Ok(300)]);
        assert_eq!(buddy.on(0).alloc(1), Ok(9000));
        buddy.audit().unwrap();
    }
}

#[test]
fn spares_that_another_lane_holds_are_left() {
    for (order, most) in [(0u32, 8u64), (5, 4)] {
        let arena: Arena = Arena::new(1 << 18);
        let buddy = arena.buddy();
        fill(&buddy, order);
        let blocks: Vec<u64> = (1..=most).map(|n| n << 14).collect();
        blocks.iter().for_each(|&index| _ = buddy.on(0).free(index).unwrap());
        // A search would find this before the block freed first.
        buddy.on(1).free(2 << order).unwrap();
        blocks[1..].iter().for_each(|&index| _ = buddy.on(1).alloc_at(index, 1 << order).unwrap());
        assert_eq!(buddy.on(0).alloc(order), Ok(blocks[0]));
        assert_eq!(buddy.on(0).alloc(order), Ok(2 << order));
        buddy.audit().unwrap();
    }
}

/// A pair frees what the lane has just allocated, and allocates that again: there is nothing to remember.
#[test]
fn pairs_leave_the_spares_alone() {
    for (free, order) in FREES.into_iter().flat_map(|free| [0, 5, 9].map(|order| (free, order))) {
        let arena: Arena = Arena::new(1 << 18);
        let buddy = arena.buddy();
        fill(&buddy, order);
        [3 << 14, 5 << 14].into_iter().for_each(|index| free(buddy.on(0), index, order));
        for _ in 0..20 {
            assert_eq!(buddy.on(0).alloc(order), Ok(5 << 14));
            free(buddy.on(0), 5 << 14, order);
        }
        free(buddy.on(1), 2 << order, order);
        assert_eq!(
            [buddy.on(0).alloc(order), buddy.on(0).alloc(order)],
            [Ok(5 << 14), Ok(3 << 14)]
        );
        buddy.audit().unwrap();
    }
}

/// Behind the last unit, too, the codes are those of free units.
#[test]
fn a_spare_ends_where_the_arena_does() {
    for free in FREES {
        let arena: Arena = Arena::new(1004);
        let buddy = arena.buddy();
        buddy.on(0).alloc(3).unwrap();
        fill(&buddy, 2);
        free(buddy.on(0), 1000, 2);
        free(buddy.on(0), 500, 2);
        assert!(buddy.on(0).alloc(3).is_err());
        assert_eq!([buddy.on(0).alloc(2), buddy.on(0).alloc(2)], [Ok(500), Ok(1000)]);
        free(buddy.on(0), 1000, 2);
        free(buddy.on(0), 500, 2);
        buddy.on(1).alloc_at(1000, 4).unwrap();
        assert_eq!(buddy.on(0).alloc(2), Ok(500));
        assert!(buddy.on(0).alloc(2).is_err());
        buddy.audit().unwrap();
    }
}

/// What a lane notes of the words above a unit would be wrong for a unit that there is not, whatever lies behind the
/// metadata.
#[test]
fn a_free_outside_the_arena_writes_nothing() {
    const SPLIT: u64 = 0x5555_5555_5555_5555;
    let words: Vec<AtomicU64> = (0..metadata_words(1000) + 4096)
        .map(|place| AtomicU64::new(if place < metadata_words(1000) { 0 } else { SPLIT }))
        .collect();
    let buddy = Buddy::new(&words, 1000).unwrap();
    (0..4).for_each(|order| _ = buddy.on(0).alloc(order).unwrap());
    let held = || -> Vec<u64> { words.iter().map(|word| word.load(Ordering::Relaxed)).collect() };
    let before = held();
    for index in (1000..1 << 21).chain([1 << 40, u64::MAX]) {
        assert!(buddy.on(0).free(index).is_err());
    }
    assert!(held() == before);
}

/// A claim that is about to find out that the area belongs to a block makes a unit beside it look like a spare.
#[test]
fn a_spare_below_a_block_is_given_back() {
    let mut met = 0;
    for (first, then) in (0..20).flat_map(|first| (1..6).map(move |then| (first, then))) {
        let arena = Arena::<Steered>::new(1 << 12);
        let buddy = arena.buddy();
        fill(&buddy, 0);
        [0, 600].into_iter().for_each(|unit| buddy.on(0).free_sized(unit, 0).unwrap());
        assert_eq!(buddy.on(0).alloc(0), Ok(600));
        (1..32).for_each(|unit| buddy.on(1).free_sized(unit, 0).unwrap());

        let [mut stray, mut block, mut spare] = [None; 3];
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                stray = buddy.on(2).alloc_at(1, 1).ok();
                Ok(())
            }),
            Box::new(|| {
                block = buddy.on(3).alloc(5).ok();
                Ok(())
            }),
            Box::new(|| {
                spare = buddy.on(0).alloc(0).ok();
                Ok(())
            }),
        ];
        let turns = [
            Turn::steps(0, first),
            Turn::rest(1),
            Turn::steps(0, then),
            Turn::rest(2),
            Turn::rest(0),
        ];
        follow(&turns, bodies).unwrap();
        if block.is_some() {
            met += 1;
            assert_eq!((stray, spare), (None, None), "{first} {then}");
        }
        buddy.audit().unwrap();
    }
    assert!(met > 10, "{met} blocks");
}
