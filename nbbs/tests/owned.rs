//! Tests blocks that free themselves: how long they are, and what they give back.

use nbbs::{Block, Buddy, FreeError, Request, RequestError, ResizeError};
use testkit::program::Arena;

const UNITS: u64 = 128;

/// Returns an arena with neighbours on each side of the places at which the tests work: units 0 to 2 and 120 to 127 are
/// held.
fn with_neighbours(arena: &Arena) -> Buddy<'_> {
    let buddy = arena.buddy();
    buddy.here().alloc_at(0, 3).unwrap();
    buddy.here().alloc_at(120, 8).unwrap();
    buddy
}

fn at<'a>(buddy: &'a Buddy<'a>, index: u64, units: u64) -> Block<'a> {
    Block::new(buddy.here(), Request::units(units).within(index..index + units)).unwrap()
}

/// Checks that what a block says about itself is exactly what is held.
#[track_caller]
fn assert_is(block: &Block<'_>, buddy: &Buddy<'_>, index: u64, units: u64) {
    assert_eq!(block.units(), index..index + units);
    assert_eq!(buddy.len_of(index), Ok(units));
}

/// Checks that after the blocks are gone only the neighbours are left.
#[track_caller]
fn assert_only_neighbours(buddy: &Buddy<'_>) {
    assert_eq!((buddy.len_of(0), buddy.len_of(120)), (Ok(3), Ok(8)));
    assert_eq!(buddy.stats().used_units, 11);
    buddy.audit().unwrap();
}

/// Every length of 50 before, and every length of 50 after.
#[test]
fn a_block_knows_its_length_after_every_change() {
    let arena = Arena::new(UNITS);
    let buddy = with_neighbours(&arena);
    for index in [8, 20, 31, 32] {
        for before in 1..=50 {
            for after in 1..=50 {
                let mut block = at(&buddy, index, before);
                if after >= before {
                    block.grow(after).unwrap();
                } else {
                    block.shrink(after).unwrap();
                }
                assert_is(&block, &buddy, index, after);
                drop(block);
                assert_only_neighbours(&buddy);
            }
        }
    }
}

#[test]
fn both_parts_of_a_split_block_know_their_length() {
    let arena = Arena::new(UNITS);
    let buddy = with_neighbours(&arena);
    for index in [8, 20, 31, 32] {
        for units in 2..=50 {
            for first in 1..units {
                let mut block = at(&buddy, index, units);
                let rest = block.split_off(first).unwrap();
                assert_is(&rest, &buddy, index + first, units - first);
                assert_is(&block, &buddy, index, first);
                drop(rest);
                assert_eq!(buddy.stats().used_units, 11 + first);
                drop(block);
                assert_only_neighbours(&buddy);
            }
        }
    }
}

#[test]
fn a_refused_change_leaves_the_block_as_it_was() {
    let arena = Arena::new(UNITS);
    let buddy = with_neighbours(&arena);
    let mut block = at(&buddy, 90, 30);
    assert_eq!(block.grow(31), Err(ResizeError::InUse { unit: 120 }));
    for units in [0, 31] {
        let refused = ResizeError::WrongLength { index: 90, units, actual: 30 };
        assert_eq!(block.shrink(units), Err(refused));
        assert_eq!(block.split_off(units).map(|rest| rest.units()), Err(refused));
    }
    assert_eq!(block.grow(29), Err(ResizeError::WrongLength { index: 90, units: 29, actual: 30 }));
    assert_is(&block, &buddy, 90, 30);
    drop(block);
    assert_only_neighbours(&buddy);
}

#[test]
fn blocks_are_what_was_asked_for() {
    let arena = Arena::new(UNITS);
    let buddy = with_neighbours(&arena);
    for order in 0..=5 {
        let block = Block::new(buddy.here(), Request::block(order)).unwrap();
        let index = block.units().start;
        assert_is(&block, &buddy, index, 1 << order);
        assert_eq!(index % (1 << order), 0);
    }
    let top = Block::new(buddy.here(), Request::units(7).top_down().aligned(3)).unwrap();
    assert_is(&top, &buddy, 112, 7);
    drop(top);
    for order in [6, 7, 63, 64, u32::MAX] {
        let units = 1_u64.checked_shl(order).unwrap_or(u64::MAX);
        let refused = if order < 8 {
            RequestError::Exhausted { units }
        } else {
            RequestError::Units { units, max: UNITS }
        };
        assert_eq!(
            Block::new(buddy.here(), Request::block(order)).map(|block| block.leak()),
            Err(refused)
        );
    }
    assert_only_neighbours(&buddy);
}

/// A block that is leaked stays, and is found again by its index, with its length.
#[test]
fn what_is_leaked_is_held_until_it_is_taken_over() {
    let arena = Arena::new(UNITS);
    let buddy = with_neighbours(&arena);
    for units in [1, 2, 5, 31, 32, 33, 64, 79] {
        let mut block = at(&buddy, 40, units);
        block.grow(units + 1).unwrap();
        let index = block.leak();
        assert_eq!((index, buddy.len_of(40)), (40, Ok(units + 1)));
        let again = Block::from_index(buddy.here(), 40).unwrap();
        assert_is(&again, &buddy, 40, units + 1);
        let second = Block::from_index(buddy.here(), 40).unwrap();
        drop((again, second));
        assert_only_neighbours(&buddy);
        let gone = Block::from_index(buddy.here(), 40).map(Block::leak);
        assert_eq!(gone, Err(FreeError::NotAllocated { index: 40 }));
    }
}
