use super::{Linux, MAX_ORDER};
use testkit::BackEnd;

#[test]
fn keeps_the_lower_half_and_lists_the_upper() {
    let linux = Linux::new(16, MAX_ORDER);
    assert_eq!(linux.alloc(0, 1), Some(0));
    assert_eq!(linux.alloc(0, 1), Some(2)); // upper half of the order-2 block
    assert_eq!(linux.alloc(0, 3), Some(8));
    assert_eq!(linux.alloc(0, 3), None);
    assert_eq!(linux.alloc(0, 2), Some(4));
    assert_eq!(linux.alloc(0, 0), None);
}

#[test]
fn hands_out_the_last_freed_block_first() {
    let linux = Linux::new(8, MAX_ORDER);
    let blocks: Vec<u64> = (0..8).filter_map(|_| linux.alloc(0, 0)).collect();
    assert_eq!(blocks, [0, 1, 2, 3, 4, 5, 6, 7]);
    for index in [1, 6, 3] {
        linux.free(0, index, 0).unwrap();
    }
    assert_eq!(
        [linux.alloc(0, 0), linux.alloc(0, 0), linux.alloc(0, 0)],
        [Some(3), Some(6), Some(1)]
    );
}

#[test]
fn a_block_about_to_merge_waits_at_the_tail() {
    let linux = Linux::new(16, MAX_ORDER);
    let blocks = (0..16).filter_map(|_| linux.alloc(0, 0)).count();
    assert_eq!(blocks, 16);
    for index in [2, 3, 8] {
        linux.free(0, index, 0).unwrap(); // 2 and 3 merge to a free block of order 1
    }
    linux.free(0, 0, 0).unwrap(); // 1 is in use, 2..4 free: 0 goes to the tail, behind 8
    assert_eq!([linux.alloc(0, 0), linux.alloc(0, 0)], [Some(8), Some(0)]);
}

#[test]
fn merges_on_every_free_up_to_the_largest_order() {
    let linux = Linux::new(1 << 12, MAX_ORDER);
    let blocks: Vec<u64> = (0..1 << 12).filter_map(|_| linux.alloc(0, 0)).collect();
    for index in blocks {
        linux.free(0, index, 0).unwrap();
    }
    let mut whole: Vec<u64> = (0..4).filter_map(|_| linux.alloc(0, MAX_ORDER)).collect();
    whole.sort_unstable();
    assert_eq!(whole, [0, 1 << 10, 2 << 10, 3 << 10]);
    assert_eq!(linux.alloc(0, MAX_ORDER), None);
}

#[test]
fn an_odd_arena_begins_with_the_largest_blocks_that_fit() {
    let linux = Linux::new(7, MAX_ORDER);
    assert_eq!(linux.max_order(), 2);
    assert_eq!(linux.alloc(0, 2), Some(0));
    assert_eq!(linux.alloc(0, 2), None);
    assert_eq!([linux.alloc(0, 1), linux.alloc(0, 0), linux.alloc(0, 0)], [Some(4), Some(6), None]);
}

#[test]
fn refuses_what_lies_outside_and_what_is_free() {
    let linux = Linux::new(100, MAX_ORDER);
    assert_eq!(linux.alloc(0, 7), None);
    let block = linux.alloc(0, 3).unwrap();
    assert!(linux.free(0, 100, 0).is_err());
    assert!(linux.free(0, u64::MAX, 3).is_err());
    assert!(linux.free(0, 96, 3).is_err());
    assert!(linux.free(0, block + 1, 1).is_err());
    assert!(linux.free(0, block, 7).is_err());
    assert!(linux.free(0, block, 3).is_ok());
    assert!(linux.free(0, block, 3).is_err());
}
